"""The demo learns, accounts for every group, and says so as JSON."""

from __future__ import annotations

import json
import subprocess
import sys

from atropos_tui.ledger import Outcome


def test_the_policy_learns_and_every_group_is_accounted_for() -> None:
    command = [sys.executable, "-m", "atropos_tui", "demo", "--headless", "--seconds", "100", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    ledger = told["ledger"]
    assert set(ledger) == {"started", *map(str, Outcome)}
    assert ledger["started"] == sum(count for outcome, count in ledger.items() if outcome != "started")
    assert told["ledger_balanced"]
    assert told["score_mean_best20"] >= told["score_mean_first20"] + 0.5
    assert ledger["skipped"] == sum(told["skipped_by_reason"].values())
    assert told["skipped_by_reason"]["identical_scores"] > 0
    assert ledger["delivered"] == told["trainer"]["groups_received"] > 0
    assert told["trainer"]["step"] > 0
