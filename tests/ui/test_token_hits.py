"""Searched words are found among tokens wherever they begin and end, and are marked under every lens."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from atropos_tui.ledger.outcomes import Outcome
from atropos_tui.monitor.group_detail import GroupDetail, RolloutDetail
from atropos_tui.ui.ink import Ground
from atropos_tui.ui.panes.rollout import RolloutPane
from atropos_tui.ui.views.rollout_text import View
from atropos_tui.ui.views.styled import hits_of
from atropos_tui.ui.views.token_hits import TokenHits
from atropos_tui.ui.views.token_view import Lens, TokenLayout, TokenView
from atropos_tui.ui.views.tokens import Tokens
from tests.ui.conftest import MakeApp
from tests.ui.opened_trajectories import Opened, alone, opened
from tests.ui.recorded import ended_rows
from tests.ui.recorded_chats import source_of_chats


def rollout(*pieces: str) -> RolloutDetail:
    return RolloutDetail(
        score=0.5, tokens=tuple(range(len(pieces))), pieces=pieces, masks=(1,) * len(pieces),
        logprobs=(-0.2,) * len(pieces), messages=({"role": "assistant", "content": "".join(pieces)},),
    )  # fmt: skip


def hits(pieces: tuple[str, ...], *words: str) -> TokenHits:
    searched = hits_of(words)
    assert searched is not None
    return TokenHits(Tokens(rollout(*pieces)), searched)


def marked(text: TokenView, line: int) -> str:
    return "".join(span.text for span in text[line].spans if span.ground is Ground.SELECTED)


@pytest.mark.parametrize(
    ("pieces", "words", "places", "within"),
    [
        (("the ", "bus", " stops"), ("BUS",), [(1, 0)], {0: [], 1: [(0, 3)], 2: []}),
        (("the b", "u", "s stops"), ("bus",), [(0, 4)], {0: [(4, 5)], 1: [(0, 1)], 2: [(0, 1)]}),
        (("bus bus",), ("bus",), [(0, 0), (0, 4)], {0: [(0, 3), (4, 7)]}),
        (("a", "", "bus"), ("bus",), [(2, 0)], {1: [], 2: [(0, 3)]}),
        (("ca", "", "fé"), ("café",), [(0, 0)], {0: [(0, 2)], 1: [(0, 2)], 2: [(0, 2)]}),
        (("bu", "\n", "s"), ("bus",), [], {0: [], 1: [], 2: []}),
    ],
)  # fmt: skip
def test_a_word_is_found_wherever_it_begins_and_ends(
    pieces: tuple[str, ...],
    words: tuple[str, ...],
    places: list[tuple[int, int]],
    within: dict[int, list[tuple[int, int]]],
) -> None:
    found = hits(pieces, *words)
    assert (found.places, len(found)) == (places, len(places))
    assert {token: found.within(token) for token in within} == within


def test_tokens_that_nobody_could_decode_have_no_hits() -> None:
    searched = hits_of(["1"])
    assert searched is not None
    assert len(TokenHits(Tokens(RolloutDetail(score=None, tokens=(1, 2, 1))), searched)) == 0


@pytest.mark.parametrize("lens", Lens)
def test_hits_are_marked_under_every_lens_and_the_lane_stays_below_its_text(lens: Lens) -> None:
    pieces = ("one ", "two t", "hree ", "four ", "thr", "ee")
    tokens = Tokens(rollout(*pieces))
    layout = TokenLayout(tokens, 10)
    plain = TokenView(layout, lens, cursor=0)
    found = TokenView(layout, lens, 0, hits(pieces, "three"))
    assert [line.plain for line in found] == [
        ("» " if number in found.hits else "  ") + line.plain for number, line in enumerate(plain)
    ]
    assert [line // 2 for line in found.hits] == [layout.row_of(1, 4), layout.row_of(4)]
    assert "".join(marked(found, line) for line in range(0, len(found), 2)) == "threethree"


def test_a_hit_deep_in_a_token_of_several_rows_is_in_the_row_that_shows_it() -> None:
    pieces = ("x" * 25 + "bus" + "y" * 10,)
    view = TokenView(TokenLayout(Tokens(rollout(*pieces)), 10), Lens.LOGPROB, cursor=1, found=hits(pieces, "bus"))
    assert list(view.hits) == [4]
    assert marked(view, 4) == "bus"


@asynccontextmanager
async def searching(make_app: MakeApp, *words: str, repeated: int = 200) -> AsyncIterator[Opened]:
    """The tokens of a long rollout that says `bus` now and then, after a search."""
    pieces = ("some ", "other ", "words ", "and ") * repeated
    text = (*pieces, "a b", "us, ", *pieces, "the bus ", "or bus", *pieces)
    async with opened(make_app, alone(rollout(*text))) as o:
        await o.filtered(" ".join(words))
        await o.press("enter", "v")
        await o.until(lambda: o.rollout.view is View.TOKENS)
        yield o


def line_of_hit_with_cursor(pane: RolloutPane) -> str:
    """The line with a mark at its left and the token cursor in it; empty if the cursor is not on such a line."""
    for line in pane.draw(pane.size.width, pane.size.height):
        if line.plain.startswith("│ » ") and any(span.ground is Ground.CURSOR for span in line.spans):
            return line.plain
    return ""


async def test_star_and_number_sign_go_from_word_to_word_with_the_cursor_and_around(make_app: MakeApp) -> None:
    async with searching(make_app, "bus") as o:
        assert (o.rollout.token, "hit 1 of 3" in "\n".join(o.painted())) == (800, True)
        assert line_of_hit_with_cursor(o.rollout)
        visited = []
        for key in ("asterisk", "asterisk", "asterisk", "number_sign"):
            await o.press(key)
            visited.append(o.rollout.token)
            assert line_of_hit_with_cursor(o.rollout)
        assert visited == [1602, 1603, 800, 1603]
        assert any("hit 3 of 3" in line for line in o.painted())


async def test_a_token_that_is_gone_to_from_the_messages_is_among_the_lines_that_are_shown(make_app: MakeApp) -> None:
    text = ("some ", "other ", "words ", "and ") * 400
    logprobs = [-0.2] * len(text)
    logprobs[1400] = -9.0
    row = replace(ended_rows(1)[0], outcome=Outcome.SKIPPED, scores=(0.5,), error="all scores are equal")
    detail = GroupDetail(row, (replace(rollout(*text), logprobs=tuple(logprobs)),), error="all scores are equal")
    async with opened(make_app, source_of_chats(detail)) as o:
        await o.filtered("other")
        await o.press("enter", "d", "d", "m")
        assert (o.rollout.view, o.rollout.token) == (View.TOKENS, 1400)
        lines = o.rollout.draw(o.rollout.size.width, o.rollout.size.height)
        assert any(span.ground is Ground.CURSOR and span.text == "some " for line in lines for span in line.spans)
        assert any("hit – of 400" in line for line in o.painted())
        await o.press("asterisk")
        assert any("hit 1 of 400" in line for line in o.painted())


async def test_hits_stay_marked_from_lens_to_lens_and_back_among_the_messages(make_app: MakeApp) -> None:
    async with searching(make_app, "bus") as o:
        for _ in Lens:
            await o.press("x")
            assert line_of_hit_with_cursor(o.rollout)
        await o.press("v")
        assert any("hit 1 of" in line for line in o.painted())
        await o.filtered("")
        await o.press("enter", "v", "asterisk")
        assert not any("»" in line for line in o.painted())
        assert o.last_said == "no words are searched: / first"


async def test_tokens_without_the_word_say_so_and_stand_at_the_left_edge(make_app: MakeApp) -> None:
    async with searching(make_app) as o:
        o.rollout.mark_words(("tram",))  # as of a search that found the group by another rollout
        await o.press("asterisk")
        assert o.last_said == "no searched word stands here"
        assert any(line.startswith("│ some other") for line in o.painted())


async def test_two_compared_rollouts_have_the_marks_of_both_and_their_common_cursor_stays(make_app: MakeApp) -> None:
    words = ("some ", "other ", "words ", "and ") * 100
    row = replace(ended_rows(1)[0], outcome=Outcome.DELIVERED, scores=(0.5, 1.0), error="")
    group = GroupDetail(row, (rollout(*words, "bus ", *words), rollout(*words, *words, "a b", "us")))
    async with opened(make_app, source_of_chats(group)) as o:
        await o.filtered("bus")
        await o.press("enter", "c", "v")
        token = o.rollout.token
        sides = []
        for _ in range(2):
            (line,) = [line for line in o.painted() if "» " in line]
            sides.append([("»" in half) for half in line[2:-2].split("│")])
            await o.press("asterisk")
        assert sides == [[True, False], [False, True]]
        assert o.rollout.token == token
        assert any("hit 1 of 2" in line for line in o.painted())
