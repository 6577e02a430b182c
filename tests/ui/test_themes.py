"""Theme files: the shipped ones are sound, and a broken one says what is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.color import Color
from textual.css.stylesheet import Stylesheet

from atropos_tui.errors import UsageError
from atropos_tui.ui.ink import Ground, Ink, Span
from atropos_tui.ui.themes import DEFAULT_THEME, Theme, load_theme, shipped_theme_files
from tests.ui.conftest import MakeApp, until

THEMES = {name: load_theme(path) for name, path in shipped_theme_files().items()}
COLOURED = [name for name, theme in THEMES.items() if not theme.ansi]


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


def test_a_shipped_theme_is_called_as_its_file_is() -> None:
    assert [theme.name for theme in THEMES.values()] == list(THEMES)


@pytest.mark.parametrize("name", COLOURED)
@pytest.mark.parametrize(
    ("ink", "least"), [("text", 7), ("dim", 4.4), ("accent", 4.4), ("good", 4), ("warn", 4), ("bad", 4)]
)
def test_text_is_legible_on_its_background(name: str, ink: str, least: float) -> None:
    colors = THEMES[name].colors
    assert contrast(getattr(colors, ink), colors.background) >= least


@pytest.mark.parametrize("name", COLOURED)
def test_text_is_legible_on_the_line_of_the_cursor_and_on_an_alarm(name: str) -> None:
    colors = THEMES[name].colors
    assert contrast(colors.text, colors.selected) >= 7
    assert contrast(colors.text, colors.alarm) >= 7


@pytest.mark.parametrize(
    ("environment", "theme"),
    [
        ({"TERM": "xterm-256color"}, "dusk"),
        ({"TERM": "screen-256color"}, "dusk"),
        ({"TERM": "linux", "COLORTERM": "truecolor"}, "dusk"),
        ({"TERM": "linux"}, "terminal"),
        ({"TERM": "xterm"}, "terminal"),
        ({"TERM": "xterm-256color", "NO_COLOR": "1"}, "terminal"),
    ],
)
def test_a_terminal_of_few_colours_keeps_its_own(
    monkeypatch: pytest.MonkeyPatch, make_app: MakeApp, environment: dict[str, str], theme: str
) -> None:
    monkeypatch.delenv("COLORTERM", raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert make_app(theme="").theme == theme


def test_an_unknown_theme_is_named_with_those_there_are(make_app: MakeApp) -> None:
    with pytest.raises(UsageError) as error:
        make_app(theme="dsuk")
    assert str(error.value) == "there is no theme 'dsuk'; the themes are dusk, dawn, midnight, terminal"


def test_the_high_contrast_theme_deserves_its_name() -> None:
    colors = THEMES["midnight"].colors
    assert contrast(colors.text, colors.background) == 21
    assert min(contrast(color, colors.background) for color in (colors.dim, colors.accent, colors.warn, colors.bad)) > 7


def test_without_colours_meaning_stays_in_bold_dim_and_reverse() -> None:
    theme = THEMES["terminal"]

    def attributes(span: Span) -> tuple[bool | None, ...]:
        style = theme.segment(span, None).style
        assert style is not None
        return style.bold, style.dim, style.reverse

    assert attributes(Span("x")) == (False, False, False)
    assert attributes(Span("x", Ink.DIM)) == (False, True, False)
    assert attributes(Span("x", Ink.TEXT, bold=True)) == (True, False, False)
    for ground in (Ground.SELECTED, Ground.CURSOR, Ground.ALARM):
        assert attributes(Span("x", Ink.DIM, ground=ground)) == (False, False, True)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (("#17181c", "blue"), "`background` is 'blue'; write it as #rrggbb"),
        (("dark = true", "dark = 1"), "`dark` is missing or not true or false"),
        (('dim = "#8d909a"', ""), "`dim` is missing or not a text"),
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


class TestStarting:
    """What the first picture waits for."""

    async def test_of_the_shipped_themes_only_the_one_in_use_is_read(
        self, make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        read: list[str] = []

        def noting(path: Path) -> Theme:
            read.append(path.stem)
            return load_theme(path)

        monkeypatch.setattr("atropos_tui.ui.looks.load_theme", noting)
        app = make_app(theme="dawn")
        async with app.run_test() as pilot:
            await until(pilot, lambda: app.moment.known)
            assert read == ["dawn"]
            await pilot.press("T")
            await until(pilot, lambda: app.theme == "midnight")
            assert read == ["dawn", "midnight"]

    async def test_the_style_sheets_are_parsed_once_with_the_colours_of_the_theme(
        self, make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        parsed_again: list[Stylesheet] = []
        monkeypatch.setattr(Stylesheet, "reparse", parsed_again.append)
        app = make_app(theme="dawn")
        async with app.run_test() as pilot:
            await until(pilot, lambda: app.moment.known)
            assert not parsed_again
            assert app.screen.styles.background.hex.lower() == THEMES["dawn"].colors.background
