"""Queries of a run file: the filter language and orders mean the same in SQLite as on rows."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from atropos_tui.ledger import Rollout
from atropos_tui.ledger.events import CallFinished
from atropos_tui.monitor.group_filter import sorted_rows
from atropos_tui.monitor.group_pages import GroupPages
from atropos_tui.monitor.group_query import ORDERS, GroupQuery
from atropos_tui.monitor.group_store import GroupFilter, MemoryGroupStore
from atropos_tui.monitor.open_groups import MAX_CALLS
from atropos_tui.monitor.run_file import schema
from atropos_tui.monitor.run_file.reader import RunFileReader
from atropos_tui.monitor.snapshot import EndedRow
from tests.run_file.recorded_run import RecordedRun, rollouts

MEMORY = MemoryGroupStore()


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunFileReader]:
    run = RecordedRun(tmp_path_factory.mktemp("run") / "run.db", memory=MEMORY)
    for number in range(12):
        run.delivered(score=number / 4 - 1, tokens=10 + number, text=f"Zebra {number}")
        run.skipped(score=0.5, tokens=20, text="Löwe and zebra crossing" if number % 3 else "lion's den")
        run.failed()
    run.write()
    run.close()
    opened = RunFileReader(run.path)
    yield opened
    opened.close()


def ids(rows: tuple[EndedRow, ...] | list[EndedRow]) -> list[int]:
    return [row.group_id for row in rows]


NUMBERS = st.sampled_from(["score", "best", "worst", "len", "step", "took", "group", "weights"])
TERMS = st.one_of(
    st.builds(
        "{}{}{}".format, NUMBERS, st.sampled_from(["<", "<=", ">", ">=", "=", ":", "!="]),
        st.sampled_from([-1, 0, 0.5, 2, 3, 7, 10, 15.5]),
    ),
    st.sampled_from(
        ["outcome:sk", "outcome:delivered", "reason:env", "reason:identical_scores", "split:too_hard", "finish:stop",
         "finish:st", "finish:length", "item:ITEM", 'item:"m 3"', "error:keyerror", "error:%", "item:_", "zebra",
         "zeb*", "löw*", '"zebra crossing"', "löwe", "nowhere", "keyerror"]
    ),
)  # fmt: skip
FILTERS = st.lists(st.builds("{}{}".format, st.sampled_from(["", "-"]), TERMS), max_size=3).map(" ".join)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], deadline=None)
@given(
    text=FILTERS,
    order=st.builds("{}{}".format, st.sampled_from(["", "-"]), st.sampled_from(ORDERS)),
    only=st.none() | st.sets(st.integers(1, 40)),
    but=st.sets(st.integers(1, 40)),
)
def test_sqlite_and_memory_agree(
    reader: RunFileReader, text: str, order: str, only: set[int] | None, but: set[int]
) -> None:
    wanted = GroupFilter.of(GroupQuery(text, order, None if only is None else tuple(only), tuple(but)))
    page = reader.page(wanted, None, 100)
    assert page == MEMORY.page(wanted, None, 100)
    assert page.total == len(page.rows)


@pytest.mark.parametrize("order", [f"{sign}{order}" for order in ORDERS for sign in ("", "-")])
def test_pages_in_any_order_make_one_list(reader: RunFileReader, order: str) -> None:
    wanted = GroupFilter(order=order)
    whole = reader.page(GroupFilter(), None, 100)
    for source in (reader, MEMORY):
        found: list[int] = []
        older_than = None
        while True:
            page = source.page(wanted, older_than, 7)
            assert page.total == 36
            found += ids(page.rows)
            if (older_than := page.older_than) is None:
                break
        assert found == ids(sorted_rows(whole.rows, order))


def test_a_star_finds_words_that_begin_so_and_without_it_words_are_whole(reader: RunFileReader) -> None:
    for text, groups in (("zebra", 20), ("zebr", 0), ("zebr*", 20), ('"zebr*"', 0), ("-zebr*", 16)):
        assert reader.page(GroupFilter.of(GroupQuery(text)), None, 50).total == groups, text


def test_a_phrase_with_a_quote_or_of_punctuation_alone_is_harmless(reader: RunFileReader) -> None:
    assert reader.page(GroupFilter.of(GroupQuery("lion's")), None, 50).total == 4
    assert reader.page(GroupFilter.of(GroupQuery('"?!"')), None, 50).total == 0


def test_the_requests_of_a_group_come_from_the_events(tmp_path: Path) -> None:
    run = RecordedRun(tmp_path / "run.db")

    def call(group_id: int, number: int, **fields: object) -> None:
        run.stream.publish(
            CallFinished, call_id=number, group_id=group_id, server=1, split="train", n=1, latency=0.5, **fields
        )

    first, second = run.started(), run.started()
    call(first, 1, prompt_tokens=3, completion_tokens=4, finish_reasons=("length",), weight_version=2, rollout=1)
    call(second, 2)
    call(first, 3, error="ReadTimeout", error_kind="timeout")
    for number in range(MAX_CALLS + 6):
        call(second, 10 + number, finish_reasons=("stop",))
    for group_id in (first, second):
        run.end(group_id, rollouts(0.5))
    run.write()
    in_memory = {number: run.view._store.find(number) for number in (first, second)}
    run.close()
    with_reader = RunFileReader(run.path)
    for number, kept in in_memory.items():
        recorded = with_reader.find(number)
        assert recorded is not None
        assert kept is not None
        detail = recorded.detail(lambda tokens: [])
        assert (detail.calls, detail.earlier_calls) == (kept.ended.calls, kept.ended.earlier_calls)
    detail = with_reader.find(first).detail(lambda tokens: [])  # type: ignore[union-attr]
    assert [(c.prompt_tokens, c.finish_reasons, c.weight_version, c.error) for c in detail.calls] == [
        (3, ("length",), 2, ""), (0, (), None, "ReadTimeout"),
    ]  # fmt: skip
    assert [call.rollout for call in detail.calls] == [1, None]
    assert detail.row.finishes == ("length", "stop")
    assert with_reader.find(second).ended.earlier_calls == 7  # type: ignore[union-attr]
    with_reader.close()


def test_logprobs_of_a_reference_are_kept(tmp_path: Path) -> None:
    run = RecordedRun(tmp_path / "run.db")
    group_id = run.started()
    plain, *_ = rollouts(0.5, tokens=4)
    run.end(group_id, [Rollout(0.5, (1, 2), (1, 2), (-0.5, -1.0), ref_logprobs=(-0.25, 1.0)), plain])
    run.write()
    run.close()
    kept = RunFileReader(run.path).find(group_id)
    assert kept is not None
    first, second = kept.detail(lambda tokens: []).rollouts
    assert (first.ref_logprobs, second.ref_logprobs) == ((-0.25, 1.0), ())
    assert second.tokens == tuple(plain.tokens)


def test_a_file_of_the_version_before_is_read_without_being_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "run.db"
    with monkeypatch.context() as patch:
        patch.setattr(schema, "MIGRATIONS", schema.MIGRATIONS[:1])
        patch.setattr(schema, "VERSION", 1)
        database = schema.open_for_writing(path)
        database.execute(
            "INSERT INTO groups VALUES (1, 7, 1, NULL, 1.8e9, 'skipped', 'too_long', '', 3, 1.0, NULL, NULL, NULL,"
            " NULL, '[]', '[]', 'item', '')"
        )
        database.close()
    reader = RunFileReader(path)
    assert ids(reader.page(GroupFilter.of(GroupQuery("outcome:skipped")), None, 5).rows) == [7]
    assert reader.page(GroupFilter.of(GroupQuery("finish:length")), None, 5).total == 0
    reader.close()
    with sqlite3.connect(path) as database:
        assert database.execute("PRAGMA user_version").fetchone() == (1,)


async def test_a_run_without_a_record_is_searched_in_memory() -> None:
    pages = GroupPages(MEMORY, None)
    page = await pages.page(GroupFilter.of(GroupQuery('"zebra crossing" -outcome:delivered', "score")), None, 50)
    assert page.total == 8
