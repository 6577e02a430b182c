"""Where an environment that runs without a run directory keeps its outbox, so that a restart finds it again."""

from __future__ import annotations

import hashlib
import itertools
import logging
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from atropos_tui.errors import UsageError
from atropos_tui.run_root import run_root
from atropos_tui.runtime.config import AUTO_OUTBOX
from atropos_tui.runtime.outbox import Outbox, OutboxInUse

if TYPE_CHECKING:
    from atropos_tui.runtime.base_env import BaseEnv

logger = logging.getLogger(__name__)


def outbox_path(env: BaseEnv) -> Path | None:
    """The file that the config names; of `auto` the first of the environment's own that no process uses now.

    Those are `outboxes/NAME-KEY.db`, `NAME-KEY-2.db` … under the run root; the key stands for the environment's file
    and class, its name and its trajectory API. Where none can be had the outbox stays in memory, with a warning.
    """
    named = env.config.outbox_path
    if named is None:
        return None
    if named != AUTO_OUTBOX:
        return Path(named).expanduser()
    try:
        return next(path for path in _own_places(env) if _is_free(path))
    except (OSError, UsageError) as error:
        logger.warning("finished groups are kept in memory, where a killed process loses them: %s", error)
        return None


def _own_places(env: BaseEnv) -> itertools.chain[Path]:
    name = env.config.wandb_name or env.name or type(env).__name__
    # A class that was written in a notebook has no file.
    file = getattr(sys.modules.get(type(env).__module__), "__file__", None) or str(Path.cwd())
    identity = (str(Path(file).resolve()), type(env).__qualname__, name)
    key = hashlib.sha256("\0".join((*identity, env.config.rollout_server_url)).encode()).hexdigest()[:10]
    stem = f"{re.sub(r'[^A-Za-z0-9._-]+', '-', name)}-{key}"
    folder = run_root() / "outboxes"
    further = (folder / f"{stem}-{number}.db" for number in itertools.count(2))
    return itertools.chain([folder / f"{stem}.db"], further)


def _is_free(path: Path) -> bool:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        Outbox(path).close()
    except OutboxInUse:
        return False
    return True
