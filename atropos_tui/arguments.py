"""The argument parser of every command of ours."""

from __future__ import annotations

import argparse
from typing import NoReturn

from atropos_tui.errors import UsageError


class OneLineParser(argparse.ArgumentParser):
    """Raises a UsageError, which is one line with its remedy, instead of printing the usage."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(message, f"see `{self.prog} --help`")
