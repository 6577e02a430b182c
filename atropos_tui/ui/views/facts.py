"""All that is known of a rollout beside its text: the item in full, the parts of its score, the group's requests."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, median

from atropos_tui.monitor.group_detail import CallRow, GroupDetail, RolloutDetail
from atropos_tui.ui import formatting
from atropos_tui.ui.ink import Ink, Line, Span, dim, faint, join, join_that_fit, strong
from atropos_tui.ui.text_safety import visible
from atropos_tui.ui.views.messages import prose_lines
from atropos_tui.ui.widgets.table import Column, Table

_BAR = 8
_SCORES_WIDTH = 52
_CALLS = (
    Column("server", 16),
    Column("latency", 7, right=True),
    Column("", _BAR, rank=3),
    Column("n", 2, right=True, rank=1),
    Column("prompt", 6, right=True, rank=2),
    Column("reply", 6, right=True),
    Column("finish", 9, grows=True),
    Column("weights", 7, right=True, rank=4),
    Column("ago", 5, right=True, rank=5),
)


def fact_lines(detail: GroupDetail, chosen: int, servers: Sequence[str], now: float, width: int) -> list[Line]:
    """`servers` are the names of the inference servers by their numbers; `now` is on the worker's clock."""
    lines = [_heading("item"), *prose_lines(detail.row.item or "(none)", width, Ink.TEXT), Line()]
    if detail.rollouts:
        lines += [_heading("score"), *_score_lines(detail.rollouts, chosen, width), Line()]
    return [*lines, *_call_lines(detail, chosen, servers, now, width)]


def _heading(title: str, *facts: Line) -> Line:
    return join((Line(strong(title, Ink.ACCENT)), *facts), "  ")


def _score_lines(rollouts: Sequence[RolloutDetail], chosen: int, width: int) -> list[Line]:
    """The score and its parts, beside those of the group: what of it this rollout lacks."""
    names = list(dict.fromkeys(name for rollout in rollouts for name in rollout.parts))
    rows = [("score", [rollout.score for rollout in rollouts])]
    rows += [(name, [rollout.parts.get(name) for rollout in rollouts]) for name in names]
    columns = (
        Column("", 12, grows=True), Column("this", 7, right=True), Column("mean", 7, right=True),
        Column("lowest", 7, right=True, rank=1), Column("highest", 7, right=True, rank=1),
    )  # fmt: skip

    def row(index: int) -> tuple[Line, ...]:
        name, values = rows[index]
        finite = [value for value in values if value is not None and math.isfinite(value)]
        summary = (fmean(finite), min(finite), max(finite)) if finite else (None, None, None)
        return (Line(visible(name)), _number(values[chosen], Ink.TEXT), *(_number(value, Ink.DIM) for value in summary))

    lines = Table(columns, len(rows), row).lines(min(width, _SCORES_WIDTH), len(rows) + 1)
    return lines if names else [*lines, Line(faint("the environment tells no parts of it (score_parts)"))]


def _number(value: float | None, ink: Ink) -> Line:
    return Line(faint("–")) if value is None else Line(Span(formatting.score(value), ink))


def _call_lines(detail: GroupDetail, chosen: int, servers: Sequence[str], now: float, width: int) -> list[Line]:
    """The requests that were made for this rollout, or for all of the group."""
    if not detail.calls:
        none = "none is known: the group was made without an inference server of ours"
        return [_heading("requests"), Line(dim(none))]
    calls = [call for call in detail.calls if call.rollout in (None, chosen)]
    of_all = f"{len(detail.calls) + detail.earlier_calls} of the group"
    if not calls:
        return [_heading("requests"), Line(dim(f"none was made for this rollout, {of_all}"))]
    failed = sum(bool(call.error) for call in calls)
    latencies = sorted(call.latency for call in calls)
    mine = Line(strong(str(len(calls))), dim(f" of this rollout, {of_all}"))
    facts = [
        Line(dim(of_all)) if len(calls) == len(detail.calls) else mine,
        Line(dim("median "), formatting.duration(median(latencies))),
        Line(dim("slowest "), formatting.duration(latencies[-1])),
    ]
    if failed:
        facts.append(Line(Span(f"{failed} failed", Ink.BAD)))
    lines = [join_that_fit([Line(strong("requests", Ink.ACCENT)), *facts], width)]
    if detail.earlier_calls:
        lines.append(Line(faint(f"the {detail.earlier_calls} first ones of the group are not kept")))
    table = Table(_CALLS, len(calls), lambda index: _call_row(calls[index], servers, now, latencies[-1]))
    return [*lines, *table.lines(width, len(calls) + 1)]


def _call_row(call: CallRow, servers: Sequence[str], now: float, slowest: float) -> tuple[Line, ...]:
    known = 0 <= call.server < len(servers)
    share = call.latency / slowest if slowest > 0 else 0.0
    finish = Line(Span(visible(call.error), Ink.BAD)) if call.error else _finishes(call.finish_reasons)
    return (
        Line(str(call.server), dim(f" {visible(servers[call.server])}" if known else "")),
        Line(formatting.duration(call.latency)),
        Line(Span("━" * max(1, round(share * _BAR)), Ink.CHART)),
        Line(dim(str(call.n))),
        Line(dim(formatting.count(call.prompt_tokens))),
        Line(formatting.count(call.completion_tokens)),
        finish,
        Line(faint("–") if call.weight_version is None else dim(str(call.weight_version))),
        Line(dim(formatting.age(now - call.at))),
    )


def _finishes(reasons: Sequence[str]) -> Line:
    """`stop ×7, length`."""
    parts = []
    for reason in dict.fromkeys(reasons):
        many = reasons.count(reason)
        ink = Ink.WARN if reason == "length" else Ink.DIM
        parts.append(Line(Span(visible(reason) + (f" ×{many}" if many > 1 else ""), ink)))
    return join(parts, ", ") if parts else Line(faint("–"))
