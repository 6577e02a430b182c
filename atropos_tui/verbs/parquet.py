"""Groups as Parquet: one row a rollout, groups in order of ending.

| column | type | |
|---|---|---|
| `group_id` | int64 | the group's number in its run (of a JSONL file, its line) |
| `rollout` | int32 | its place in the group, from 0 |
| `outcome`, `reason` | string | what became of the group, and why |
| `ended_at` | timestamp[ms, UTC] | when it ended |
| `seconds` | double | from its start to its end |
| `step` | int64 | the trainer's step when it started |
| `weight_version` | int64, null | version of the weights that answered, where the server told it |
| `item` | string | the beginning of what it was about |
| `score` | double, null | |
| `parts` | map<string, double> | what the score is made of, where the environment told it |
| `finish_reason` | string | `stop`, `length` … |
| `messages` | string | JSON, a list of objects with `role` and `content` |
| `tokens`, `masks` | list<int32> | as they went to the trainer; -100 masks a token |
| `logprobs`, `advantages` | list<float> | one a token, empty where there were none |
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, BinaryIO

from atropos_tui.errors import UsageError
from atropos_tui.monitor.group_detail import GroupDetail

if TYPE_CHECKING:
    import pyarrow

ROWS_AT_ONCE = 2_000


def require_pyarrow() -> None:
    """Raises UsageError where the package that writes Parquet is not installed."""
    try:
        import pyarrow.parquet  # noqa: F401
    except ImportError as error:
        raise UsageError("Parquet needs the package pyarrow", "pip install 'atropos-tui[parquet]'") from error


def write_parquet(groups: Iterable[GroupDetail], out: BinaryIO) -> int:
    """The number of rows written; a few thousand are in memory at once. Raises OSError."""
    import pyarrow
    from pyarrow.parquet import ParquetWriter

    written = 0
    schema = parquet_schema()
    with ParquetWriter(out, schema, compression="zstd") as writer:
        for rows in _batches(row for group in groups for row in _rows(group)):
            writer.write_table(pyarrow.Table.from_pylist(rows, schema))
            written += len(rows)
    return written


def parquet_schema() -> pyarrow.Schema:
    import pyarrow as pa

    return pa.schema(
        {
            "group_id": pa.int64(),
            "rollout": pa.int32(),
            "outcome": pa.string(),
            "reason": pa.string(),
            "ended_at": pa.timestamp("ms", tz="UTC"),
            "seconds": pa.float64(),
            "step": pa.int64(),
            "weight_version": pa.int64(),
            "item": pa.string(),
            "score": pa.float64(),
            "parts": pa.map_(pa.string(), pa.float64()),
            "finish_reason": pa.string(),
            "messages": pa.string(),
            "tokens": pa.list_(pa.int32()),
            "masks": pa.list_(pa.int32()),
            "logprobs": pa.list_(pa.float32()),
            "advantages": pa.list_(pa.float32()),
        }
    )


def _rows(group: GroupDetail) -> Iterator[Mapping[str, Any]]:
    row = group.row
    for number, rollout in enumerate(group.rollouts):
        yield {
            "group_id": row.group_id,
            "rollout": number,
            "outcome": str(row.outcome),
            "reason": row.reason,
            "ended_at": round(row.at * 1000),
            "seconds": row.seconds,
            "step": row.step,
            "weight_version": row.weight_version,
            "item": row.item,
            "score": rollout.score,
            "parts": list(rollout.parts.items()),
            "finish_reason": rollout.finish_reason,
            "messages": json.dumps(rollout.messages),
            "tokens": rollout.tokens,
            "masks": rollout.masks,
            "logprobs": rollout.logprobs,
            "advantages": rollout.advantages,
        }


def _batches(rows: Iterable[Mapping[str, Any]]) -> Iterator[list[Mapping[str, Any]]]:
    batch: list[Mapping[str, Any]] = []
    for row in rows:
        batch.append(row)
        if len(batch) == ROWS_AT_ONCE:
            yield batch
            batch = []
    if batch:
        yield batch
