"""Themes: TOML files that give each meaning a colour, checked when loaded and turned into Textual themes.

The shipped ones lie in `themes/`; a file of the same form anywhere else is as good.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any

from rich.color import Color
from rich.style import Style
from textual.theme import Theme as TextualTheme

from atropos_tui.errors import UsageError
from atropos_tui.ui.ink import Ground, Ink, Span

DEFAULT_THEME = "dusk"
_PACKAGE = Path(__file__).resolve().parents[1]
_HEX = re.compile(r"#[0-9a-fA-F]{6}")


@dataclass(frozen=True, slots=True)
class Colors:
    """Fourteen colours as `#rrggbb`; `themes/dusk.toml` says what each is for."""

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

    def style(self, span: Span, background: Color | None) -> Style:
        """The style of a span that stands on a widget of this background."""
        key = (span.ink, span.bold, span.ground, background)
        if key not in self._styles:
            self._styles[key] = self._make_style(span, background)
        return self._styles[key]

    def as_textual(self) -> TextualTheme:
        """The same colours for what Textual itself draws: screens, dialogs, scroll bars, inputs."""
        c = self.colors
        return TextualTheme(
            name=self.name,
            dark=self.dark,
            primary=c.accent,
            secondary=c.dim,
            accent=c.accent,
            success=c.good,
            warning=c.warn,
            error=c.bad,
            foreground=c.text,
            background=c.background,
            surface=c.raised,
            panel=c.raised,
            variables={
                "faint": c.faint,
                "dim": c.dim,
                "scrollbar": c.faint,
                "scrollbar-hover": c.dim,
                "scrollbar-active": c.accent,
                "scrollbar-background": c.background,
                "scrollbar-background-hover": c.background,
                "scrollbar-background-active": c.background,
                "input-selection-background": c.selected,
            },
        )

    @cached_property
    def _styles(self) -> dict[tuple[Ink, bool, Ground, Color | None], Style]:
        return {}

    def _make_style(self, span: Span, background: Color | None) -> Style:
        ink = getattr(self.colors, span.ink.value)
        match span.ground:
            case Ground.PLAIN:
                return Style(color=ink, bgcolor=background, bold=span.bold)
            case Ground.SELECTED:
                return Style(color=ink, bgcolor=self.colors.selected, bold=span.bold)
            case Ground.CURSOR:
                return Style(color=self.colors.background, bgcolor=ink, bold=span.bold)
            case Ground.BAND:
                return Style(color=ink, bgcolor=self.colors.band, bold=span.bold)
            case Ground.ALARM:
                return Style(color=self.colors.text, bgcolor=self.colors.alarm, bold=span.bold)


def shipped_themes() -> dict[str, Theme]:
    """All themes of the project by name, the default first. Raises UsageError if one of the files is broken."""
    themes = [load_theme(path) for path in sorted(_themes_directory().glob("*.toml"))]
    themes.sort(key=lambda theme: theme.name != DEFAULT_THEME)
    return {theme.name: theme for theme in themes}


def load_theme(path: Path) -> Theme:
    """Read and check one theme file. Raises UsageError that names the file, the key and what it should be."""
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"cannot read the theme {path}: {error}", "see themes/dusk.toml for the form") from error
    return Theme(
        name=_checked(raw, "name", str, path),
        dark=_checked(raw, "dark", bool, path),
        colors=_colors(_checked(raw, "colors", dict, path), path),
    )


def _colors(raw: dict[str, Any], path: Path) -> Colors:
    names = [field.name for field in fields(Colors)]
    unknown = sorted(set(raw) - set(names))
    if unknown:
        raise UsageError(f"theme {path}: unknown colour `{unknown[0]}`", f"the colours are {', '.join(names)}")
    for name in names:
        if not _HEX.fullmatch(_checked(raw, name, str, path)):
            raise UsageError(f"theme {path}: `{name}` is {raw[name]!r}", "write it as #rrggbb")
    return Colors(**raw)


def _checked(raw: dict[str, Any], key: str, kind: type, path: Path) -> Any:
    if not isinstance(raw.get(key), kind):
        raise UsageError(f"theme {path}: `{key}` is missing or not a {kind.__name__}", "see themes/dusk.toml")
    return raw[key]


def _themes_directory() -> Path:
    """Inside the wheel, or at the top of the source tree."""
    inside = _PACKAGE / "_shipped" / "themes"
    return inside if inside.is_dir() else _PACKAGE.parent / "themes"
