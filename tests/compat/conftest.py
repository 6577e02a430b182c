from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

AUTHOR_FILES = Path(__file__).parent / "author_files"

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="session")
def tokenizer_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_tokenizer(tmp_path_factory.mktemp("tokenizer"))


def small_tokenizer(directory: Path, extra: str = "") -> Path:
    """A tokenizer of single characters, ASCII and `extra`, in a directory that AutoTokenizer loads."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    pieces = [*map(chr, range(32, 127)), *extra, "\n", "<unk>", "<eos>"]
    core = Tokenizer(models.WordLevel({piece: token for token, piece in enumerate(pieces)}, unk_token="<unk>"))
    core.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    core.decoder = decoders.Fuse()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=core, eos_token="<eos>", unk_token="<unk>")
    tokenizer.chat_template = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
    tokenizer.save_pretrained(directory)
    return directory


@pytest.fixture
def python(tmp_path: Path) -> Run:
    """Runs Python with these arguments in the test's own directory; `path` comes before everything else it imports."""

    def run(*arguments: str | Path, path: Path | None = None, **variables: str) -> subprocess.CompletedProcess[str]:
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        if path is not None:
            environment["PYTHONPATH"] = str(path)
        return subprocess.run(
            [sys.executable, *map(str, arguments)],
            cwd=tmp_path, env=environment | variables, capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip

    return run
