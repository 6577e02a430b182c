"""The figures of the recorded run: one function a section of the snapshot, and the groups behind them."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import replace

from atropos_tui.ledger.outcomes import Outcome, RunState, Stage, ThrottleReason
from atropos_tui.monitor.group_detail import GroupDetail, RolloutDetail
from atropos_tui.monitor.snapshot import (
    Alert,
    EndedRow,
    EvalRow,
    EvalsSection,
    InFlightRow,
    LedgerSection,
    LogRow,
    LogsSection,
    QueueSection,
    ReasonCount,
    RunSection,
    ScorePart,
    ScoresSection,
    SendsSection,
    ServerRow,
    SkippedSection,
    TokenLooks,
    TrendPoint,
)

NOW = 1_800_000_000.0
GROUP_SIZE = 8
LETTERS = "abcdefghijklmnopqrstuvwxyz"

_SKIP_REASONS = (
    (Outcome.SKIPPED, "identical_scores", 214, 11),
    (Outcome.SKIPPED, "too_long", 31, 2),
    (Outcome.FAILED, "env_error", 12, 1),
    (Outcome.SKIPPED, "no_trainable_tokens", 9, 0),
    (Outcome.REJECTED, "collect_trajectories", 4, 0),
    (Outcome.FAILED, "timeout", 3, 0),
    (Outcome.REFUSED, "http_422", 1, 0),
)


def run_section() -> RunSection:
    return RunSection(
        run_id="k7fq",
        environment="reverse_strings",
        file="envs/reverse_strings.py",
        pid=4711,
        state=RunState.RUNNING,
        started_at=NOW - 743,
        step=312,
        total_steps=2_000,
        group_size=GROUP_SIZE,
        max_token_length=64,
        tokenizer_name="pocket",
        last_progress_at=NOW - 1,
        alerts=(
            Alert("servers_down", "1 of 3 inference servers is down: 10.0.0.7:9001 refuses connections", NOW - 40),
        ),
    )


def ledger_section() -> LedgerSection:
    counts = {
        Outcome.IN_FLIGHT: 32,
        Outcome.IN_OUTBOX: 3,
        Outcome.DELIVERED: 1_102,
        Outcome.SKIPPED: 254,
        Outcome.REJECTED: 4,
        Outcome.FAILED: 15,
        Outcome.REFUSED: 1,
        Outcome.REQUEUED: 8,
    }
    reasons: dict[Outcome, dict[str, int]] = {
        Outcome.DELIVERED: {"received": 1_090, "buffered": 12},
        Outcome.REQUEUED: {"eval_started": 8},
    }
    for outcome, reason, count, _ in _SKIP_REASONS:
        reasons.setdefault(outcome, {})[reason] = count
    return LedgerSection(started=sum(counts.values()), by_outcome=counts, by_reason=reasons)


def queue_section() -> QueueSection:
    chance = random.Random(11)
    rows = [_in_flight(number, chance) for number in range(32)]
    rows.sort(key=lambda row: row.started_at)
    return QueueSection(
        rows=tuple(rows),
        in_flight=32,
        limit=32,
        backlog=3,
        throttle=ThrottleReason.MAX_NUM_WORKERS,
        throttle_detail="32 of 32 workers",
        trainer_queue=12,
        trainer_queue_limit=36,
        rollouts_per_second=33.1,
        groups_per_second=4.1,
    )


def _in_flight(number: int, chance: random.Random) -> InFlightRow:
    done = chance.choice((0, 1, 2, 3, 4, 5, 6, 7, 8, 8))
    stage = Stage.COLLECTING if done < GROUP_SIZE else chance.choice((Stage.POSTPROCESSING, Stage.CHECKING))
    return InFlightRow(
        group_id=1_388 + number,
        item=f"reverse {word(chance, 5)}",
        stage=stage,
        started_at=NOW - (71.0 if number == 0 else chance.uniform(0.2, 9.0)),
        rollouts=GROUP_SIZE,
        rollouts_done=done,
        completion_tokens=done * 14,
        calls=done,
        server=chance.choice((0, 1)),
    )


def scores_section() -> ScoresSection:
    chance = random.Random(5)
    trend = tuple(_trend_point(index, chance) for index in range(180))
    bins = tuple(round(4 + 160 * math.exp(-((index - 14) ** 2) / 18) * chance.uniform(0.7, 1.1)) for index in range(20))
    return ScoresSection(
        groups=1_376,
        rollouts=11_008,
        window=256,
        mean=0.71,
        low=0.0,
        high=1.0,
        edges=tuple(index / 20 for index in range(21)),
        bins=bins,
        spikes=((1.0, 412), (0.0, 96)),
        trend=trend,
        within_std=0.21,
        between_std=0.14,
        zero_advantage_share=0.18,
        first20=0.06,
        best20=0.93,
        last20=0.74,
        completion_tokens=13.6,
        truncated_share=0.004,
        parts=_parts(trend),
        looks=TokenLooks(rollouts=128, repetitive=2, repetitive_group=1_290, mean_logprob=-0.62),
    )


def _parts(trend: Sequence[TrendPoint]) -> tuple[ScorePart, ...]:
    """Two parts that follow the score, and one that has stopped telling rollouts apart."""
    points = tuple(point.mean for point in trend[::3])
    return (
        ScorePart("right_letters", 1_376, 0.71, 0.19, points),
        ScorePart("right_length", 1_376, 0.94, 0.06, tuple(min(1.0, 0.4 + point) for point in points)),
        ScorePart("format", 1_376, 1.0, 0.0, (0.2, 0.6, 0.9, *(1.0,) * 57)),
    )


def _trend_point(index: int, chance: random.Random) -> TrendPoint:
    """A saw-tooth: each level is learnt, then the strings get longer."""
    start, length = next((s, n) for s, n in ((135, 45), (80, 55), (0, 80)) if index >= s)
    learnt = 1 / (1 + math.exp(-9 * ((index - start) / length - 0.45)))
    mean = 0.05 + (0.9 if start == 0 else 0.62) * learnt + (0 if start == 0 else 0.27) + chance.gauss(0, 0.025)
    spread = 0.10 + 0.1 * (1 - learnt)
    return TrendPoint(
        at=NOW - 743 + index * 743 / 180,
        groups=8,
        mean=mean,
        low=max(0.0, mean - spread * chance.uniform(0.6, 1.3)),
        high=min(1.0, mean + spread * chance.uniform(0.6, 1.3)),
        completion_tokens=13.6,
    )


def skipped_section() -> SkippedSection:
    recent = tuple(row for row in ended_rows() if row.outcome not in (Outcome.DELIVERED, Outcome.REQUEUED))
    return SkippedSection(
        total=274,
        last_minute=14,
        ended_last_minute=78,
        last_ten_minutes=152,
        ended_last_ten_minutes=803,
        reasons=tuple(ReasonCount(*reason, reason[3] * 9 + 2) for reason in _SKIP_REASONS),
        all_best=131,
        all_worst=70,
        all_equal=13,
        in_a_row=2,
        recent=recent[:20],
    )


def sends_section() -> SendsSection:
    chance = random.Random(3)
    return SendsSection(
        api_url="http://localhost:8000",
        outbox=3,
        oldest_in_outbox_at=NOW - 4,
        delivered=1_102,
        buffered=12,
        refused=1,
        delivered_per_second=3.4,
        last_delivered_at=NOW - 1,
        latency_p50=0.012,
        latency_p95=0.041,
        raw_bytes=43_400_000,
        wire_bytes=12_100_000,
        retries=2,
        last_error="connection reset by peer",
        last_error_at=NOW - 190,
        trainer_step=312,
        trainer_step_at=NOW - 4,
        seconds_per_step=5.2,
        batch_size=64,
        trainer_queue=12,
        trainer_queue_limit=36,
        trainer_queue_own=9,
        policy_lag=0.4,
        lag_when_taken=1.6,
        send_rate_history=tuple(float(max(0, round(chance.gauss(3.4, 1.6)))) for _ in range(60)),
    )


def servers() -> tuple[ServerRow, ...]:
    up = ServerRow(
        server=0,
        url="http://10.0.0.5:9001/v1",
        server_type="vllm",
        model_name="pocket",
        healthy=True,
        detail="",
        in_flight=96,
        limit=128,
        eval_in_flight=0,
        eval_limit=32,
        requests=5_904,
        errors=2,
        latency_p50=0.41,
        latency_p95=1.3,
        tokens_per_second=1_240.0,
        last_error="ReadTimeout after 30 s",
        last_error_at=NOW - 260,
        weight_version=311,
    )
    second = replace(up, server=1, url="http://10.0.0.6:9001/v1", in_flight=88, errors=0, requests=5_610, last_error="")
    down = replace(
        second,
        server=2,
        url="http://10.0.0.7:9001/v1",
        healthy=False,
        detail="connection refused for 40 s",
        in_flight=0,
        requests=812,
        errors=31,
        tokens_per_second=0.0,
        last_error="ConnectError: connection refused",
        last_error_at=NOW - 2,
        weight_version=288,
    )
    return up, second, down


def logs_section() -> LogsSection:
    traceback = (
        "Traceback (most recent call last):\n"
        '  File "envs/reverse_strings.py", line 41, in collect_trajectory\n'
        "    score = reward(reply, item['answer'])\n"
        '  File "envs/reverse_strings.py", line 77, in reward\n'
        "    raise ValueError(f'no answer in {reply!r}')\n"
        "ValueError: no answer in 'hiefc >'\n"
    )
    rows = (
        LogRow(
            "ERROR",
            "runtime.group",
            "group 1387: ValueError: no answer in 'hiefc >'",
            12,
            NOW - 700,
            NOW - 21,
            traceback,
            1_387,
            "reverse oahto",
        ),
        LogRow(
            "WARNING",
            "inference.health",
            "server 2 at http://10.0.0.7:9001/v1 refuses connections",
            8,
            NOW - 40,
            NOW - 2,
        ),
        LogRow("INFO", "runtime.eval", "evaluation at step 300: accuracy 0.71", 3, NOW - 640, NOW - 30),
        LogRow(
            "INFO",
            "wandb",
            "Tracking run with wandb version 0.19.1, syncing is set to `offline`",
            1,
            NOW - 742,
            NOW - 742,
        ),
    )
    return LogsSection(rows=rows, errors=12, warnings=8)


def evals_section() -> EvalsSection:
    accuracies = (0.71, 0.66, 0.52, 0.31, 0.12, 0.02)
    rows = tuple(
        EvalRow(
            step=300 - 60 * index,
            at=NOW - 30 - 130 * index,
            seconds=4.2 + index / 10,
            metrics={"eval/accuracy": accuracy, "eval/mean_score": accuracy + 0.12, "eval/mean_tokens": 13.2},
        )
        for index, accuracy in enumerate(accuracies)
    )
    return EvalsSection(rows=rows)


def word(chance: random.Random, length: int) -> str:
    return "".join(chance.choice(LETTERS) for _ in range(length))


def ended_rows(count: int = 120) -> list[EndedRow]:
    """The newest groups of the run, newest first."""
    chance = random.Random(23)
    return [_ended_row(1_387 - index, NOW - 2.0 - index * 0.8, chance) for index in range(count)]


def _ended_row(group_id: int, at: float, chance: random.Random) -> EndedRow:
    kind = chance.choices(("delivered", "easy", "hard", "failed", "long"), (70, 14, 8, 4, 4))[0]
    scores = tuple(round(min(1.0, max(0.0, chance.gauss(0.7, 0.22))) * 5) / 5 for _ in range(GROUP_SIZE))
    row = EndedRow(
        group_id=group_id,
        at=at,
        outcome=Outcome.DELIVERED,
        reason="received",
        split="",
        item=f"reverse {word(chance, 5)}",
        scores=scores,
        completion_tokens=tuple(chance.randint(11, 16) for _ in range(GROUP_SIZE)),
        step=312 - (NOW - at > 30),
        seconds=chance.uniform(1.0, 6.0),
        weight_version=311,
        has_content=True,
    )
    if kind == "easy":
        return replace(
            row, outcome=Outcome.SKIPPED, reason="identical_scores", split="all_best", scores=(1.0,) * GROUP_SIZE
        )
    if kind == "hard":
        return replace(
            row, outcome=Outcome.SKIPPED, reason="identical_scores", split="all_worst", scores=(0.0,) * GROUP_SIZE
        )
    if kind == "failed":
        error = "ValueError: no answer in 'hiefc >'"
        return replace(row, outcome=Outcome.FAILED, reason="env_error", scores=(), completion_tokens=(), error=error)
    if kind == "long":
        return replace(row, outcome=Outcome.SKIPPED, reason="too_long")
    return row


def group_detail(row: EndedRow) -> GroupDetail:
    """The content of a group: a string and eight attempts to reverse it, one character a token."""
    if row.outcome is Outcome.FAILED:
        return GroupDetail(row=row, error=row.error, traceback=logs_section().rows[0].traceback)
    chance = random.Random(row.group_id)
    mean = sum(row.scores) / len(row.scores)
    rollouts = tuple(_rollout(row.item.removeprefix("reverse "), score, score - mean, chance) for score in row.scores)
    return GroupDetail(row=row, rollouts=rollouts)


def _rollout(text: str, score: float, advantage: float, chance: random.Random) -> RolloutDetail:
    right = text[::-1]
    keep = round(score * len(right))
    reply = right[:keep] + word(chance, len(right) - keep)
    prompt = ["<|user|>", *text, " >", " ", "<|assistant|>", "\n"]
    pieces = [*prompt, *reply, "<|end|>"]
    trained = [False] * len(prompt) + [True] * (len(reply) + 1)
    logprobs = [
        1.0 if not is_trained else round(-abs(chance.gauss(0, 0.15 if index - len(prompt) < keep else 2.6)), 3)
        for index, is_trained in enumerate(trained)
    ]
    return RolloutDetail(
        score=score,
        tokens=tuple(3 + (sum(map(ord, piece)) % 500) for piece in pieces),
        pieces=tuple(pieces),
        masks=tuple(3 + (sum(map(ord, p)) % 500) if t else -100 for p, t in zip(pieces, trained, strict=True)),
        logprobs=tuple(logprobs),
        advantages=tuple(advantage if is_trained else 0.0 for is_trained in trained),
        messages=(
            {"role": "system", "content": "Write the letters in reverse order."},
            {"role": "user", "content": f"{text} >"},
            {"role": "assistant", "content": f"{text} > {reply}"},
        ),
        finish_reason="stop",
        parts={"letters": score, "length": 1.0},
    )
