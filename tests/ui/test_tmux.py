"""The screen inside a real tmux, where operators keep it: drawn at every size, usable, and gone without a trace."""

from __future__ import annotations

import asyncio
import base64
import re
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from atropos_tui.ui.app import AtroposApp
from atropos_tui.ui.exporting import rollout_as_text
from atropos_tui.ui.leaving import DETACH, STOP
from atropos_tui.ui.themes import DEFAULT_THEME
from tests.end_to_end.marked_processes import wait_until
from tests.ui.conftest import until
from tests.ui.recorded import RecordedSource, running
from tests.ui.tmux_server import PATIENCE, TmuxServer

SMALL, MIDDLE, ODD = (80, 24), (120, 40), (97, 31)
NEWEST_WITH_ROLLOUTS = 1386
PROGRAM = "tests.ui.recorded_app"
APP = f"{sys.executable} -m {PROGRAM} running"

pytestmark = pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")


@pytest.fixture
def tmux() -> Iterator[TmuxServer]:
    server = TmuxServer()
    try:
        yield server
    finally:
        server.end()


@pytest.fixture
def app(tmux: TmuxServer) -> TmuxServer:
    """A window of 80×24 with the app's first picture in it."""
    tmux.start("screen-256color", *SMALL)
    tmux.type(f"set +m; {APP}")  # a shell with job control would take the terminal when the app is stopped
    tmux.wait_for_picture(painted(SMALL))
    return tmux


def painted(size: tuple[int, int], *keys: str) -> list[str]:
    """What the app paints without a terminal at this size when the keys were pressed; without blanks at the ends."""

    async def paint() -> list[str]:
        app = AtroposApp(RecordedSource(running()), on_quit=(STOP, DETACH), clock=lambda: 0.0, theme=DEFAULT_THEME)
        async with app.run_test(size=size) as pilot:
            await until(pilot, lambda: app.moment.known)
            await pilot.press(*keys)
            await pilot.pause()
            strips = app.screen._compositor.render_strips(app.size)
            return ["".join(segment.text for segment in strip).rstrip() for strip in strips]

    return asyncio.run(paint())


@pytest.mark.parametrize("term", ["screen-256color", "tmux-256color"])
def test_the_first_picture_is_whole_and_in_256_colours(tmux: TmuxServer, term: str) -> None:
    tmux.start(term, *SMALL)
    tmux.type(APP)
    tmux.wait_for_picture(painted(SMALL))
    assert {line[-1] for line in tmux.lines() if line[0] in "╭│╰"} == {"╮", "│", "╯"}
    with_colours = tmux("capture-pane", "-p", "-e")
    assert len(set(re.findall(r"\x1b\[38;5;\d+m", with_colours))) > 4
    assert "\x1b[38;2;" not in with_colours


def test_a_pane_is_zoomed_and_comes_back(app: TmuxServer) -> None:
    app.press("z")
    app.wait_for_picture(painted(SMALL, "z"))
    app.press("Escape")
    app.wait_for_picture(painted(SMALL))


def test_keys_that_come_at_once_act_one_after_the_other(app: TmuxServer) -> None:
    app.press("2", "z")
    app.wait_for_picture(painted(SMALL, "2", "z"))


def test_it_is_drawn_anew_at_every_size(app: TmuxServer) -> None:
    for size in (MIDDLE, ODD, SMALL):
        app.resize(*size)
        app.wait_for_picture(painted(size))


def test_of_many_sizes_in_quick_succession_the_last_is_drawn(app: TmuxServer) -> None:
    for number in range(25):
        app.resize(80 + number, 24 + number % 7)
    app.resize(*MIDDLE)
    app.wait_for_picture(painted(MIDDLE))


def test_what_the_window_lost_is_drawn_anew_when_it_has_its_old_size_again(app: TmuxServer) -> None:
    app.send_signal(signal.SIGSTOP, PROGRAM)
    app.resize(40, 10)
    app.resize(*SMALL)
    assert app.lines() != painted(SMALL)
    app.send_signal(signal.SIGCONT, PROGRAM)
    app.wait_for_picture(painted(SMALL))


def test_what_something_else_wrote_is_painted_over_on_demand(app: TmuxServer) -> None:
    Path(app.says("pane_tty")).write_text("\x1b[3;1HBroadcast message from root: reboot at noon")
    app.wait_for("Broadcast message")
    app.press("L")
    app.wait_for_picture(painted(SMALL))


