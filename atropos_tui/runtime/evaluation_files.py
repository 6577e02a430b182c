"""The results of evaluations on disk, in the format that nous-evals reads. No file is ever overwritten."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from atropos_tui.runtime.tolerant_json import to_json


def evaluation_record(
    metrics: Mapping[str, Any],
    *,
    task_name: str,
    model_name: str | None,
    seconds: float,
    generation_parameters: Mapping[str, Any],
) -> dict[str, Any]:
    """`metrics.json`: how the evaluation was made, and its results by task and over all."""
    return {
        "config_general": {
            "model_name": model_name,
            "total_evaluation_time_seconds": str(seconds),
            "generation_parameters": dict(generation_parameters),
        },
        "results": {f"atropos|{task_name}|0": dict(metrics), "all": dict(metrics)},
    }


def write_evaluation(directory: str, record: Mapping[str, Any], samples: Sequence[Mapping[str, Any]] | None) -> Path:
    """Write `metrics.json`, and `samples.jsonl` if there are samples; `metrics_1.json` … where they are taken."""
    folder = Path(directory)
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(json.loads(to_json(record)), indent=2)
    number = 0
    while True:
        suffix = f"_{number}" if number else ""
        path = folder / f"metrics{suffix}.json"
        try:
            with path.open("x", encoding="utf-8") as file:
                file.write(text)
        except FileExistsError:
            number += 1
            continue
        break
    if samples:
        with (folder / f"samples{suffix}.jsonl").open("wb") as lines:
            lines.writelines(to_json(sample) + b"\n" for sample in samples)
    return path


def metrics_table(task_name: str, metrics: Mapping[str, Any], seconds: float) -> str:
    """The metrics as a markdown table, for people."""
    names = [str(name).removeprefix("eval/").replace("_", " ") for name in metrics]
    values = [_as_text(value) for value in metrics.values()]
    name_width = max([len("Metric"), *map(len, names)])
    value_width = max([len("Value"), *map(len, values)])
    lines = [
        f"{task_name}, {seconds:.2f} s",
        f"| {'Metric':<{name_width}} | {'Value':>{value_width}} |",
        f"|{'-' * (name_width + 2)}|{'-' * (value_width + 1)}:|",
        *(f"| {name:<{name_width}} | {value:>{value_width}} |" for name, value in zip(names, values, strict=True)),
    ]
    return "\n".join(lines)


def _as_text(value: Any) -> str:
    try:
        return f"{float(value):.4f}"
    except (TypeError, ValueError):
        return str(value)
