"""The list of the trajectories: filter, order, search, notes and what can be taken away."""

from __future__ import annotations

import json
import os
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from atropos_tui.ledger.outcomes import Outcome
from atropos_tui.monitor.group_detail import GroupDetail
from atropos_tui.ui.dashboard import DashboardScreen
from atropos_tui.ui.entry_bar import EntryBar
from atropos_tui.ui.keys import Scope, commands
from atropos_tui.ui.panes.rollout import RolloutPane
from atropos_tui.ui.trajectories import TrajectoriesScreen
from atropos_tui.ui.widgets.canvas import Canvas
from tests.ui.conftest import MakeApp, until
from tests.ui.opened_trajectories import Chats, on_chats, opened, painted
from tests.ui.recorded import RecordedSource, ended_rows, running
from tests.ui.recorded_chats import chat_group, hostile_group, source_of_chats


@pytest.fixture
def chats(make_app: MakeApp) -> Chats:
    return on_chats(make_app)


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

    async def test_the_explanation_fits_the_terminal_when_its_size_changes(self, make_app: MakeApp) -> None:
        async with opened(make_app, size=(200, 60)) as o:
            await o.press("slash")
            await o.pilot.resize_terminal(80, 24)
            help_of_entry = o.app.screen.query_one("#entry-help", Canvas)
            await o.until(lambda: any("note:odd" in line for line in painted(help_of_entry)))

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
            assert any("scores ↓" in line for line in painted(o.groups))
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
            await o.press("tab")
            assert (o.groups.display, o.rollout.display) == (True, False)
            await o.press("escape")
            assert (o.groups.display, o.rollout.display) == (True, True)
            await o.press("tab", "z")
            assert (o.groups.display, o.rollout.display) == (False, True)
            await o.press("z")
            assert (o.groups.display, o.rollout.display) == (True, True)

    async def test_z_says_so_where_the_list_has_the_whole_screen_already(self, make_app: MakeApp) -> None:
        async with opened(make_app, size=(80, 24)) as o:
            await o.press("z")
            assert "whole screen" in o.last_said
            await o.press("escape")
            assert isinstance(o.app.screen, DashboardScreen)

    async def test_a_filter_that_no_group_meets_leaves_no_rollout_beside_the_list(self, make_app: MakeApp) -> None:
        async with opened(make_app) as o:
            await o.filtered("step>1000000")
            await o.until(lambda: not o.groups.groups)
            await o.until(lambda: o.rollout.detail is None)
            assert "choose a group" in "\n".join(o.painted())

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


@pytest.mark.parametrize(
    ("item", "narrow"),
    [
        ("{'question': 'What is it?', 'level': 1}", "What is it?"),
        ('{"text": "it\'s", "n": 2}', "it's"),
        ("{'n': 3, 'level': 1}", "3"),
        ("plain item", "plain item"),
        ("{", "{"),
    ],
)
async def test_in_a_narrow_list_an_item_is_told_by_its_first_value(make_app: MakeApp, item: str, narrow: str) -> None:
    group = chat_group()
    source = source_of_chats(replace(group, row=replace(group.row, item=item)))
    async with opened(make_app, source) as o:
        row = next(line for line in painted(o.groups) if "1387" in line)
        assert f" {narrow} " in row
