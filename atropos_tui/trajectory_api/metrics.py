"""`GET /metrics`: the run's numbers in Prometheus' text format."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from atropos_tui.trajectory_api.inspection import Inspection
from atropos_tui.trajectory_api.run import Counters

MEDIA_TYPE = b"text/plain; version=0.0.4; charset=utf-8"
_PREFIX = "trajectory_api_"


def metrics_text(now: Inspection, counters: Counters) -> str:
    """All families, one sample a line."""
    return "\n".join([*_gauges(now), *_totals(counters), *_environments(now)]) + "\n"


def _gauges(now: Inspection) -> Iterator[str]:
    yield from _family("step", "gauge", "the trainer's step", [("", now.trainer.current_step)])
    yield from _family("batch_size_sequences", "gauge", "sequences of a batch", [("", now.batches.batch_size)])
    yield from _family("queue_groups", "gauge", "groups that wait for a batch", [("", now.queue.groups)])
    yield from _family("queue_sequences", "gauge", "sequences that wait for a batch", [("", now.queue.sequences)])
    yield from _family("queue_oldest_seconds", "gauge", "age of the oldest queued group", [("", now.queue.oldest_age)])
    yield from _family("queue_bytes", "gauge", "memory of the queued groups, estimated", [("", now.queue.bytes)])
    yield from _family("batches_ready", "gauge", "whole batches in the queue, up to 8", [("", now.batches.ready)])
    yield from _family("batches_in_delivery", "gauge", "batches that are being sent", [("", now.batches.in_delivery)])
    failing = int(bool(now.journal_trouble))
    yield from _family("journal_failing", "gauge", "1 while the journal cannot be written", [("", failing)])
    yield from _family("warnings", "gauge", "warnings that /inspect shows", [("", len(now.warnings))])


def _totals(counters: Counters) -> Iterator[str]:
    yield from _family("groups_accepted_total", "counter", "groups accepted", [("", counters.accepted_groups)])
    yield from _family("sequences_accepted_total", "counter", "sequences accepted", [("", counters.accepted_sequences)])
    yield from _family("groups_repeated_total", "counter", "groups sent again", [("", counters.repeated_groups)])
    yield from _family("groups_delivered_total", "counter", "groups delivered", [("", counters.delivered_groups)])
    yield from _family("batches_delivered_total", "counter", "batches delivered", [("", counters.delivered_batches)])
    yield from _family(
        "batches_interrupted_total", "counter", "batches that were put back", [("", counters.interrupted_batches)]
    )
    refused = [(f'{{status="{status}"}}', count) for status, count in sorted(counters.refused_requests.items())]
    yield from _family("requests_refused_total", "counter", "requests answered with an error", refused)


def _environments(now: Inspection) -> Iterator[str]:
    rows = [(f'{{env_id="{row.env_id}",name="{_escaped(row.wandb_name)}"}}', row) for row in now.environments]
    yield from _family("env_queue_groups", "gauge", "queued groups", [(at, row.queued_groups) for at, row in rows])
    yield from _family("env_weight", "gauge", "share of the weights", [(at, row.weight) for at, row in rows])
    yield from _family("env_silent_seconds", "gauge", "since last heard of", [(at, row.silent_for) for at, row in rows])
    yield from _family("env_connected", "gauge", "1 while it counts", [(at, int(row.counts)) for at, row in rows])
    yield from _family(
        "env_groups_accepted_total", "counter", "groups", [(at, row.accepted_groups) for at, row in rows]
    )


def _family(name: str, kind: str, text: str, samples: Iterable[tuple[str, float]]) -> Iterator[str]:
    yield f"# HELP {_PREFIX}{name} {text}"
    yield f"# TYPE {_PREFIX}{name} {kind}"
    for labels, value in samples:
        yield f"{_PREFIX}{name}{labels} {value}"


def _escaped(label: str) -> str:
    return label.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
