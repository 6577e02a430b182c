"""The text of tokens, by the tokenizer that a run names."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from atropos_tui.errors import UsageError
from atropos_tui.monitor.run_file.place import RunFileError

logger = logging.getLogger(__name__)


class LazyTokenizer:
    """Loads the tokenizer when the first token is to be shown. Where there is none, ids are all there is to show.

    `name` is asked once, on the thread that decodes; an empty one stands for no tokenizer.
    """

    def __init__(self, name: Callable[[], str]) -> None:
        self._name = name
        self._tokenizer: Any = None
        self._asked = False
        self._lock = threading.Lock()

    def __call__(self, ids: Sequence[int]) -> list[str]:
        with self._lock:
            if not self._asked:
                self._asked = True
                self._load()
        if self._tokenizer is None:
            return []
        from atropos_tui.runtime.tokenizer import token_pieces

        return token_pieces(self._tokenizer, ids)

    def text(self, ids: Sequence[int]) -> str:
        """All of it; empty where there is no tokenizer."""
        return "".join(self(ids))

    def _load(self) -> None:
        if not (name := self._name()):
            return
        from atropos_tui.runtime.tokenizer import load_tokenizer

        try:
            self._tokenizer = load_tokenizer(name)
        except UsageError as error:
            logger.warning("tokens are shown as numbers: %s", error)


class TokenizerOfRun(LazyTokenizer):
    """The one that the run file names, unless another is wanted."""

    def __init__(self, run_file: Path, wanted: str = "") -> None:
        super().__init__(lambda: wanted or tokenizer_name(run_file))


def tokenizer_name(run_file: Path) -> str:
    """Empty where no run file can be read."""
    from atropos_tui.monitor.run_file.reader import RunFileReader

    try:
        reader = RunFileReader(run_file)
    except RunFileError:
        return ""
    try:
        return next((life.tokenizer_name for life in reversed(reader.lives()) if life.tokenizer_name), "")
    finally:
        reader.close()
