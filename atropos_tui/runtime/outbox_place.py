"""Where an environment that runs without a run directory keeps its outbox, so that a restart finds it again."""

from __future__ import annotations

import hashlib
import inspect
import itertools
import re
from pathlib import Path
from typing import TYPE_CHECKING

from atropos_tui.run_root import run_root
from atropos_tui.runtime.outbox import Outbox, OutboxInUse

if TYPE_CHECKING:
    from atropos_tui.runtime.base_env import BaseEnv

AUTO = "auto"


def outbox_path(env: BaseEnv) -> Path | None:
    """The file that the config names; of `auto` the first of the environment's own that no process uses now.

    Those are `outboxes/NAME-KEY.db`, `NAME-KEY-2.db` … under the run root; the key stands for the environment's file
    and class, its name and its trajectory API. Raises UsageError when the place cannot be had.
    """
    named = env.config.outbox_path
    if named is None:
        return None
    if named != AUTO:
        return Path(named).expanduser()
    return next(path for path in _own_places(env) if _is_free(path))


def _own_places(env: BaseEnv) -> itertools.chain[Path]:
    name = env.config.wandb_name or env.name or type(env).__name__
    identity = (str(Path(inspect.getfile(type(env))).resolve()), type(env).__qualname__, name)
    key = hashlib.sha256("\0".join((*identity, env.config.rollout_server_url)).encode()).hexdigest()[:10]
    stem = f"{re.sub(r'[^A-Za-z0-9._-]+', '-', name)}-{key}"
    folder = run_root() / "outboxes"
    further = (folder / f"{stem}-{number}.db" for number in itertools.count(2))
    return itertools.chain([folder / f"{stem}.db"], further)


def _is_free(path: Path) -> bool:
    try:
        Outbox(path).close()
    except OutboxInUse:
        return False
    return True
