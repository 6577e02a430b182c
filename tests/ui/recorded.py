"""A recorded run: snapshots with everything filled in, the groups behind them, and a source that plays them.

The figures are those of a policy that learns to reverse strings: scores climb to nearly one, then the task gets longer.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from atropos_tui.errors import AtroposError
from atropos_tui.ledger.outcomes import Outcome, RunState, ThrottleReason
from atropos_tui.monitor.group_detail import GroupDetail, GroupPage
from atropos_tui.monitor.group_filter import sorted_rows
from atropos_tui.monitor.group_query import ALL_GROUPS, GroupQuery
from atropos_tui.monitor.group_store import GroupFilter, sorted_page
from atropos_tui.monitor.snapshot import ConfigRow, EndedRow, InferenceSection, RunSection, RunSnapshot
from atropos_tui.ui.views.messages import says
from tests.ui.recorded_sections import (
    GROUP_SIZE,
    NOW,
    ended_rows,
    evals_section,
    group_detail,
    ledger_section,
    logs_section,
    queue_section,
    run_section,
    scores_section,
    sends_section,
    servers,
    skipped_section,
)


def running() -> RunSnapshot:
    """A run in full swing: 32 groups in flight, a trainer that keeps up, one server of three down."""
    return RunSnapshot(
        seq=4_812,
        taken_at=NOW,
        run=run_section(),
        ledger=ledger_section(),
        queue=queue_section(),
        scores=scores_section(),
        skipped=skipped_section(),
        sends=sends_section(),
        inference=InferenceSection(servers=servers()),
        logs=logs_section(),
        evals=evals_section(),
    )


def starting() -> RunSnapshot:
    run = RunSection(
        run_id="k7fq",
        environment="reverse_strings",
        file="envs/reverse_strings.py",
        pid=4711,
        state=RunState.STARTING,
        headline="waiting for the trajectory API at http://localhost:8000",
        started_at=NOW - 9,
        group_size=GROUP_SIZE,
    )
    return RunSnapshot(seq=1, taken_at=NOW, run=run)


def paused() -> RunSnapshot:
    base = running()
    headline = "paused by ada@login1 (screen): nothing starts until it is resumed"
    run = replace(base.run, state=RunState.PAUSED, headline=headline, last_progress_at=NOW - 42, alerts=())
    queue = replace(base.queue, rows=(), in_flight=0, throttle=ThrottleReason.PAUSED, throttle_detail="")
    counts = {**base.ledger.by_outcome, Outcome.IN_FLIGHT: 0}
    ledger = replace(base.ledger, by_outcome=counts, started=sum(counts.values()))
    return replace(base, seq=5_000, run=run, queue=queue, ledger=ledger)


def pausing() -> RunSnapshot:
    base = running()
    run = replace(base.run, state=RunState.PAUSING, headline="pausing: 5 groups in flight end first")
    queue = replace(base.queue, rows=base.queue.rows[:5], in_flight=5, throttle=ThrottleReason.PAUSED)
    return replace(base, seq=4_900, run=run, queue=queue)


def evaluating() -> RunSnapshot:
    base = running()
    run = replace(base.run, state=RunState.EVALUATING, headline="evaluating for step 312", alerts=())
    queue = replace(base.queue, rows=base.queue.rows[:3], in_flight=3, throttle=ThrottleReason.EVAL, throttle_detail="")
    evals = replace(base.evals, running_since_at=NOW - 6, running_step=312)
    return replace(base, seq=4_950, run=run, queue=queue, evals=evals)


def crashed() -> RunSnapshot:
    base = running()
    run = replace(
        base.run,
        state=RunState.CRASHED,
        headline="",
        why_ended="KeyError: 'answer' in envs/reverse_strings.py:58 (get_next_item)",
        ended_at=NOW,
        traceback="Traceback (most recent call last):\n  File \"envs/reverse_strings.py\", line 58\nKeyError: 'answer'",
    )
    queue = replace(base.queue, rows=(), in_flight=0, throttle="", throttle_detail="")
    counts = {**base.ledger.by_outcome, Outcome.IN_FLIGHT: 0, Outcome.REQUEUED: 40}
    ledger = replace(base.ledger, by_outcome=counts, started=sum(counts.values()))
    return replace(base, seq=5_000, run=run, queue=queue, ledger=ledger)


def finished() -> RunSnapshot:
    base = paused()
    run = replace(
        base.run,
        state=RunState.FINISHED,
        headline="",
        why_ended="all 2,000 steps done",
        step=2_000,
        ended_at=NOW,
    )
    sends = replace(base.sends, outbox=0, trainer_step=2_000, last_error="", last_error_body="", retries=0)
    return replace(base, seq=9_000, run=run, sends=sends)


def out_of_balance() -> RunSnapshot:
    base = running()
    violation = "group 871 moved from delivered to skipped"
    return replace(base, ledger=replace(base.ledger, balanced=False, violation=violation))


def config_rows() -> tuple[ConfigRow, ...]:
    """The merged configuration, with values from every kind of source."""
    set_by = {"env.group_size": ("8", "run.yaml"), "env.total_steps": ("2000", "command line")}
    settings = {
        "env.group_size": "4", "env.max_num_workers": "-1", "env.max_eval_workers": "16",
        "env.max_num_workers_per_node": "8", "env.steps_per_eval": "100", "env.max_token_length": "2048",
        "env.eval_handling": "STOP_TRAIN", "env.eval_limit_ratio": "0.5", "env.inference_weight": "1.0",
        "env.total_steps": "1000", "env.max_batches_offpolicy": "3", "env.tokenizer_name": "pocket",
        "env.use_wandb": "True", "env.rollout_server_url": "http://localhost:8000",
        "env.ensure_scores_are_not_same": "True", "env.data_path_to_save_groups": "None",
    }  # fmt: skip
    rows = [ConfigRow(name, *set_by.get(name, (value, "class default"))) for name, value in settings.items()]
    servers = [
        ConfigRow(f"openai[{index}].{name}", value, "run.yaml" if name != "timeout" else "class default")
        for index in range(3)
        for name, value in (
            ("base_url", f"http://10.0.0.{5 + index}:9001/v1"), ("api_key", "***"),
            ("model_name", "pocket"), ("timeout", "1200"),
        )
    ]  # fmt: skip
    prompt = "Reverse the string. " + "Answer with the reversed string and nothing else. " * 6
    return (
        *rows, ConfigRow("env.system_prompt", prompt, "config_init"),
        ConfigRow("env.batch_size", "64", "the trainer"), *servers, ConfigRow("slurm", "False", "class default"),
    )  # fmt: skip


class RecordedSource:
    """Plays snapshots and keeps note of the commands it gets. `fail_with` makes every call fail from then on."""

    def __init__(self, *snapshots: RunSnapshot, rows: Sequence[EndedRow] | None = None) -> None:
        self.commands: list[str] = []
        self.fail_with: AtroposError | None = None
        self.rows = list(ended_rows() if rows is None else rows)
        self.details: dict[int, GroupDetail] = {}
        self.notes_file: Path | None = None
        self.takes_at_once = True
        self._snapshots = list(snapshots)
        self._news = asyncio.Event()
        self.streams_opened = 0

    def play(self, snapshot: RunSnapshot) -> None:
        """The next snapshot of the stream."""
        self._snapshots.append(snapshot)
        self._news.set()

    def break_off(self, error: AtroposError) -> None:
        """The stream ends with this error; attempts to open it again get no answer."""
        self.fail_with = error
        self._news.set()

    async def stream(self, hz: float) -> AsyncIterator[RunSnapshot]:
        del hz
        self.streams_opened += 1
        while True:
            if self.fail_with is not None and self.streams_opened == 1:
                raise self.fail_with
            while self._snapshots:
                yield self._snapshots.pop(0)
            self._news.clear()
            await self._news.wait()

    async def groups(
        self,
        *,
        older_than: int | None = None,
        limit: int = 50,
        outcome: str = "",
        reason: str = "",
        query: GroupQuery = ALL_GROUPS,
    ) -> GroupPage:
        if self.fail_with is not None:
            raise self.fail_with
        wanted = GroupFilter.of(query, outcome=outcome, reason=reason)
        rows = [row for row in self.rows if wanted.matches(row, partial(self._says, row))]
        if not wanted.by_time:
            return sorted_page(sorted_rows(rows, query.order), older_than, limit)
        older = [row for row in rows if older_than is None or row.group_id < older_than]
        page = tuple(older[:limit])
        return GroupPage(page, page[-1].group_id if len(older) > limit else None, len(rows))

    def _says(self, row: EndedRow, word: str) -> bool:
        detail = self.details.get(row.group_id) or group_detail(row)
        return any(says(rollout.messages, [word]) for rollout in detail.rollouts)

    async def group(self, group_id: int) -> GroupDetail:
        if self.fail_with is not None:
            raise self.fail_with
        if group_id in self.details:
            return self.details[group_id]
        row = next((row for row in self.rows if row.group_id == group_id), None)
        if row is None:
            raise AtroposError(f"group {group_id} is not kept any more")
        return group_detail(row)

    async def pause(self) -> None:
        self._note("pause")

    async def pause_now(self) -> None:
        self._note("pause now")

    async def resume(self) -> None:
        self._note("resume")

    async def evaluate_now(self) -> bool:
        self._note("evaluate now")
        return self.takes_at_once

    async def cancel_group(self, group_id: int) -> bool:
        self._note(f"cancel {group_id}")
        return self.takes_at_once

    async def requeue_group(self, group_id: int) -> bool:
        self._note(f"requeue {group_id}")
        return self.takes_at_once

    async def config(self) -> tuple[ConfigRow, ...]:
        if self.fail_with is not None:
            raise self.fail_with
        return config_rows()

    async def step_group(self) -> None:
        self._note("step")

    async def stop(self) -> None:
        self._note("stop")

    async def close(self) -> None:
        self._note("close")

    def _note(self, command: str) -> None:
        if self.fail_with is not None:
            raise self.fail_with
        self.commands.append(command)
