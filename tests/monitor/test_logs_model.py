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


def test_a_failure_that_is_logged_again_without_its_traceback_is_the_same_row() -> None:
    run = Scenario()
    log(run, "group 7: it broke", "ERROR", traceback="Traceback …\n  File \"env.py\", line 3, in f\nKeyError: 'x'")
    log(run, "group 8: it broke", "ERROR")
    log(run, "group 9: it broke otherwise", "ERROR")
    log(run, "group 10: it broke", "ERROR")
    rows = {row.text: row for row in run.snapshot().logs.rows}
    assert {text: row.count for text, row in rows.items()} == {
        "group 10: it broke": 3, "group 9: it broke otherwise": 1,
    }  # fmt: skip
    assert rows["group 10: it broke"].traceback.endswith("KeyError: 'x'")


def test_what_is_known_of_failures_has_a_bound() -> None:
    run = Scenario()
    for number, words in enumerate(product("abcdefghijklmnopqrst", repeat=2)):
        traceback = f'Traceback …\n  File "env.py", line {number}, in f\nKeyError: 0'
        log(run, "it broke " + "".join(words), "ERROR", traceback=traceback)
    log(run, "it broke tt", "ERROR")
    log(run, "it broke aa", "ERROR")
    rows = run.snapshot().logs.rows
    assert len(rows) == MAX_LINES
    assert [(row.text, row.count) for row in rows[:2]] == [("it broke aa", 1), ("it broke tt", 2)]


def test_tracebacks_of_one_section_have_a_bound_and_the_newest_keep_theirs() -> None:
    run = Scenario()
    for word in "abcdefghijklmnopqrstuvwxyz":
        log(run, word, "ERROR", traceback=word * 100_000)
    rows = run.snapshot().logs.rows
    assert sum(len(row.traceback) for row in rows) <= TRACEBACKS_LENGTH
    assert rows[0].traceback.endswith("zzz")
    assert not rows[-1].traceback
