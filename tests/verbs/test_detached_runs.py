"""Runs that outlive whoever started them: listed, commanded, read, killed and started again."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess

import httpx

from atropos_tui.monitor.group_store import GroupFilter
from atropos_tui.monitor.run_file.reader import RunFileReader
from tests.end_to_end.marked_processes import wait_until
from tests.process_state import is_alive
from tests.verbs.served_runs import ServedRuns


def test_a_detached_run_is_listed_commanded_read_and_stopped(runs: ServedRuns) -> None:
    run_dir = runs.serve("first")
    running = runs.wait_for_groups("first", 3)
    assert running["run"]["state"] == "running"
    assert running["ledger"]["balanced"]
    (listed,) = json.loads(runs.run("ls", "--json"))
    assert (listed["name"], listed["state"], listed["environment"]) == ("first", "running", "Counting")
    for file in ("worker.json", "run.db"):
        assert stat.S_IMODE((run_dir / file).stat().st_mode) == 0o600

    runs.run("pause", run_dir)
    wait_until(lambda: runs.status("fir")["run"]["state"] == "paused")
    paused = runs.status("first")["ledger"]["started"]
    runs.run("step")
    wait_until(lambda: runs.status("first")["ledger"]["started"] == paused + 1)

    runs.run("evaluate-now", "first")
    runs.run("cancel", "first", 999_999, status=1)
    runs.run("requeue", "first", "a", status=2)

    follow = runs.command("logs", "-f", "first")
    with subprocess.Popen(follow, env=runs.environment, stdout=subprocess.PIPE, text=True) as follower:
        runs.run("stop", "first")
        followed, _ = follower.communicate(timeout=90)
    assert "asked to end" in followed
    assert follower.returncode == 0
    assert "finished" in runs.run("status", "first", status=3)
    assert "finished" in runs.run("ls")
    exported = runs.run("export", "first", "--format", "jsonl", "--search", '"question of item 2"')
    assert json.loads(exported.splitlines()[0])["messages"][0][0]["content"] == "question of item 2"
    runs.run("pause", "first", status=2)


def test_a_killed_worker_is_crashed_and_goes_on_when_started_again(runs: ServedRuns) -> None:
    run_dir = runs.serve("doomed", "--env.max_num_workers", "4")
    before = runs.wait_for_groups("doomed", 5)
    wait_until(lambda: runs.status("doomed")["record"]["seq"] >= before["seq"])
    pid = runs.worker(run_dir)["pid"]
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not (run_dir / "control.sock").exists() or runs.run("ls").count("crashed"))
    crashed = runs.status("doomed", status=4)
    assert crashed["run"]["state"] == "crashed"
    assert crashed["run"]["pid"] == pid
    assert "gone without a word" in crashed["run"]["why_ended"]

    assert stat.S_IMODE((run_dir / "start.json").stat().st_mode) == 0o600
    restarted = subprocess.run(
        runs.command("restart", "doomed"),
        env=runs.environment, cwd="/", capture_output=True, text=True, timeout=90, check=False,
    )  # fmt: skip
    assert (restarted.returncode, restarted.stdout.strip()) == (0, str(run_dir)), restarted.stderr
    runs.run("restart", "doomed", status=1)
    after = runs.wait_for_groups("doomed", 1)
    assert after["run"]["pid"] != pid
    assert after["seq"] > before["record"]["seq"]
    runs.run("stop", run_dir)
    reader = RunFileReader(run_dir / "run.db")
    assert [event.seq for event in reader.events()] == list(range(1, reader.extent().seq + 1))
    assert len(reader.lives()) == 2
    delivered = reader.page(GroupFilter(outcome="delivered"), None, 1).total
    assert delivered >= before["ledger"]["by_outcome"]["delivered"]
    assert not is_alive(pid)


def test_a_remote_read_only_run_wants_its_token_and_refuses_a_second_worker(runs: ServedRuns) -> None:
    run_dir = runs.serve("remote", "--listen", "127.0.0.1:0", "--read-only", "--record", "none")
    url, token = runs.worker(run_dir)["url"], (run_dir / "token").read_text().strip()
    assert stat.S_IMODE((run_dir / "token").stat().st_mode) == 0o600
    with httpx.Client(base_url=url, timeout=60) as http:
        assert http.get("/health").status_code == 401
        assert http.get("/health", headers={"authorization": "Bearer wrong"}).status_code == 401
        assert http.post("/stop").status_code == 401
        allowed = {"authorization": f"Bearer {token}"}
        assert http.get("/snapshot", headers=allowed).json()["seq"] > 0
        assert http.post("/stop", headers=allowed).status_code == 403
    runs.run("attach", url, status=1)

    again = subprocess.run(
        runs.serve_command(run_dir, "--detach"),
        env=runs.environment, capture_output=True, text=True, timeout=90, check=False,
    )  # fmt: skip
    assert again.returncode == 2
    assert "another worker runs" in again.stderr
    assert runs.status(run_dir)["run"]["pid"] == runs.worker(run_dir)["pid"]
    assert not (run_dir / "run.db").exists()


def test_runs_that_are_not_there_are_told_in_one_line(runs: ServedRuns) -> None:
    assert "no runs in" in runs.run("ls")
    runs.run("restart", "nobody", status=2)
    for verb in ("status", "logs", "pause", "resume", "step", "attach", "open"):
        runs.run(verb, "nobody", status=2)
        runs.run(verb, status=2)
