"""The flags of every verb that opens the screen: how it looks and how often it paints."""

from __future__ import annotations

import argparse
from typing import NamedTuple

from atropos_tui.errors import UsageError
from atropos_tui.user_config import config_directory

RATES = (0.1, 30.0)
# The environment variable that the screen itself reads (`ui.glyphs`, which is not imported by verbs without a screen).
ASCII_SETTING = "ATROPOS_TUI_ASCII"


class ScreenOptions(NamedTuple):
    """`rate` is paints a second at most, None the usual; `mouse` None: on, except inside tmux and screen.

    `ascii_only` None: as the setting or the locale says.
    """

    rate: float | None = None
    theme: str = ""
    mouse: bool | None = None
    ascii_only: bool | None = None


def add_screen_flags(parser: argparse.ArgumentParser) -> None:
    look = parser.add_argument_group("the screen")
    look.add_argument("--theme", default="", metavar="NAME", help="its colours (default: what fits the terminal)")
    look.add_argument("--rate", type=_rate, metavar="HZ", help="paints a second at most (default 2; 1 on a thin link)")
    look.add_argument(
        "--mouse", action=argparse.BooleanOptionalAction, help="take the mouse (default: yes, except inside tmux)"
    )
    look.add_argument(
        "--ascii", action=argparse.BooleanOptionalAction,
        help=f"no glyphs beyond ASCII (default: {ASCII_SETTING}=1, or a locale without UTF-8)",
    )  # fmt: skip


def screen_options(args: argparse.Namespace) -> ScreenOptions:
    """Raises UsageError for a theme that is not there, before anything is started for the screen."""
    if args.theme:
        _check_theme(args.theme)
    return ScreenOptions(rate=args.rate, theme=args.theme, mouse=args.mouse, ascii_only=args.ascii)


def _check_theme(name: str) -> None:
    from atropos_tui.ui.themes import shipped_theme_files  # the screen loads it anyway
    from atropos_tui.ui.user_files import read_user_files

    names = [*shipped_theme_files(), *(theme.name for theme in read_user_files(config_directory()).themes)]
    if name not in names:
        raise UsageError(f"there is no theme {name!r}", f"the themes are {', '.join(names)}")


def _rate(text: str) -> float:
    lowest, highest = RATES
    try:
        rate = float(text)
    except ValueError:
        rate = 0.0
    if not lowest <= rate <= highest:
        raise argparse.ArgumentTypeError(f"{text!r} is not a rate from {lowest:g} to {highest:g}")
    return rate
