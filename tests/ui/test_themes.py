"""Theme files: the shipped ones are sound, and a broken one says what is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.color import Color

from atropos_tui.errors import UsageError
from atropos_tui.ui.themes import DEFAULT_THEME, load_theme, shipped_themes

THEMES = shipped_themes()


def contrast(one: str, other: str) -> float:
    """WCAG 2.1 contrast ratio."""

    def luminance(text: str) -> float:
        parts = [part / 255 for part in Color.parse(text).rgb]
        linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    darker, lighter = sorted((luminance(one), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def test_a_dark_and_a_light_theme_are_shipped_and_the_default_comes_first() -> None:
    assert next(iter(THEMES)) == DEFAULT_THEME
    assert {theme.dark for theme in THEMES.values()} == {True, False}


@pytest.mark.parametrize("name", THEMES)
@pytest.mark.parametrize(
    ("ink", "least"), [("text", 7), ("dim", 4.4), ("accent", 4.4), ("good", 4), ("warn", 4), ("bad", 4)]
)
def test_text_is_legible_on_its_background(name: str, ink: str, least: float) -> None:
    colors = THEMES[name].colors
    assert contrast(getattr(colors, ink), colors.background) >= least


@pytest.mark.parametrize("name", THEMES)
def test_text_is_legible_on_the_line_of_the_cursor_and_on_an_alarm(name: str) -> None:
    colors = THEMES[name].colors
    assert contrast(colors.text, colors.selected) >= 7
    assert contrast(colors.text, colors.alarm) >= 7


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (("#17181c", "blue"), "`background` is 'blue'; write it as #rrggbb"),
        (("dark = true", "dark = 1"), "`dark` is missing or not a bool"),
        (('dim = "#8d909a"', ""), "`dim` is missing or not a str"),
        (("[colors]", "[colors]\nblink = '#000000'"), "unknown colour `blink`"),
        (("[colors]", "[colors"), "cannot read the theme"),
    ],
)
def test_a_broken_theme_names_file_key_and_remedy(tmp_path: Path, change: tuple[str, str], complaint: str) -> None:
    shipped = Path(__file__).parents[2] / "themes" / "dusk.toml"
    broken = tmp_path / "mine.toml"
    broken.write_text(shipped.read_text().replace(*change))
    with pytest.raises(UsageError) as error:
        load_theme(broken)
    assert complaint in str(error.value)
    assert "mine.toml" in str(error.value)
