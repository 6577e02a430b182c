"""The ASCII mode: what draws the screen has no glyph outside of ASCII, in any screen, and nothing moves."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len
from rich.segment import Segment
from textual.color import Color
from textual.pilot import Pilot

import atropos_tui.ui
from atropos_tui.errors import UsageError
from atropos_tui.locale_characters import locale_speaks_unicode
from atropos_tui.ui.app import AtroposApp
from atropos_tui.ui.glyphs import SETTING, AsciiGlyphs, wants_ascii
from atropos_tui.ui.user_files import read_user_files
from tests.ui.conftest import MakeApp, until
from tests.ui.recorded_chats import chat_group, hostile_group, source_of_chats


def in_ascii(text: str, *, strict: bool = False) -> str:
    (segment,) = AsciiGlyphs(strict=strict).apply([Segment(text)], Color(0, 0, 0))
    return segment.text


def strings_of_the_screen() -> Iterator[tuple[Path, str]]:
    """All string constants of the screen but its docstrings."""
    for path in Path(atropos_tui.ui.__file__).parent.rglob("*.py"):
        if path.name == "glyphs.py":
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        docstrings = {
            id(node.body[0].value)
            for node in ast.walk(tree)
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
            and node.body and isinstance(node.body[0], ast.Expr)
        }  # fmt: skip
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
                yield path, node.value


def test_every_glyph_that_the_screen_may_draw_has_one_in_ascii_of_its_width() -> None:
    for path, text in strings_of_the_screen():
        # What stands for characters of models is made of escapes, such as the ranges of a regular expression.
        drawn = "".join(character for character in text if character >= " " and not 0x7F <= ord(character) < 0xA1)
        if path.name == "text_safety.py" and "[" in text:
            continue
        assert in_ascii(drawn).isascii(), (path.name, text)
        assert cell_len(in_ascii(drawn)) == cell_len(drawn), (path.name, text)


def test_charts_of_dots_keep_their_shape() -> None:
    assert in_ascii("\u2800⠉⠒⣀⣿⠁⡀") == " '-.-'."


def test_words_of_models_stay_unless_the_terminal_has_no_unicode() -> None:
    assert in_ascii("漢字 é") == "漢字 é"
    assert in_ascii("漢字 é", strict=True) == "???? ?"


@pytest.mark.parametrize(
    ("environ", "speaks"),
    [
        ({}, True),
        ({"LANG": "en_US.UTF-8"}, True),
        ({"LANG": "C"}, False),
        ({"LANG": "de_DE.ISO-8859-1"}, False),
        ({"LC_ALL": "C", "LANG": "en_US.UTF-8"}, False),
        ({"LC_CTYPE": "C.utf8", "LANG": "C"}, True),
        ({"LC_ALL": "", "LANG": "en_US.UTF-8"}, True),
    ],
)
def test_the_locale_tells_whether_there_is_unicode(environ: dict[str, str], speaks: bool) -> None:
    assert locale_speaks_unicode(environ) is speaks


def test_the_flag_comes_before_the_environment_before_the_file_before_the_locale(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    assert wants_ascii(None) is None
    (tmp_path / "config.toml").write_text("[screen]\nascii = true\n")
    configured = read_user_files(tmp_path).screen.ascii_only
    assert wants_ascii(None, configured) is not None
    monkeypatch.setenv(SETTING, "0")
    assert wants_ascii(None, configured) is None
    assert wants_ascii(True, configured) is not None
    monkeypatch.setenv(SETTING, "perhaps")
    with pytest.raises(UsageError, match="set it to 1 or 0"):
        wants_ascii(None)
    monkeypatch.delenv(SETTING)
    monkeypatch.setenv("LC_ALL", "C")
    assert wants_ascii(None) is not None
    assert wants_ascii(False) is None


@pytest.mark.parametrize("content", ["[screen]\nascii = 1\n", "[screen]\ncolour = true\n", "screen = 3\n"])
def test_a_wrong_setting_in_the_file_is_named(tmp_path: Path, content: str) -> None:
    (tmp_path / "config.toml").write_text(content)
    with pytest.raises(UsageError, match="ascii = true or false"):
        read_user_files(tmp_path)


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60)], ids="{0[0]}x{0[1]}".format)
async def test_no_screen_draws_anything_but_ascii(make_app: MakeApp, size: tuple[int, int]) -> None:
    app = make_app(source=source_of_chats(chat_group()), ascii_only=True)
    async with app.run_test(size=size) as pilot:
        await until(pilot, lambda: app.moment.known)
        for keys in (
            (), ("z",), ("question_mark",), ("escape", "z", "l"), ("e",), ("a",), ("escape", "q"), ("escape", "colon"),
            ("escape", "t"), ("enter", "o", "D"), ("c",), ("v",), ("x",), ("x",), ("x",), ("c", "i"), ("B",),
            ("escape", "slash"), ("escape", "S"),
        ):  # fmt: skip
            await pilot.press(*keys)
            await pilot.pause()
            assert_ascii(app, pilot, keys)


def assert_ascii(app: AtroposApp, pilot: Pilot[Any], keys: tuple[str, ...]) -> None:
    del pilot
    width, height = app.size
    for y, strip in enumerate(app.screen._compositor.render_strips(app.size)):
        line = "".join(segment.text for segment in strip)
        assert line.isascii(), (keys, y, line)
        assert cell_len(line) == width
    assert height


async def test_without_unicode_the_text_of_models_is_ascii_too(
    make_app: MakeApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LC_ALL", "C")
    app = make_app(source=source_of_chats(hostile_group()))
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: app.moment.known)
        await pilot.press("t", "enter")
        await pilot.pause()
        assert_ascii(app, pilot, ("t", "enter"))
