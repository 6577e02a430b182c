"""Outcomes and comparisons in a few words."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from atropos_tui.compat.inspection import Inspection
from benchmarks.upstream_environments.comparison import Comparison
from benchmarks.upstream_environments.differences import UNEXPLAINED
from benchmarks.upstream_environments.runs import Outcome

_LONGEST = 110
_SHORTER = (
    (r"importing \S+ failed: ", ""),
    (r"(?:ModuleNotFoundError: )?No module named ", "missing module "),
    (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d+ (?:- )?", ""),
    (r"/\S*/environments/", "environments/"),
    (r"(?<!\S)\(?/\S*/\S*", "…"),
    ("`", "'"),
)
_TIME = re.compile("time|seconds")


def outcome_in_words(outcome: Outcome) -> str:
    """`2 groups`, `metrics, 240 calls`, `5 batches, 10 groups`, or how it ended without any."""
    calls = sum(outcome.calls.values())
    if outcome.mode == "serve":
        refused = f", {outcome.refused} refused" if outcome.refused else ""
        told = f"{outcome.batches} batches, {len(outcome.groups)} groups{refused}"
        return told if outcome.groups or outcome.status is None else f"{told}, {_end(outcome)}"
    if outcome.groups:
        return f"{len(outcome.groups)} groups"
    if outcome.metrics and outcome.status == 0:
        return f"metrics, {calls} calls"
    return _end(outcome)


def comparison_in_words(comparison: Comparison) -> str:
    """`same tokens, scores and masks`, and which fields differ in which way."""
    if not comparison.same_tokens:
        told = f"{comparison.paired} of {comparison.ours} and {comparison.upstream} groups have the same tokens"
    else:
        told = "same tokens"
    ways = [f"{kind}: {', '.join(fields)}" for kind, fields in comparison.kinds().items()]
    return "; ".join([told, *ways])


def metrics_in_words(ours: Mapping[str, Any], upstream: Mapping[str, Any]) -> str:
    """Whether the metrics of two evaluations are the same, times aside; empty when one has none."""
    if not (ours and upstream):
        return ""
    names = sorted(name for name in ours.keys() | upstream.keys() if not _TIME.search(name))
    differing = [name for name in names if ours.get(name) != upstream.get(name)]
    return f"metrics differ: {', '.join(differing)}" if differing else "same metrics"


def is_explained(comparison: Comparison) -> bool:
    """Whether all tokens are the same, and each difference is one that is meant."""
    return comparison.same_tokens and UNEXPLAINED not in comparison.kinds()


def inspection_in_words(inspection: Inspection) -> str:
    """`yes`, or what is missing."""
    return "yes" if inspection.loads else _short(inspection.error)


def _end(outcome: Outcome) -> str:
    how = "no end in time" if outcome.status is None else f"exit {outcome.status}"
    return f"{how}: {_short(outcome.last_line)}"


def _short(text: str) -> str:
    """Without times, folders of this machine and backticks, and cut where it gets long."""
    for pattern, instead in _SHORTER:
        text = re.sub(pattern, instead, text)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1].rstrip() + "…"
