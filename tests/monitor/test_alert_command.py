"""The operator's own command: real processes, told by variables, one at a time, and never waited for too long."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from atropos_tui.ledger.outcomes import RunState
from atropos_tui.monitor import alert_command
from atropos_tui.monitor.alert_command import AlertCommand, variables
from atropos_tui.monitor.alert_settings import AlertSettings
from atropos_tui.monitor.new_alerts import NewAlerts, worth_telling
from atropos_tui.monitor.snapshot import Alert, RunSection

LIMIT = 60.0
HOSTILE = "$(touch /tmp/owned); `id` | 'x' \n\x1b[2J"
STUCK = Alert("no_progress", HOSTILE, 0.0)


@pytest.fixture(autouse=True)
def in_a_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alert_command, "LOOK_SECONDS", 0.02)


@contextlib.asynccontextmanager
async def following(settings: AlertSettings, run_dir: Path, alerts: list[Alert]) -> AsyncIterator[None]:
    """The command follows a run whose alerts are whatever the list holds."""
    command = AlertCommand(settings, run_dir)
    task = asyncio.create_task(command.follow(lambda: RunSection(run_id="k7fq", alerts=tuple(alerts))))
    try:
        yield
        assert not task.done()
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def until_written(path: Path, lines: int) -> list[str]:
    async with asyncio.timeout(LIMIT):
        while len(told := lines_of(path)) < lines:  # noqa: ASYNC110  another process writes them
            await asyncio.sleep(0.02)
    return told


def lines_of(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def noting(path: Path) -> tuple[str, ...]:
    """A command that appends what it was told to a file."""
    told = "[os.environ[n] for n in ('ATROPOS_ALERT', 'ATROPOS_ALERT_TEXT', 'ATROPOS_ALERT_SEVERE', 'ATROPOS_RUN')]"
    return (sys.executable, "-c", f"import os; open({str(path)!r}, 'a').write(repr({told}) + chr(10))")


async def test_the_command_runs_once_an_alert_and_again_when_it_becomes_severe(tmp_path: Path) -> None:
    out = tmp_path / "told"
    alerts = [STUCK]
    async with following(AlertSettings(command=noting(out)), tmp_path, alerts):
        (first,) = await until_written(out, 1)
        assert first == repr(["no_progress", HOSTILE, "0", "k7fq"])
        alerts[0] = replace(STUCK, severe=True)
        _, second = await until_written(out, 2)
        assert second == repr(["no_progress", HOSTILE, "1", "k7fq"])


async def test_a_command_that_hangs_is_ended_and_the_next_one_runs(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    out = tmp_path / "told"
    script = tmp_path / "hook"
    script.write_text(
        f'#!/bin/sh\n[ "$ATROPOS_ALERT" = no_progress ] && exec sleep 600\necho "$ATROPOS_ALERT" >> {out}\n'
    )
    script.chmod(0o700)
    settings = AlertSettings(command=(str(script),), command_timeout=3.0)
    with caplog.at_level(logging.WARNING):
        async with following(settings, tmp_path, [STUCK, Alert("outbox", "3 groups", 0.0)]):
            assert await until_written(out, 1) == ["outbox"]
    assert "took over 3 s and was ended" in caplog.text


@pytest.mark.parametrize(
    ("command", "complaint"),
    [(("/nowhere/notify",), "cannot be run"), ((sys.executable, "-c", "raise SystemExit(3)"), "exit status 3")],
)
async def test_a_command_that_fails_is_a_line_in_the_log_and_nothing_more(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, command: tuple[str, ...], complaint: str
) -> None:
    with caplog.at_level(logging.WARNING):
        async with following(AlertSettings(command=command), tmp_path, [STUCK]), asyncio.timeout(LIMIT):
            while complaint not in caplog.text:  # noqa: ASYNC110  a log record wakes nobody
                await asyncio.sleep(0.02)


def test_an_alert_that_goes_and_comes_again_is_new_again() -> None:
    new = NewAlerts()
    assert new.among((STUCK,)) == [STUCK]
    assert new.among((STUCK,)) == []
    assert new.among(()) == []
    assert new.among((STUCK,)) == [STUCK]


def test_of_a_run_that_crashed_the_crash_is_told_and_nothing_else() -> None:
    crashed = RunSection(state=RunState.CRASHED, why_ended="KeyError: 'answer'", ended_at=7.0, alerts=(STUCK,))
    assert worth_telling(crashed) == (Alert("crashed", "KeyError: 'answer'", 7.0, severe=True),)
    assert worth_telling(replace(crashed, state=RunState.RUNNING)) == (STUCK,)


def test_a_zero_byte_is_left_out_of_the_variables(tmp_path: Path) -> None:
    told = variables(RunSection(environment="a\0b"), replace(STUCK, text="x\0y"), tmp_path)
    assert (told["ATROPOS_ENVIRONMENT"], told["ATROPOS_ALERT_TEXT"]) == ("ab", "xy")
