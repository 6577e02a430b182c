"""Metrics of training: completion lengths, durations and outcomes, under the names that dashboards know."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from atropos_tui.ledger import LedgerCounts, Outcome
from atropos_tui.ledger.outcomes import OPEN_OUTCOMES

# Names of atroposlib 0.4.0 for what the ledger counts exactly.
SENT = "train/items_sent_to_api"
REJECTED = "train/items_rejected"
FINAL = [outcome for outcome in Outcome if outcome not in OPEN_OUTCOMES]


def spread(name: str, values: Sequence[float]) -> dict[str, float]:
    """Mean, deviation, highest and lowest under `name` with a suffix; nothing for no values."""
    if not values:
        return {}
    numbers = np.asarray(values, dtype=float)
    return {
        f"{name}_mean": float(numbers.mean()),
        f"{name}_std": float(numbers.std()),
        f"{name}_max": float(numbers.max()),
        f"{name}_min": float(numbers.min()),
    }


def completion_length_metrics(lengths: Sequence[int], max_token_len: int) -> dict[str, float]:
    """Trainable tokens of the rollouts. `_over_95_percent` is the share of rollouts that nearly reach the limit."""
    if not lengths:
        return {}
    name = "train/completion_lengths"
    numbers = np.asarray(lengths, dtype=float)
    metrics = {
        name: float(numbers.mean()),
        f"{name}_std": float(numbers.std()),
        f"{name}_max": float(numbers.max()),
        f"{name}_min": float(numbers.min()),
        f"{name}_p50": float(np.percentile(numbers, 50)),
        f"{name}_p95": float(np.percentile(numbers, 95)),
    }
    if max_token_len > 0:
        metrics[f"{name}_over_95_percent"] = float((numbers > 0.95 * max_token_len).mean())
    return metrics


class OutcomeCounts:
    """What became of groups since the last look: counts by outcome and reason, and the share that taught something."""

    def __init__(self) -> None:
        self._before: dict[str, int] = {}

    def since_last(self, counts: LedgerCounts) -> dict[str, float]:
        now = _flat(counts)
        new = {name: float(count - self._before.get(name, 0)) for name, count in now.items()}
        self._before = now
        metrics = {f"groups/{name}": count for name, count in new.items()}
        metrics[SENT] = new.get(Outcome.DELIVERED, 0.0)
        metrics[REJECTED] = new.get(Outcome.REJECTED, 0.0) + new.get(Outcome.FAILED, 0.0)
        ended = sum(new.get(outcome, 0.0) for outcome in FINAL)
        if ended:
            metrics |= {f"groups/{outcome}_share": new.get(outcome, 0.0) / ended for outcome in FINAL}
        taught = new.get(Outcome.DELIVERED, 0.0)
        scored = taught + new.get("skipped/identical_scores", 0.0)
        if scored:
            metrics["groups/trainable_share"] = taught / scored
        return metrics


def ended(counts: LedgerCounts) -> int:
    """Groups that reached the outbox or an end."""
    return counts.started - counts.by_outcome[Outcome.IN_FLIGHT]


def _flat(counts: LedgerCounts) -> dict[str, int]:
    flat = {"started": counts.started} | {outcome.value: number for outcome, number in counts.by_outcome.items()}
    for outcome in OPEN_OUTCOMES:
        flat.pop(outcome.value)
    for outcome, reasons in counts.by_reason.items():
        flat |= {f"{outcome.value}/{reason}": number for reason, number in reasons.items()}
    return flat


async def server_metrics(servers: Sequence[Any]) -> dict[str, Any]:
    """What each inference server tells of itself, all of them in one mapping."""
    metrics: dict[str, Any] = {}
    for number, server in enumerate(servers):
        told: Mapping[str, Any] = await server.wandb_metrics({}, f"server_{number}")
        metrics |= told
    return metrics


def finite_numbers(metrics: Mapping[Any, Any]) -> dict[str, float]:
    """The metrics that are finite numbers, numpy's included, as floats."""
    numbers: dict[str, float] = {}
    for name, value in metrics.items():
        if isinstance(value, str) or not hasattr(value, "__float__"):
            continue
        try:
            number = float(value)
        except (TypeError, ValueError, OverflowError):
            continue
        if math.isfinite(number):
            numbers[str(name)] = number
    return numbers
