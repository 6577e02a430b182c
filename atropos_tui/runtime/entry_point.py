"""`serve`, `process` and `evaluate` as a program: behind `MyEnv.cli()`, and behind the verbs of `atropos-tui`."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
import sys
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from atropos_tui.errors import AtroposError, UsageError
from atropos_tui.ledger import EventStream
from atropos_tui.runtime.command_line import RunSettings, help_text, parse_settings
from atropos_tui.runtime.evaluation_files import metrics_table
from atropos_tui.runtime.outbox_place import outbox_path
from atropos_tui.runtime.progress import Progress

if TYPE_CHECKING:
    from atropos_tui.runtime.base_env import BaseEnv

MODES = ("serve", "process", "evaluate")


def mode_defaults(environment: type[BaseEnv], mode: str) -> dict[str, Any]:
    """What a mode changes in the defaults of an environment, below file and flags."""
    if mode == "process":
        return {
            "ensure_scores_are_not_same": False,
            "include_messages": True,
            "use_wandb": True,
            "data_path_to_save_groups": f"data/{environment.name or 'groups'}.jsonl",
        }
    return {"use_wandb": True} if mode == "evaluate" else {}


def run_command_line(environment: type[BaseEnv], arguments: Sequence[str] | None = None) -> Any:
    """Run a mode to its end. Wrong usage ends the program with status 2, a run that failed with 1, each with one line.

    Inside a running event loop, such as a notebook's, returns a coroutine to await instead.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        sys.exit(_status(lambda: asyncio.run(run_mode(environment, given, handle_signals=True))))
    return run_mode(environment, given)


async def run_mode(environment: type[BaseEnv], arguments: Sequence[str], handle_signals: bool = False) -> None:
    """`serve`, `process` or `evaluate` with flags. Raises UsageError and what broke the run."""
    mode = arguments[0] if arguments else ""
    if mode in ("-h", "--help") or {"-h", "--help"} & set(arguments[1:]):
        sys.stdout.write(help_text(environment) + "\n")
        return
    if mode not in MODES:
        raise UsageError(f"unknown mode {mode!r}" if mode else "no mode given", f"choose one of {', '.join(MODES)}")
    settings = parse_settings(environment, arguments[1:], mode_defaults(environment, mode))
    env = settings.build(environment)
    outbox = outbox_path(env) if mode == "serve" else None
    write_config(settings, env, mode, outbox)
    progress = Progress(mode, sys.stderr, env.config.total_steps if mode == "process" else None)
    # Whoever takes over the outbox of a process that died is the same environment to the trajectory API.
    env.attach(EventStream(progress), outbox, run_id=f"{socket.gethostname()}:{outbox}" if outbox is not None else "")
    if handle_signals:
        _stop_on_signals(env)
    try:
        done = await _work(env, mode)
    finally:
        progress.close()
    if mode == "evaluate" and done:
        sys.stdout.write(metrics_table(f"{env.name or type(env).__name__}_eval", done, progress.seconds) + "\n")


def write_config(settings: RunSettings, env: BaseEnv, mode: str, outbox: Path | None) -> Path | None:
    """The merged configuration beside the results, as a file that `--config` reads back. None without results.

    A run that writes no groups has it beside its outbox.
    """
    text = settings.as_yaml()
    if mode != "evaluate":
        groups = env.jsonl_writer.path if env.jsonl_writer is not None else outbox
        path = groups.with_suffix(".config.yaml") if groups is not None else None
    elif env.config.data_dir_to_save_evals is not None:
        path = _unwritten(Path(env.config.data_dir_to_save_evals), "evaluate_config", text)
    else:
        path = None
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return path


def _unwritten(directory: Path, stem: str, text: str) -> Path:
    """The first of `STEM.yaml`, `STEM_1.yaml` … that is not there or has this text: results keep what made them."""
    path, number = directory / f"{stem}.yaml", 0
    while path.exists() and path.read_text(encoding="utf-8") != text:
        number += 1
        path = directory / f"{stem}_{number}.yaml"
    return path


def _work(env: BaseEnv, mode: str) -> Coroutine[Any, Any, Any]:
    works: Mapping[str, Callable[[], Coroutine[Any, Any, Any]]] = {
        "serve": env.env_manager, "process": env.process_manager, "evaluate": env.evaluate_manager,
    }  # fmt: skip
    return works[mode]()


def _stop_on_signals(env: BaseEnv) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, env.control.stop, f"stopped by {number.name}")


def _status(run: Callable[[], None]) -> int:
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    try:
        run()
    except UsageError as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    except AtroposError as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    return 0
