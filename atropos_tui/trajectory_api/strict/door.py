"""Upstream's door for scored groups: types are checked, lengths and numbers are not."""

from __future__ import annotations

import json
import math
from typing import Any

from pydantic import BaseModel, ValidationError

from atropos_tui.trajectory_api.group import ScoredGroup, ScoreSummary
from atropos_tui.trajectory_api.http import Body
from atropos_tui.trajectory_api.request_errors import BadBodyError, problem
from atropos_tui.trajectory_api.stored_json import NOTHING, StoredJson


class _LooseScoredData(BaseModel):
    """Upstream's model of a group: types, no lengths, any numbers."""

    tokens: list[list[int]]
    masks: list[list[int]]
    scores: list[float]
    advantages: list[list[float]] | None = None
    ref_logprobs: list[list[float]] | None = None
    messages: list[list[dict[str, Any]]] | None = None
    generation_params: dict[str, Any] | None = None
    inference_logprobs: list[list[float]] | None = None
    overrides: list[dict[str, Any]] | None = None
    group_overrides: dict[str, Any] | None = None
    images: Any = None
    env_id: int | None = None
    distill_token_ids: list[list[list[int]]] | None = None
    distill_logprobs: list[list[list[float]]] | None = None


def read_loose_group(body: Body) -> list[ScoredGroup]:
    """The body of `/scored_data`, checked no more than upstream does. Raises BadBodyError."""
    return [_loose(_parsed(body), ())]


def read_loose_groups(body: Body) -> list[ScoredGroup]:
    entries = _parsed(body)
    if not isinstance(entries, list):
        raise BadBodyError([problem((), "Input should be a valid list", "list_type")])
    return [_loose(entry, (index,)) for index, entry in enumerate(entries)]


def _parsed(body: Body) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise BadBodyError([problem((), f"JSON decode error: {error}", "json_invalid")]) from error


def _loose(data: Any, place: tuple[int, ...]) -> ScoredGroup:
    try:
        group = _LooseScoredData.model_validate(data)
    except ValidationError as error:
        entries = error.errors(include_url=False, include_input=False)
        raise BadBodyError(
            [problem((*place, *entry["loc"]), entry["msg"], entry["type"]) for entry in entries]
        ) from error
    if any("role" not in turn or "content" not in turn for turns in group.messages or () for turn in turns):
        raise BadBodyError([problem((*place, "messages"), "Message must have 'role' and 'content' fields")])
    try:
        text = StoredJson.plain(json.dumps(group.model_dump(), allow_nan=False).encode())
    except ValueError:
        # It is accepted all the same; the batch that it comes to will fail.
        text = NOTHING
    summary = ScoreSummary.of(group.scores or [math.nan])
    return ScoredGroup(text, group.env_id, len(group.tokens), sum(map(len, group.tokens)), summary)