def test_the_window_says_how_large_it_is_not_the_environment(tmux: TmuxServer) -> None:
    tmux.start("screen-256color", *ODD)
    tmux.type(f"COLUMNS=80 LINES=24 {APP}")
    tmux.wait_for_picture(painted(ODD))
    tmux.resize(*MIDDLE)
    tmux.wait_for_picture(painted(MIDDLE))


def test_the_mouse_is_tmuxs_until_a_key_takes_it(app: TmuxServer) -> None:
    assert app.says("mouse_any_flag") == "0"
    for taken in ("1", "0"):
        app.press("M")
        wait_until(lambda taken=taken: app.says("mouse_any_flag") == taken, within=PATIENCE)  # type: ignore[misc]


@pytest.mark.parametrize("setting", ["on", "external", "off"])
def test_what_is_copied_reaches_tmux_and_its_terminal_whatever_is_set(app: TmuxServer, setting: str) -> None:
    app("set-option", "-s", "set-clipboard", setting)
    with app.attach(*SMALL) as client:
        client.wait_for_picture(painted(SMALL))
        text = copied_rollout(app, "copied into tmux")
        assert app("show-buffer") == text
        sequence = b"\x1b]52;c?;" + re.escape(base64.b64encode(text.encode()))
        wait_until(lambda: re.search(sequence, client.read()), within=PATIENCE)


def test_what_is_copied_at_the_other_end_of_ssh_reaches_a_tmux_that_takes_it(tmux: TmuxServer) -> None:
    tmux.start("screen-256color", *SMALL)
    tmux("set-option", "-s", "set-clipboard", "on")
    tmux.type(f"env -u TMUX {APP}")
    tmux.wait_for_picture(painted(SMALL))
    text = copied_rollout(tmux, "sent to the terminal's clipboard")
    wait_until(lambda: tmux("show-buffer") == text, within=PATIENCE)


def copied_rollout(app: TmuxServer, answer: str) -> str:
    """The text of a rollout that was copied with this answer on the screen."""
    app.press("t")
    app.wait_for(str(NEWEST_WITH_ROLLOUTS))
    app.press("j", "Enter")
    app.wait_for(f"group {NEWEST_WITH_ROLLOUTS}")
    app.press("y")
    app.wait_for_note(answer)
    return rollout_as_text(asyncio.run(RecordedSource(running()).group(NEWEST_WITH_ROLLOUTS)).rollouts[0])


def test_who_attaches_sees_it_in_the_size_of_the_own_terminal(app: TmuxServer) -> None:
    for size in (MIDDLE, ODD):
        with app.attach(*size) as client:
            client.wait_for_picture(painted(size))
            app("detach-client")
            wait_until(lambda client=client: client.read() and not client.child.isalive(), within=PATIENCE)  # type: ignore[misc]


def test_a_client_that_is_cut_off_leaves_it_running(app: TmuxServer) -> None:
    with app.attach(*SMALL) as cut_off:
        cut_off.wait_for_picture(painted(SMALL))
        cut_off.child.kill(signal.SIGKILL)
    app.press("z")
    with app.attach(*MIDDLE) as client:
        client.wait_for_picture(painted(MIDDLE, "z"))


def test_it_leaves_the_shell_its_terminal(tmux: TmuxServer, tmp_path: Path) -> None:
    tmux.start("screen-256color", *SMALL)
    before, after = tmp_path / "before", tmp_path / "after"
    settings_into(before, tmux)
    shown = tmux.lines()
    tmux.type(APP)
    tmux.wait_for_picture(painted(SMALL))
    assert tmux.says("alternate_on") == "1"
    tmux.press("q")
    tmux.wait_for("Leave reverse_strings?")
    tmux.press("d")
    tmux.wait_for("answer 'detach'")
    settings_into(after, tmux)
    assert after.read_text() == before.read_text()
    assert tmux.lines()[: len(shown) - 1] == shown[:-1]  # the last line is the prompt
    assert [tmux.says(flag) for flag in ("alternate_on", "cursor_flag", "mouse_any_flag")] == ["0", "1", "0"]


def settings_into(path: Path, tmux: TmuxServer) -> None:
    """Let the shell write how its terminal is set: echo, lines, signals and all else."""
    tmux.type(f"stty -g > {path}")
    wait_until(lambda: path.exists() and path.read_text().endswith("\n"), within=PATIENCE)
