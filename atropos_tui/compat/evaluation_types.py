"""What evaluations write, as `nous-evals` reads it, beside the types of `atropos_tui.runtime.types`."""

from __future__ import annotations

from typing import Any, TypedDict


class EvaluationConfigGeneral(TypedDict):
    """How an evaluation was made; the time in seconds, as text."""

    model_name: str
    total_evaluation_time_seconds: str
    generation_parameters: dict[str, Any]


class EvaluationResults(TypedDict):
    """Metrics over all tasks; those of each task stand beside it under `atropos|TASK|0`."""

    all: dict[str, float]


class EvaluationMetrics(TypedDict):
    """The content of `metrics.json`."""

    config_general: EvaluationConfigGeneral
    results: EvaluationResults


class EvaluationSample(TypedDict, total=False):
    """One line of `samples.jsonl`."""

    messages: list[dict[str, Any]]
    question: str
    gold_answer: str
    gold_parsed: str | None
    model_parsed: str | None
    score: float
    correct: bool | None
    finish_reason: str | None
    response_after_think: str | None
