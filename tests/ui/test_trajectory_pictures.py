"""What the trajectories look like: SVG snapshots. Look at them before accepting changes (`--snapshot-update`)."""

from __future__ import annotations

import pytest

from tests.ui.conftest import MakeApp
from tests.ui.recorded_chats import chat_group, hostile_group, source_of_chats
from tests.ui.test_pictures import SIZES, MiddleLayout, SmallLayout, SnapCompare, WideLayout, pressing

each_size = pytest.mark.parametrize("size", SIZES, ids="{0[0]}x{0[1]}".format)


@each_size
@pytest.mark.parametrize(
    ("what", "keys"),
    [
        ("list", ("t",)),
        ("messages", ("t", "enter", "t", "t", "o", "D")),
        ("facts", ("t", "enter", "i")),
        ("two_rollouts", ("t", "enter", "c")),
        ("search", ("t", "slash", *"bus", "enter", "enter")),
        ("filter", ("t", "slash", *"score<low", "enter")),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_trajectories(
    snap_compare: SnapCompare, make_app: MakeApp, size: tuple[int, int], what: str, keys: tuple[str, ...]
) -> None:
    del what
    app = make_app(source=source_of_chats(chat_group()))
    assert snap_compare(app, terminal_size=size, run_before=pressing(*keys))


@pytest.mark.parametrize("lens", ["logprob", "advantage", "reference", "mask"])
@pytest.mark.parametrize("theme", ["dusk", "terminal"])
def test_the_tokens_of_a_rollout_under_each_lens(
    snap_compare: SnapCompare, make_app: MakeApp, lens: str, theme: str
) -> None:
    turns = ["logprob", "advantage", "reference", "mask"].index(lens)
    app = make_app(source=source_of_chats(chat_group()), theme=theme)
    keys = ("t", "enter", "w", "v", *("x",) * turns)
    assert snap_compare(app, terminal_size=MiddleLayout, run_before=pressing(*keys))


@pytest.mark.parametrize("theme", ["dusk", "terminal"])
def test_searched_words_among_the_tokens(snap_compare: SnapCompare, make_app: MakeApp, theme: str) -> None:
    app = make_app(source=source_of_chats(chat_group()), theme=theme)
    keys = ("t", "slash", *"bus", "enter", "enter", "v", "asterisk")
    assert snap_compare(app, terminal_size=MiddleLayout, run_before=pressing(*keys))


def test_the_tokens_of_two_rollouts_where_they_part(snap_compare: SnapCompare, make_app: MakeApp) -> None:
    app = make_app(source=source_of_chats(chat_group()))
    keys = ("t", "enter", "c", "apostrophe")
    assert snap_compare(app, terminal_size=WideLayout, run_before=pressing(*keys))


def test_the_list_alone_in_another_order(snap_compare: SnapCompare, make_app: MakeApp) -> None:
    app = make_app(source=source_of_chats(chat_group()))
    assert snap_compare(app, terminal_size=WideLayout, run_before=pressing("t", "z", "S", "B"))


def test_a_group_that_failed_shows_its_traceback(snap_compare: SnapCompare, make_app: MakeApp) -> None:
    assert snap_compare(make_app(), terminal_size=SmallLayout, run_before=pressing("t", "enter"))


def test_hostile_text_of_a_model_is_shown_and_breaks_nothing(snap_compare: SnapCompare, make_app: MakeApp) -> None:
    app = make_app(source=source_of_chats(hostile_group()))
    assert snap_compare(app, terminal_size=MiddleLayout, run_before=pressing("t", "enter"))


@pytest.mark.parametrize("keys", [(), ("t", "enter"), ("t", "enter", "v")], ids=["dashboard", "messages", "tokens"])
def test_the_screen_in_ascii(snap_compare: SnapCompare, make_app: MakeApp, keys: tuple[str, ...]) -> None:
    app = make_app(source=source_of_chats(chat_group()), ascii_only=True)
    assert snap_compare(app, terminal_size=MiddleLayout, run_before=pressing(*keys))
