"""Log lines: equal ones together, errors never crowded out."""

from __future__ import annotations

from itertools import product

from atropos_tui.ledger.events import LogLine
from atropos_tui.monitor.logs_model import MAX_LINES, TRACEBACKS_LENGTH
from tests.monitor.run_scenario import Scenario


def log(run: Scenario, text: str, level: str = "INFO", traceback: str = "") -> None:
    run.publish(LogLine, level=level, logger="env", text=text, traceback=traceback)


def test_lines_that_differ_in_numbers_only_are_one_row_with_the_newest_text() -> None:
    run = Scenario()
    log(run, "retry 1 of 5 in 0.5 s", "WARNING")
    log(run, "something else")
    run.after(3)
    log(run, "retry 2 of 5 in 1.0 s", "WARNING")
    rows = run.snapshot().logs.rows
    assert [(row.text, row.count) for row in rows] == [("retry 2 of 5 in 1.0 s", 2), ("something else", 1)]
    assert rows[0].last_at - rows[0].first_at == 3.0


def test_a_flood_of_chatter_leaves_every_error_readable() -> None:
    run = Scenario()
    log(run, "it broke", "error", traceback="Traceback …\nKeyError: 'x'")
    for words in product("abcdefghijklmnopqrst", repeat=3):
        log(run, "chatter " + " ".join(words))
    logs = run.snapshot().logs
    assert logs.errors == 1
    assert len(logs.rows) == MAX_LINES + 1
    assert logs.dropped == 20**3 - MAX_LINES
    (error,) = (row for row in logs.rows if row.level == "ERROR")
    assert error.traceback.endswith("KeyError: 'x'")


def test_tracebacks_of_one_section_have_a_bound_and_the_newest_keep_theirs() -> None:
    run = Scenario()
    for word in "abcdefghijklmnopqrstuvwxyz":
        log(run, word, "ERROR", traceback=word * 100_000)
    rows = run.snapshot().logs.rows
    assert sum(len(row.traceback) for row in rows) <= TRACEBACKS_LENGTH
    assert rows[0].traceback.endswith("zzz")
    assert not rows[-1].traceback
