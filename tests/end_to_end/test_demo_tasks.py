"""One policy learns several tasks at once, each in a worker of its own with a curve of its own."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

TASKS = ("reverse", "sort", "shift")


def demo(*flags: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "atropos_tui", "demo", *flags]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def test_one_policy_learns_three_tasks_and_every_group_is_accounted_for() -> None:
    done = demo("--envs", ",".join(TASKS), "--headless", "--seconds", "100", "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["ledger_balanced"]
    assert tuple(told["environments"]) == TASKS
    runs = told["environments"].values()
    assert sum(run["ledger"]["delivered"] for run in runs) == told["trainer"]["groups_received"] > 0
    for task, run in told["environments"].items():
        ledger = run["ledger"]
        assert ledger["started"] == sum(count for outcome, count in ledger.items() if outcome != "started")
        assert run["score_mean_best20"] >= run["score_mean_first20"] + 0.15, task
        seconds = [at for at, _ in run["score_curve"]]
        assert seconds == sorted(seconds)
        assert max(mean for _, mean in run["score_curve"]) > 0.1


@pytest.mark.parametrize(
    ("envs", "words"),
    [
        ("reverse,chess", "there is no pocket task 'chess'; choose from reverse, sort, shift"),
        ("sort,sort", "names sort twice"),
        ("", "there is no pocket task ''"),
        ("nowhere.py", "there is no file nowhere.py"),
    ],
)
def test_a_task_that_is_not_there_is_one_line_and_status_2(envs: str, words: str) -> None:
    done = demo("--envs", envs, "--headless")
    assert done.returncode == 2
    assert words in done.stderr
    assert done.stderr.count("\n") == 1
