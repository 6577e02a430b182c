"""Themes: TOML files that give each meaning a colour, checked when loaded and turned into Textual themes.

The shipped ones lie in `themes/`; a file of the same form anywhere else is as good.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any

from rich.color import Color
from rich.segment import Segment
from rich.style import Style
from textual.theme import Theme as TextualTheme

from atropos_tui.errors import UsageError
from atropos_tui.shipped import shipped_directory
from atropos_tui.ui.ink import Ground, Ink, Span

DEFAULT_THEME = "dusk"
PLAIN_THEME = "terminal"
_HEX = re.compile(r"#[0-9a-fA-F]{6}")
_ANSI = frozenset({"default", *(f"{bright}{name}" for bright in ("", "bright_") for name in (
    "black", "red", "green", "yellow", "blue", "magenta", "cyan", "white",
))})  # fmt: skip

_KINDS = {str: "a text", bool: "true or false", dict: "a table"}

# What stands for the band behind a trend where there is no colour for its ground.
_SHADE = "░"

# What the style sheets of Textual itself ask for and do not get from an ansi theme by themselves.
_ANSI_VARIABLES = {
    "ansi-background": "ansi_default",
    "ansi-foreground": "ansi_default",
    "screen-selection-background": "ansi_bright_blue",
    "screen-selection-foreground": "ansi_black",
}


@dataclass(frozen=True, slots=True)
class Colors:
    """Fourteen colours, `#rrggbb` or (in an ansi theme) names; `themes/dusk.toml` says what each is for."""

    background: str
    raised: str
    text: str
    dim: str
    faint: str
    accent: str
    chart: str
    good: str
    warn: str
    bad: str
    spike: str
    selected: str
    band: str
    alarm: str


@dataclass(frozen=True)
class Theme:
    """One theme, and the styles that it gives to spans."""

    name: str
    dark: bool
    colors: Colors
    ansi: bool = False

    def segment(self, span: Span, background: Color | None) -> Segment:
        """A span as it is painted on a widget of this background."""
        key = (span.ink, span.bold, span.ground, background)
        if key not in self._styles:
            self._styles[key] = self._make_style(span, background)
        text = _shaded(span) if self.ansi and span.ink is Ink.BAND else span.text
        return Segment(text, self._styles[key])

    def as_textual(self) -> TextualTheme:
        """The same colours for what Textual itself draws: screens, dialogs, scroll bars, inputs."""
        c = {name: f"ansi_{color}" if self.ansi else color for name, color in asdict(self.colors).items()}
        return TextualTheme(
            name=self.name,
            dark=self.dark,
            ansi=self.ansi,
            primary=c["accent"],
            secondary=c["dim"],
            accent=c["accent"],
            success=c["good"],
            warning=c["warn"],
            error=c["bad"],
            foreground=c["text"],
            background=c["background"],
            surface=c["raised"],
            panel=c["raised"],
            variables={
                "scrollbar": c["faint"],
                "scrollbar-hover": c["dim"],
                "scrollbar-active": c["accent"],
                "scrollbar-background": c["background"],
                "scrollbar-background-hover": c["background"],
                "scrollbar-background-active": c["background"],
                **(_ANSI_VARIABLES if self.ansi else {}),
            },
        )

    @cached_property
    def _styles(self) -> dict[tuple[Ink, bool, Ground, Color | None], Style]:
        return {}

    def _make_style(self, span: Span, background: Color | None) -> Style:
        if self.ansi:
            return self._make_ansi_style(span)
        ink = getattr(self.colors, span.ink.value)
        match span.ground:
            case Ground.PLAIN:
                return Style(color=ink, bgcolor=background, bold=span.bold)
            case Ground.SELECTED:
                return Style(color=ink, bgcolor=self.colors.selected, bold=span.bold)
            case Ground.BAND:
                return Style(color=ink, bgcolor=self.colors.band, bold=span.bold)
            case Ground.CURSOR:
                return Style(color=self.colors.background, bgcolor=ink, bold=span.bold)
            case Ground.ALARM:
                return Style(color=self.colors.text, bgcolor=self.colors.alarm, bold=span.bold)

    def _make_ansi_style(self, span: Span) -> Style:
        """Grounds are reversed and quiet inks dimmed, so that without any colour they are still told apart."""
        stands_out = span.ground not in (Ground.PLAIN, Ground.BAND)
        ink = self.colors.alarm if span.ground is Ground.ALARM else getattr(self.colors, span.ink.value)
        return Style(
            color=ink,
            bgcolor=self.colors.background,
            bold=span.bold,
            dim=span.ink in (Ink.DIM, Ink.FAINT, Ink.BAND) and not stands_out,
            reverse=stands_out,
        )


def shipped_theme_files() -> dict[str, Path]:
    """The files of the project's themes by the name of the theme, the default first."""
    files = sorted(shipped_directory("themes").glob("*.toml"), key=lambda path: (path.stem != DEFAULT_THEME, path.stem))
    return {path.stem: path for path in files}


def load_theme(path: Path) -> Theme:
    """Read and check one theme file. Raises UsageError that names the file, the key and what it should be."""
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"cannot read the theme {path}: {error}", _see_example()) from error
    return Theme(
        name=_checked(raw, "name", str, path),
        dark=_checked(raw, "dark", bool, path),
        colors=_colors(_checked(raw, "colors", dict, path), ansi=raw.get("ansi") is True, path=path),
        ansi=raw.get("ansi") is True,
    )


def _shaded(span: Span) -> str:
    """A part of the band, visible without a ground of its own."""
    if span.ground is Ground.BAND:
        return _SHADE * len(span.text)
    return span.text.replace("▀", _SHADE).replace("▄", _SHADE)


def _colors(raw: dict[str, Any], *, ansi: bool, path: Path) -> Colors:
    names = [field.name for field in fields(Colors)]
    unknown = sorted(set(raw) - set(names))
    if unknown:
        raise UsageError(f"theme {path}: unknown colour `{unknown[0]}`", f"the colours are {', '.join(names)}")
    for name in names:
        color = _checked(raw, name, str, path)
        if ansi and color not in _ANSI:
            raise UsageError(f"theme {path}: `{name}` is {color!r}", "an ansi theme has names such as bright_red")
        if not ansi and not _HEX.fullmatch(color):
            raise UsageError(f"theme {path}: `{name}` is {color!r}", "write it as #rrggbb")
    return Colors(**raw)


def _checked(raw: dict[str, Any], key: str, kind: type, path: Path) -> Any:
    if not isinstance(raw.get(key), kind):
        raise UsageError(f"theme {path}: `{key}` is missing or not {_KINDS[kind]}", _see_example())
    return raw[key]


def _see_example() -> str:
    return f"see {shipped_theme_files()[DEFAULT_THEME]} for the form"
