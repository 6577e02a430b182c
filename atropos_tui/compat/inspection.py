"""Loads one environment file and says what it is: `python -m atropos_tui.compat.inspection FILE[:CLASS]`.

A process of its own for each file, because environment files do all sorts of things when they are imported.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from atropos_tui.compat.module_path import enable
from atropos_tui.compat.source_facts import source_facts
from atropos_tui.errors import UsageError
from atropos_tui.runtime.failures import describe

if TYPE_CHECKING:
    from atropos_tui.inference import APIServerConfig, ServerBaseline
    from atropos_tui.runtime.base_env import BaseEnv

# Methods that environments may override and that this runtime treats in another way than atroposlib 0.4.0.
TREATED_DIFFERENTLY = {
    "env_manager": "serving is the override's own: no pause, no outbox, no ledger",
    "process_manager": "processing is the override's own: its groups are not in the ledger",
    "handle_env": "groups are the override's own: what becomes of them is not in the ledger",
    "handle_send_to_api": "groups that the override does not hand to super() count as rejected",
    "env_step_checks": "called after each look at the trainer's state, not ten times a second",
    "add_train_workers": "called when a group may start, not ten times a second",
    "get_status": "called as often as the trainer moves, not ten times a second",
    "_register_env": "never called: register_env asks until the trajectory API answers",
    "_send_scored_data_to_api": "never called: groups go through the outbox",
    "_run_evaluate": "never called",
    "get_cli_serve_config_cls": "never called: flags follow from the config class",
    "get_cli_process_config_cls": "never called: flags follow from the config class",
    "get_cli_evaluate_config_cls": "never called: flags follow from the config class",
}


class Inspection(BaseModel):
    """What is known of one file. `error` is empty when it loads."""

    file: str
    error: str = ""
    remedy: str = ""
    environment: str = ""
    config: str = ""
    config_fields: tuple[str, ...] = ()
    servers: tuple[str, ...] = ()
    missing_packages: tuple[str, ...] = ()
    data_sets: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    missing_keys: tuple[str, ...] = ()
    uses_gpu: bool = False
    overrides: tuple[str, ...] = ()

    @property
    def loads(self) -> bool:
        return not self.error


def inspect_file(spec: str) -> Inspection:
    """Import the file and look at its class. Raises UsageError only when there is no such file."""
    from atropos_tui.runtime.loading import load_environment, split_spec

    path, _ = split_spec(spec)
    try:
        facts = source_facts(path)
    except (SyntaxError, OSError, UnicodeDecodeError) as error:
        return Inspection(file=spec, error=f"cannot be read: {describe(error)}", remedy="mend the file")
    try:
        found = _seen_in_class(load_environment(spec))
    except UsageError as error:
        found = {"error": error.fault, "remedy": error.remedy}
    except Exception as error:  # noqa: BLE001  config_init is the author's code
        found = {"error": f"config_init: {describe(error)}", "remedy": "mend the file"}
    return Inspection(
        file=spec,
        # Asked only now, because loading the file puts the folders of its packages on the module path.
        missing_packages=tuple(name for name in facts.imports if not _is_there(name, path)),
        data_sets=facts.data_sets,
        keys=facts.keys,
        missing_keys=tuple(key for key in facts.keys if not os.environ.get(key)),
        uses_gpu=facts.uses_gpu,
        **found,
    )


def _seen_in_class(environment: type[BaseEnv]) -> dict[str, Any]:
    from atropos_tui.runtime.config import BaseEnvConfig

    config, servers = environment.config_init()
    return {
        "environment": environment.__name__,
        "config": type(config).__name__,
        "config_fields": tuple(name for name in type(config).model_fields if name not in BaseEnvConfig.model_fields),
        "servers": _in_words(servers),
        "overrides": tuple(name for name in TREATED_DIFFERENTLY if _is_overridden(environment, name)),
    }


def _is_overridden(environment: type[BaseEnv], method: str) -> bool:
    """Whether the author's classes define it; our own base classes, such as the teacher's, don't count."""
    definer = next((kind for kind in environment.__mro__ if method in vars(kind)), None)
    return definer is not None and not definer.__module__.startswith("atropos_tui.")


def _in_words(servers: ServerBaseline | Sequence[APIServerConfig]) -> tuple[str, ...]:
    from atropos_tui.inference.server_manager import resolved_configs

    return tuple(
        f"{config.server_type} {config.model_name} at {config.base_url or 'no address'}"
        for config in resolved_configs(servers, slurm=False)
    )


def _is_there(package: str, file: Path) -> bool:
    """Whether a package can be imported here, or stands beside the file."""
    if (file.parent / f"{package}.py").is_file() or (file.parent / package).is_dir():
        return True
    try:
        return importlib.util.find_spec(package) is not None
    except (ImportError, ValueError):
        return False


def main(argv: Sequence[str]) -> int:
    """Write the inspection as JSON to descriptor 1, whatever the file prints meanwhile."""
    answer = os.dup(1)
    os.dup2(2, 1)
    enable()
    try:
        inspection = inspect_file(argv[0])
    except UsageError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    with os.fdopen(answer, "w", encoding="utf-8") as out:
        out.write(inspection.model_dump_json())
    sys.stdout.flush()
    # Files start threads and processes when they are imported; nothing of them is waited for.
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
