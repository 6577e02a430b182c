"""The trajectories: each key does what the key table says, and says so when it cannot."""

from __future__ import annotations

import json
import os
import stat
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from atropos_tui.ledger.outcomes import Outcome
from atropos_tui.monitor.snapshot import GroupDetail, RolloutDetail
from atropos_tui.ui.dashboard import DashboardScreen
from atropos_tui.ui.entry_bar import EntryBar
from atropos_tui.ui.keys import Scope, commands
from atropos_tui.ui.panes.group_list import GroupListPane
from atropos_tui.ui.panes.rollout import RolloutPane
from atropos_tui.ui.trajectories import TrajectoriesScreen
from atropos_tui.ui.views.rollout_text import View
from atropos_tui.ui.views.token_view import Lens
from atropos_tui.ui.widgets.canvas import Canvas
from tests.ui.conftest import ListenedApp, MakeApp, until
from tests.ui.recorded import RecordedSource, ended_rows, running
from tests.ui.recorded_chats import chat_group, hostile_group, source_of_chats


@dataclass
class Opened:
    pilot: Pilot[Any]
    app: ListenedApp
    groups: GroupListPane
    rollout: RolloutPane

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)
        await self.pilot.pause()

    async def until(self, condition: Callable[[], object]) -> None:
        await until(self.pilot, condition)

    async def group(self, group_id: int) -> None:
        """Until this group is shown."""
        await self.until(lambda: self.rollout.detail is not None and self.rollout.detail.row.group_id == group_id)

    async def filtered(self, text: str) -> None:
        await self.press("slash")
        entry = self.app.screen.query_one(EntryBar)
        entry.input.value = text
        await self.press("enter")

    def painted(self) -> list[str]:
        return painted(self.rollout)

    @property
    def last_said(self) -> str:
        return self.app.said[-1] if self.app.said else ""


def painted(canvas: Canvas) -> list[str]:
    return ["".join(segment.text for segment in canvas.render_line(y)) for y in range(canvas.size.height)]


@asynccontextmanager
async def opened(
    make_app: MakeApp, source: RecordedSource | None = None, size: tuple[int, int] = (120, 40)
) -> AsyncIterator[Opened]:
    app = make_app(source=source) if source else make_app()
    async with app.run_test(size=size) as pilot:
        await until(pilot, lambda: app.moment.known)
        await pilot.press("t")
        await until(pilot, lambda: isinstance(app.screen, TrajectoriesScreen) and app.screen.query(RolloutPane))
        groups, rollout = app.screen.query_one(GroupListPane), app.screen.query_one(RolloutPane)
        await until(pilot, lambda: rollout.detail is not None)
        yield Opened(pilot, app, groups, rollout)


@pytest.fixture
def chats(make_app: MakeApp) -> Callable[..., AbstractAsyncContextManager[Opened]]:
    """Trajectories whose newest group is one of long chats."""
    return lambda **options: opened(make_app, source_of_chats(chat_group()), **options)


Chats = Callable[..., AbstractAsyncContextManager[Opened]]


def alone(rollout: RolloutDetail) -> RecordedSource:
    """A run whose newest group is this one rollout."""
    row = replace(ended_rows(1)[0], outcome=Outcome.DELIVERED, scores=(0.5,), error="", item="the item")
    return source_of_chats(GroupDetail(row=row, rollouts=(rollout,)))


