"""`atropos-tui fleet` on real runs and a real terminal; and alerts that reach the operator's own command."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from atropos_tui.errors import AtroposError, UsageError
from atropos_tui.monitor.fleet import Fleet, FleetRun, Presence
from atropos_tui.verbs.fleet import tokens_by_url
from atropos_tui.verbs.screen import open_fleet_run
from tests.end_to_end.marked_processes import wait_until
from tests.process_state import is_alive
from tests.verbs.served_runs import ENVIRONMENT, ServedRuns
from tests.verbs.terminal import Terminal

NEAR, FAR = "http://127.0.0.1:7777", "https://node17:7777"


class TestTokens:
    def file(self, directory: Path, name: str, token: str) -> Path:
        (directory / name).write_text(f"{token}\n")
        return directory / name

    def test_one_file_opens_all_and_several_open_one_each(self, tmp_path: Path) -> None:
        one, other = self.file(tmp_path, "one", "secret"), self.file(tmp_path, "other", "key")
        assert tokens_by_url([NEAR, FAR], []) == {NEAR: "", FAR: ""}
        assert tokens_by_url([NEAR, FAR], [one]) == {NEAR: "secret", FAR: "secret"}
        assert tokens_by_url([NEAR, FAR], [one, other]) == {NEAR: "secret", FAR: "key"}

    def test_what_is_no_url_and_files_that_do_not_pair_up_are_refused(self, tmp_path: Path) -> None:
        token = self.file(tmp_path, "one", "secret")
        with pytest.raises(UsageError, match="'node17' is no URL"):
            tokens_by_url(["node17"], [])
        with pytest.raises(UsageError, match="3 token files for 2 URLs"):
            tokens_by_url([NEAR, FAR], [token] * 3)
        with pytest.raises(UsageError, match="1 token files for 0 URLs"):
            tokens_by_url([], [token])
        with pytest.raises(UsageError, match="cannot read the token"):
            tokens_by_url([NEAR], [tmp_path / "missing"])


def test_a_run_that_left_no_record_names_its_log(tmp_path: Path) -> None:
    run = FleetRun(str(tmp_path), "night", Presence.ENDED, run_dir=tmp_path)
    with pytest.raises(AtroposError, match=rf"night left no record; its log is {tmp_path}/worker.log"):
        open_fleet_run(Fleet(tmp_path), run)


def test_two_runs_are_listed_paused_together_opened_and_left(runs: ServedRuns) -> None:
    for name in ("first", "second"):
        runs.serve(name)
        runs.wait_for_groups(name, 1)
    terminal = Terminal(runs.command("fleet"), runs.environment)
    try:
        terminal.wait_for("2 alive", "first", "second", "running")
        terminal.press("A")
        terminal.wait_for("2 marked")
        terminal.press("p")
        terminal.wait_for("Pause 2 runs?", "first", "second")
        terminal.press("y")
        terminal.wait_for("paused: 2 runs of 2")
        for name in ("first", "second"):
            wait_until(lambda name=name: runs.status(name)["run"]["state"] == "paused")  # type: ignore[misc]
        terminal.press("\r")
        terminal.wait_for("Rollout queue", "‖ paused")
        terminal.press("F")
        terminal.wait_for("Fleet", "2 alive")
        terminal.press("q")
        terminal.wait_for("the runs go on without this screen")
        terminal.press("d")
        assert terminal.wait_for_exit() == 0
    finally:
        terminal.end()
    assert runs.status("first")["run"]["state"] == "paused"


@pytest.mark.parametrize("end", ["killed", "stopped"])
def test_a_run_that_ended_is_opened_and_started_again_where_it_was(runs: ServedRuns, end: str) -> None:
    run_dir = runs.serve("over")
    before = runs.wait_for_groups("over", 3)
    if end == "killed":
        os.kill(before["run"]["pid"], signal.SIGKILL)
        wait_until(lambda: not is_alive(before["run"]["pid"]))
    else:
        runs.run("stop", "over")
    state = {"killed": "crashed", "stopped": "finished"}[end]
    terminal = Terminal(runs.command("fleet"), runs.environment)
    try:
        terminal.wait_for("1 ended", "over", state)
        terminal.press("\r")
        terminal.wait_for("Rollout queue", state)
        terminal.press("R")
        terminal.wait_for("again?", "its outbox, its record and its data")
        terminal.press("y")
        terminal.wait_for("● running")
        terminal.press("p")
        terminal.wait_for("‖ paused")
        terminal.press("q")
        terminal.wait_for("the runs go on without this screen")
        terminal.press("d")
        assert terminal.wait_for_exit() == 0
    finally:
        terminal.end()
    after = runs.status(run_dir)
    assert (after["run"]["state"], after["run"]["pid"] == before["run"]["pid"]) == ("paused", False)
    assert after["ledger"]["balanced"]


def test_an_alert_of_a_run_that_nobody_watches_reaches_the_command_of_the_configuration(
    runs: ServedRuns, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "counting.py").write_text(ENVIRONMENT.replace("asyncio.sleep(0.05)", "asyncio.sleep(600)"))
    told = tmp_path / "told"
    script = tmp_path / "page-me"
    script.write_text(f'#!/bin/sh\necho "$ATROPOS_ALERT $ATROPOS_RUN $1" >> {told}\n')
    script.chmod(0o700)
    config = tmp_path / "config" / "atropos-tui" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text(f'[alerts]\nno_progress = 0.5\ncommand = "{script} quietly"\n')
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    runs.serve("stuck")
    wait_until(lambda: told.exists() and "no_progress stuck quietly\n" in told.read_text())
    (alert,) = (alert for alert in runs.status("stuck")["run"]["alerts"] if alert["name"] == "no_progress")
    assert alert["text"].startswith("no progress for over 0.5 s")


def test_a_wrong_configuration_is_told_before_the_run_begins(
    runs: ServedRuns, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "config" / "atropos-tui" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text("[alerts]\nno_progres = 30\n")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    command = runs.serve_command(runs.root / "never", "--detach")
    done = subprocess.run(command, env=runs.environment, capture_output=True, text=True, timeout=90, check=False)
    assert done.returncode == 2
    assert "there is no `alerts.no_progres`" in done.stderr
