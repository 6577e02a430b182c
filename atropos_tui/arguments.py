"""The argument parser of every command of ours."""

from __future__ import annotations

import argparse
import re
from typing import NoReturn

from atropos_tui.errors import UsageError


class OneLineParser(argparse.ArgumentParser):
    """Raises a UsageError, which is one line with its remedy, instead of printing the usage."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(message, f"see `{self.prog} --help`")


def verb_parser(verb: str, about: str, epilog: str | None = None) -> OneLineParser:
    """The parser of `atropos-tui VERB`."""
    return OneLineParser(
        prog=f"atropos-tui {verb}",
        description=about,
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=epilog,
    )


def byte_count(text: str) -> int:
    """`500M`, `20G` or plain bytes, as argparse's `type`. Raises ArgumentTypeError for anything else."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([KMGT]?)B?", text.strip(), re.IGNORECASE)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a size such as 500M or 20G")
    return int(float(found[1]) * 1024 ** " KMGT".index(found[2].upper() or " "))