class TestRollouts:
    async def test_n_and_p_step_through_the_rollouts_and_around(self, make_app: MakeApp) -> None:
        async with opened(make_app) as o:
            await o.press("N")
            await o.until(lambda: len(o.rollout.rollouts) == 8)
            await o.press("n", "right", "p")
            assert o.rollout.rollout == 1
            await o.press("left", "p")
            assert o.rollout.rollout == 7

    async def test_b_and_w_find_the_best_and_the_worst_rollout(self, chats: Chats) -> None:
        async with chats() as o:
            await o.press("w")
            assert o.rollout.rollout == 3
            await o.press("b")
            assert o.rollout.rollout == 0

    async def test_with_one_rollout_there_is_nothing_to_step_to_or_compare(self, make_app: MakeApp) -> None:
        async with opened(make_app, alone(RolloutDetail(score=None))) as o:
            for key in ("n", "p", "c"):
                await o.press(key)
                assert o.last_said == "this group has one rollout"
            await o.press("b")
            assert o.last_said == "no rollout of this group has a score"
            await o.press("C")
            assert o.last_said == "no two rollouts are compared: c first"

    async def test_a_group_of_which_nothing_is_kept_has_no_rollout(self, make_app: MakeApp) -> None:
        async with opened(make_app) as o:
            for key in ("n", "b", "w", "c"):
                await o.press(key)
                assert o.last_said == "there is no rollout"
            for key in ("m", "full_stop", "comma", "semicolon"):
                await o.press(key)
                assert o.last_said == "this rollout has no tokens"

    async def test_c_compares_with_the_best_from_the_first_difference_on(self, chats: Chats) -> None:
        async with chats() as o:
            await o.press("w", "c")
            assert (o.rollout.rollout, o.rollout.beside) == (3, 0)
            one, other = (o.rollout.rollouts[index].tokens for index in (3, 0))
            assert one[: o.rollout.token] == other[: o.rollout.token]
            assert one[o.rollout.token] != other[o.rollout.token]
            await o.press("C")
            assert o.rollout.beside == 1
            await o.press("c")
            assert o.rollout.beside is None

    async def test_messages_of_two_rollouts_scroll_as_one(self, chats: Chats) -> None:
        async with chats() as o:
            await o.press("enter", "c", "t", "t")
            heading = next(line for line in o.painted() if "assistant" in line)
            assert heading.count("assistant  3/5") == 2

    async def test_apostrophe_goes_to_where_two_rollouts_part(self, chats: Chats) -> None:
        async with chats() as o:
            await o.press("apostrophe")
            assert o.last_said == "no two rollouts are compared: c first"
            await o.press("c")
            difference = o.rollout.token
            await o.press("full_stop", "full_stop", "apostrophe")
            assert (o.rollout.token, o.rollout.view) == (difference, View.TOKENS)


class TestMessages:
    async def test_t_and_parentheses_step_through_the_turns_and_around(self, chats: Chats) -> None:
        async with chats(size=(80, 24)) as o:
            await o.press("enter", "t")
            assert "user  2/5" in o.painted()[6]
            await o.press("right_parenthesis")
            assert "assistant  3/5" in o.painted()[6]
            await o.press("left_parenthesis")
            assert "user  2/5" in o.painted()[6]
            await o.press("end", "t")
            assert "system  1/5" in o.painted()[6]

    async def test_turns_are_not_in_the_tokens(self, chats: Chats) -> None:
        async with chats() as o:
            await o.press("v", "t")
            assert o.last_said == "turns are in the messages: v"

    async def test_o_unfolds_the_reasoning_and_folds_it(self, chats: Chats) -> None:
        async with chats() as o:
            assert not any("I should compute this" in line for line in o.painted())
            await o.press("o")
            assert any("I should compute this" in line for line in o.painted())
            await o.press("o")
            assert not any("I should compute this" in line for line in o.painted())

    async def test_unfolding_keeps_the_message_that_is_read_in_its_place(self, chats: Chats) -> None:
        async with chats(size=(80, 24)) as o:
            await o.press("enter", "t", "t", "t")
            top = o.painted()[6]
            assert "tool  4/5" in top
            await o.press("o")
            assert o.painted()[6] == top

    async def test_capital_d_shows_markdown(self, chats: Chats) -> None:
        async with chats(size=(120, 60)) as o:
            assert any("**bus**" in line for line in o.painted())
            await o.press("D")
            assert not any("**" in line for line in o.painted())
            assert any("• the train has gone 100 km" in line for line in o.painted())
            assert "markdown" in o.painted()[0]

    async def test_hostile_text_is_shown_in_full_and_obeyed_nowhere(self, make_app: MakeApp) -> None:
        async with opened(make_app, source_of_chats(hostile_group())) as o:
            shown = "\n".join(o.painted())
            for stand_in in ("‹ESC›[31mred", "‹BEL›", "‹BS›‹BS›", "‹NUL›", "‹RLO›evil‹PDF›", "zero‹ZWSP›width‹ZWJ›",
                             "‹U+DC80›", "‹U+E0041›", "[bold]markup[/bold]", "漢字かな", "שלום", "سلام"):  # fmt: skip
                assert stand_in in shown
            assert not any(ord(character) < 32 for line in o.painted() for character in line)


