"""Scripts and modules written for `atroposlib`, run as they are: `python -m atropos_tui run FILE …`."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Sequence
from pathlib import Path

from atropos_tui.compat.module_path import enable
from atropos_tui.errors import UsageError
from atropos_tui.runtime.module_place import module_place


def run_script(arguments: Sequence[str]) -> int:
    """Run `FILE ARGUMENTS…` or `-m MODULE ARGUMENTS…` as Python itself would; returns the exit status.

    More lenient than Python, a file may import from the packages that its folder and those above are.
    Raises UsageError when there is no such file or module; whatever the script raises passes through.
    """
    enable()
    if arguments and arguments[0] == "-m":
        if len(arguments) < 2:
            raise UsageError("-m names no module", "write `run -m MODULE`")
        sys.argv[:] = arguments[1:]
        # As `python -m` does, and before everything but our `atroposlib`.
        sys.path.insert(1, "")
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
        return 0
    path = Path(arguments[0]) if arguments else Path()
    if not path.is_file():
        raise UsageError(f"no file {path}" if arguments else "no file given", "write `run FILE …` or `run -m MODULE …`")
    sys.argv[:] = arguments
    place = module_place(path.resolve())
    first, *others = map(str, place.folders)
    sys.path.insert(1, first)
    sys.path.extend(others)
    if place.in_package:
        runpy.run_module(place.name, run_name="__main__", alter_sys=True)
    else:
        runpy.run_path(str(path), run_name="__main__")
    return 0
