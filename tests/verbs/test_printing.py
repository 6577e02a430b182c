"""Runs printed instead of shown: the same numbers, in pipes and in terminals that can show no screen."""

from __future__ import annotations

import json

from atropos_tui.ui.moment import Contact, Moment
from atropos_tui.ui.report import report
from tests.ui import recorded
from tests.verbs.served_runs import ServedRuns


def test_a_report_has_every_pane_with_the_numbers_of_the_screen() -> None:
    told = report(Moment(recorded.running(), recorded.NOW, Contact.CONNECTED), width=100)
    lines = told.splitlines()
    assert max(map(len, lines)) <= 100
    for title in ("ROLLOUT QUEUE", "SCORES", "SKIPPED GROUPS", "TRAINER SENDS", "INFERENCE"):
        assert any(line.startswith(title) for line in lines)
    for number in ("step 312/2,000", "1,419 =", "first 20 0.06", "identical scores", "1,102 delivered"):
        assert number in told
    assert "\x1b" not in told


def test_a_run_is_printed_live_and_from_its_record(runs: ServedRuns) -> None:
    runs.serve("printed")
    delivered = runs.wait_for_groups("printed", 3)["ledger"]["by_outcome"]["delivered"]
    told = json.loads(runs.run("attach", "printed", "--json"))
    assert told["ledger"]["by_outcome"]["delivered"] >= delivered
    assert "● running" in runs.run("attach", "printed", "--once")

    runs.run("stop", "printed")
    recorded_run = json.loads(runs.run("open", runs.root / "printed", "--json"))
    assert recorded_run["run"]["state"] == "finished"
    assert recorded_run["ledger"]["balanced"]
    total = recorded_run["ledger"]["started"]
    assert f"{total:,} = " in runs.run("open", runs.root / "printed", "--once")
    (line,) = runs.run("open", runs.root / "printed", "--plain").splitlines()
    assert "finished" in line
    assert f"started {total} = " in line


def test_only_one_way_of_printing_can_be_asked_for(runs: ServedRuns) -> None:
    runs.run("attach", "--once", "--json", status=2)