class TestTokens:
    async def test_v_changes_between_messages_and_tokens_and_x_the_lens(self, chats: Chats) -> None:
        async with chats() as o:
            await o.press("v")
            assert (o.rollout.view, o.rollout.lens) == (View.TOKENS, Lens.LOGPROB)
            for lens in (Lens.ADVANTAGE, Lens.REFERENCE, Lens.MASK, Lens.LOGPROB):
                await o.press("x")
                assert o.rollout.lens is lens
                assert lens in o.painted()[0]
            await o.press("v")
            assert o.rollout.view is View.MESSAGES

    async def test_the_reference_lens_says_when_there_is_no_reference(self, make_app: MakeApp) -> None:
        async with opened(make_app) as o:
            await o.press("N")
            await o.until(lambda: len(o.rollout.rollouts) == 8)
            await o.press("v", "x", "x")
            assert any("no ref_logprobs, no distill_logprobs" in line for line in o.painted())

    async def test_full_stop_comma_and_m_move_between_tokens(self, chats: Chats) -> None:
        async with chats() as o:
            first_trained = o.rollout.token
            await o.press("full_stop", "full_stop", "comma")
            assert o.rollout.token == first_trained + 1
            await o.press("m")
            logprobs = o.rollout.rollouts[0].logprobs
            assert logprobs[o.rollout.token] == min(logprobs)
            least = o.rollout.token
            await o.press("m")
            assert logprobs[least] <= logprobs[o.rollout.token] <= sorted(logprobs)[1]

    async def test_semicolon_goes_from_edge_to_edge_of_the_mask(self, make_app: MakeApp) -> None:
        tokens = tuple(range(40))
        masks = tuple(token if token // 10 % 2 else -100 for token in tokens)
        async with opened(make_app, alone(RolloutDetail(score=0.5, tokens=tokens, masks=masks))) as o:
            assert o.rollout.token == 10
            visited = []
            for _ in range(3):
                await o.press("semicolon")
                visited.append(o.rollout.token)
            assert visited == [20, 30, 10]

    async def test_a_mask_without_edges_and_a_rollout_without_logprobs_say_so(self, make_app: MakeApp) -> None:
        async with opened(make_app, alone(RolloutDetail(score=0.5, tokens=(1, 2), masks=(1, 2)))) as o:
            await o.press("semicolon")
            assert "the mask has no edge" in o.last_said
            await o.press("m")
            assert "gave no logprobs" in o.last_said

    async def test_two_hundred_thousand_tokens_scroll_from_key_to_key(self, make_app: MakeApp) -> None:
        many = 200_000
        rollout = RolloutDetail(
            score=1.0, tokens=(7,) * many, pieces=("word ",) * many, masks=(-100,) * 100 + (7,) * (many - 100),
            logprobs=(-0.5,) * many, messages=({"role": "assistant", "content": "word " * many},),
        )  # fmt: skip
        async with opened(make_app, alone(rollout)) as o:
            for keys in (("enter", *("d",) * 40), ("v", *("d",) * 20, *("full_stop",) * 20)):
                await o.press(keys[0])
                started = time.process_time()
                await o.press(*keys[1:])
                assert (time.process_time() - started) / len(keys) < 0.1
            await o.press("end")
            assert any("200,000" in line for line in o.painted())


class TestFacts:
    async def test_i_shows_item_parts_of_the_score_and_requests(self, chats: Chats) -> None:
        async with chats() as o:
            await o.press("v", "i")
            shown = "\n".join(o.painted())
            for fact in ("A train leaves at noon", "brevity", "requests  8 of the group", "slowest 1.8s", "1 failed",
                         "10.0.0.5:9001", "ReadTimeout", "length ×2", "the 3 before these are not kept"):  # fmt: skip
                assert fact in shown
            await o.press("i")
            assert o.rollout.view is View.TOKENS

    async def test_without_requests_it_says_so(self, make_app: MakeApp) -> None:
        async with opened(make_app) as o:
            await o.press("i")
            assert any("none is known" in line for line in o.painted())


class TestTheList:
    async def test_groups_step_older_and_newer(self, make_app: MakeApp) -> None:
        async with opened(make_app) as o:
            for onward, back in (("N", "P"), ("J", "K"), ("j", "k"), ("down", "up")):
                await o.press("g", onward, onward, back)
                assert o.groups.cursor == 1
            await o.group(o.groups.groups[1].group_id)

    async def test_f_goes_through_the_outcomes_and_leaves_the_rest_of_the_filter(self, make_app: MakeApp) -> None:
        async with opened(make_app) as o:
            await o.filtered("step>1")
            await o.press("f", "f")
            await o.until(lambda: {row.outcome for row in o.groups.groups} == {Outcome.SKIPPED})
            assert o.groups.filter == "step>1 outcome:skipped"

    async def test_slash_filters_by_the_filter_language(self, make_app: MakeApp) -> None:
        async with opened(make_app) as o:
            await o.press("slash", *"split:all_b", "enter")
            await o.until(lambda: o.groups.groups and {row.split for row in o.groups.groups} == {"all_best"})
            await o.until(lambda: o.app.focused is o.groups)

    async def test_the_filter_language_is_explained_above_what_is_written(self, make_app: MakeApp) -> None:
        for size in ((80, 24), (120, 40), (200, 60)):
            async with opened(make_app, size=size) as o:
                await o.press("slash")
                shown = "\n".join(painted(o.app.screen.query_one("#entry-help", Canvas)))
                for word in ("score<0", "outcome:skipped", "finish:length", "bookmarked", "note:odd", "a phrase"):
                    assert word in shown
                assert o.groups.size.height >= 5

    async def test_a_filter_that_cannot_be_read_says_why_and_stays_open(self, make_app: MakeApp) -> None:
        async with opened(make_app) as o:
            await o.press("slash", *"scroe:1", "enter")
            entry = o.app.screen.query_one(EntryBar)
            assert painted(entry.help)[0].startswith(" ! there is no field 'scroe'; the fields are score")
            assert entry.is_open
            entry.input.value = "score:1"
            await o.until(lambda: "there is no field" not in painted(entry.help)[0])
            await o.press("escape")
            await o.until(lambda: o.app.focused is o.groups)
            assert o.groups.filter == ""

    async def test_capital_s_goes_through_the_orders_and_capital_r_turns_them_round(self, make_app: MakeApp) -> None:
        async with opened(make_app) as o:
            await o.press("S")
            await o.until(lambda: o.groups.order == "score" and max(o.groups.groups[0].scores, default=1) == 0)
            assert "by score ↑" in painted(o.groups)[0]
            await o.press("R")
            await o.until(lambda: min(o.groups.groups[0].scores) == 1)
            assert any("scores↓" in line for line in painted(o.groups))
            for order in ("-len", "-step", "-took", "outcome", "reason", "-time"):
                await o.press("S")
                assert o.groups.order == order
            await o.until(
                lambda: [row.group_id for row in o.groups.groups] == [row.group_id for row in ended_rows(100)]
            )

    async def test_older_pages_load_when_the_cursor_nears_the_end(self, make_app: MakeApp) -> None:
        async with opened(make_app) as o:
            for keys in ((), ("S",)):
                await o.press(*keys)
                await o.until(lambda: o.groups.rows == 100)
                await o.press("G")
                await o.until(lambda: o.groups.rows == 120)
                assert len({row.group_id for row in o.groups.groups}) == 120

    async def test_groups_that_ended_since_are_announced_and_g_at_the_top_loads_them(self, make_app: MakeApp) -> None:
        source = RecordedSource(running())
        async with opened(make_app, source) as o:
            newer = running()
            newer.ledger.by_outcome[Outcome.DELIVERED] += 3
            source.play(newer)
            await o.until(lambda: o.groups.newer == 3)
            await o.press("g")
            await o.until(lambda: o.groups.newer == 0)

    async def test_on_a_narrow_terminal_enter_reads_and_escape_returns_to_the_list(self, make_app: MakeApp) -> None:
        async with opened(make_app, size=(80, 24)) as o:
            assert (o.groups.display, o.rollout.display) == (True, False)
            await o.press("enter")
            assert (o.groups.display, o.rollout.display) == (False, True)
            assert o.app.focused is o.rollout
            await o.press("escape")
            assert (o.groups.display, o.rollout.display) == (True, False)
            await o.press("escape")
            assert isinstance(o.app.screen, DashboardScreen)

    async def test_z_gives_the_whole_screen_to_the_pane_with_the_focus(self, make_app: MakeApp) -> None:
        async with opened(make_app) as o:
            await o.press("z")
            assert (o.groups.display, o.rollout.display) == (True, False)
            assert "why" in painted(o.groups)[1]
            await o.press("tab")
            assert (o.groups.display, o.rollout.display) == (False, True)
            await o.press("z")
            assert (o.groups.display, o.rollout.display) == (True, True)

    async def test_a_group_that_is_gone_says_so(self, make_app: MakeApp) -> None:
        app = make_app()
        async with app.run_test(size=(120, 40)) as pilot:
            await until(pilot, lambda: app.moment.known)
            app.show_group(3)
            await until(pilot, lambda: app.screen.query(RolloutPane))
            rollout = app.screen.query_one(RolloutPane)
            await until(pilot, lambda: "not kept any more" in rollout.failure)


class TestSearch:
    async def test_words_are_found_in_messages_marked_and_jumped_between(self, chats: Chats) -> None:
        async with chats(size=(80, 24)) as o:
            await o.filtered('"catches the"')
            await o.until(lambda: o.groups.rows == 1)
            await o.press("enter")
            await o.until(lambda: any("hit 1 of 1" in line for line in o.painted()))
            assert any("»" in line and "catches the" in line.replace("*", "") for line in o.painted())
            await o.press("escape")
            await o.filtered("bus")
            await o.press("enter")
            await o.until(lambda: any("hit 1 of" in line for line in o.painted()))
            for key, number in (("asterisk", 2), ("asterisk", 3), ("number_sign", 2)):
                await o.press(key)
                assert any(f"hit {number} of" in line for line in o.painted())

    async def test_a_group_opens_at_the_first_rollout_that_says_it(self, chats: Chats) -> None:
        async with chats() as o:
            await o.filtered('"quick: 100"')
            await o.until(lambda: o.groups.rows == 1 and o.rollout.rollout == 2)

    async def test_without_a_search_there_are_no_hits(self, chats: Chats) -> None:
        async with chats() as o:
            await o.press("asterisk")
            assert o.last_said == "no words are searched: / first"
            await o.filtered("quick:")
            await o.until(lambda: o.rollout.rollout == 2)
            await o.press("n", "number_sign")
            assert o.last_said == "no searched word stands here"


class TestNotes:
    async def test_bookmarks_and_notes_are_kept_shown_and_found(self, make_app: MakeApp, tmp_path: Path) -> None:
        source = source_of_chats(chat_group())
        source.notes_file = tmp_path / "run.db.notes.jsonl"
        async with opened(make_app, source) as o:
            await o.press("B")
            await o.until(lambda: any("◆" in line for line in painted(o.groups)))
            assert any("bookmarked" in line for line in o.painted())
            await o.press("A", *"odd one", "enter")
            await o.until(lambda: any("note odd one" in line for line in o.painted()))
            noted = o.groups.groups[0].group_id
            for text in ("bookmarked", "note:odd", "bookmarked note:ONE"):
                await o.filtered(text)
                await o.until(lambda: [row.group_id for row in o.groups.groups] == [noted])
            await o.filtered("-bookmarked")
            await o.until(lambda: o.groups.rows == 29)
        assert stat.S_IMODE(source.notes_file.stat().st_mode) == 0o600
        again = source_of_chats(chat_group())
        again.notes_file = source.notes_file
        async with opened(make_app, again) as o:
            await o.until(lambda: any("note odd one" in line for line in o.painted()))
            await o.press("B", "A")
            entry = o.app.screen.query_one(EntryBar)
            assert entry.input.value == "odd one"
            entry.input.value = ""
            await o.press("enter")
            await o.until(lambda: not any("odd one" in line or "bookmarked" in line for line in o.painted()))
        assert len(source.notes_file.read_text().splitlines()) == 4

    async def test_a_run_elsewhere_keeps_them_while_the_screen_is_open(self, chats: Chats) -> None:
        async with chats() as o:
            await o.press("B")
            await o.until(lambda: "kept until this screen closes" in o.last_said)
            assert any("◆" in line for line in painted(o.groups))

    async def test_a_file_that_cannot_be_written_says_so(self, make_app: MakeApp, tmp_path: Path) -> None:
        source = source_of_chats(chat_group())
        source.notes_file = tmp_path / "gone" / "run.db.notes.jsonl"
        async with opened(make_app, source) as o:
            await o.press("B")
            await o.until(lambda: "cannot write" in o.last_said)

    async def test_escape_leaves_a_note_as_it_was(self, chats: Chats) -> None:
        async with chats() as o:
            await o.press("enter", "A", *"no", "escape")
            assert o.app.focused is o.rollout
            assert o.rollout.note.text == ""


class TestTakingAway:
    async def test_y_copies_and_capital_y_writes_a_file(
        self, make_app: MakeApp, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.chdir(tmp_path)
        async with opened(make_app) as o:
            sent: list[str] = []
            monkeypatch.setattr(o.app, "send_to_terminal", sent.append)
            await o.press("y")
            assert o.app.said == ["there is no rollout to copy"]
            await o.press("N")
            await o.until(lambda: len(o.rollout.rollouts) == 8)
            await o.press("y", "Y")
            await o.until(lambda: any("written to" in said for said in o.app.said))
            assert sent[0].startswith("\x1b]52;c;")
            assert os.listdir(tmp_path) == ["group-1386.json"]

    async def test_capital_x_exports_the_groups_of_the_filter_and_shows_where(
        self, make_app: MakeApp, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.chdir(tmp_path)
        async with opened(make_app) as o:
            await o.filtered("outcome:skipped split:too_easy")
            await o.until(lambda: {row.split for row in o.groups.groups} == {"all_best"})
            await o.press("X")
            path = tmp_path / "reverse_strings-groups.jsonl"
            await o.until(lambda: str(path) in o.last_said)
            assert o.last_said.startswith(f"{o.groups.rows} groups written to")
            lines = [json.loads(line) for line in path.read_text().splitlines()]
            assert len(lines) == o.groups.rows
            assert all(set(line["scores"]) == {1.0} for line in lines)
            await o.press("X")
            await o.until(lambda: "reverse_strings-groups-2.jsonl" in o.last_said)

    async def test_capital_h_exports_a_page(
        self, make_app: MakeApp, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.chdir(tmp_path)
        async with opened(make_app, source_of_chats(chat_group(), hostile_group())) as o:
            await o.filtered("group>=1386")
            await o.until(lambda: o.groups.rows == 2)
            await o.press("H")
            await o.until(lambda: "2 groups written to" in o.last_said)
            page = (tmp_path / "reverse_strings-groups.html").read_text()
            assert "A train leaves at noon" in page
            assert "\x1b" not in page

    async def test_an_export_can_be_stopped_and_keeps_what_it_has(
        self, make_app: MakeApp, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.chdir(tmp_path)
        source = source_of_chats(chat_group())
        async with opened(make_app, source) as o:
            asked = 0
            group, holding = source.group, o.app.call_later

            async def slow(group_id: int) -> GroupDetail:
                nonlocal asked
                asked += 1
                if asked > 3:
                    await until(o.pilot, lambda: False, within=60)
                return await group(group_id)

            del holding
            monkeypatch.setattr(source, "group", slow)
            await o.press("X")
            await o.until(lambda: asked > 3)
            assert any("exporting" in line for line in painted(o.groups))
            await o.press("X")
            await o.until(lambda: o.last_said.startswith("stopped: "))
            lines = (tmp_path / "reverse_strings-groups.jsonl").read_text().splitlines()
            assert o.last_said.startswith(f"stopped: {len(lines)} groups")

    async def test_an_empty_list_has_nothing_to_export(self, make_app: MakeApp) -> None:
        async with opened(make_app) as o:
            await o.filtered("score>7")
            await o.until(lambda: not o.groups.rows)
            for key in ("X", "H"):
                await o.press(key)
                assert o.last_said == "there is no group to export"


def test_every_command_of_the_trajectories_has_its_action() -> None:
    for command in commands([Scope.TRAJECTORIES]):
        assert hasattr(TrajectoriesScreen, f"action_{command.action.partition('(')[0]}"), command.id
