"""A crash of the screen itself: the whole traceback goes into a file, one line of it to the terminal."""

from __future__ import annotations

import os
import tempfile
import traceback
from pathlib import Path


def write_crash_file(error: BaseException) -> str:
    """Write the traceback, and say in one line what broke and where to read more.

    Values of variables are left out: they hold whole rollouts.
    """
    what = traceback.format_exception_only(error)[-1].strip()
    path = Path(tempfile.gettempdir()) / f"atropos-tui-screen-{os.getpid()}.txt"
    try:
        path.write_text("".join(traceback.format_exception(error)), encoding="utf-8")
    except OSError:
        return f"the screen crashed: {what}; the run goes on"
    return f"the screen crashed: {what}; the run goes on, the traceback is in {path}"
