"""What is told of groups when somebody asks: a page of those that ended, and one in full, rollout by rollout."""

from __future__ import annotations

from dataclasses import dataclass, field

from atropos_tui.monitor.snapshot import EndedRow


@dataclass(frozen=True, slots=True)
class RolloutDetail:
    """One rollout in full. `pieces` is the text of each token; empty where no tokenizer could decode them.

    `ref_logprobs` are those of a reference or teacher, 1.0 where it told none; empty where there is no such model.
    """

    score: float | None
    tokens: tuple[int, ...] = ()
    pieces: tuple[str, ...] = ()
    masks: tuple[int, ...] = ()
    logprobs: tuple[float, ...] = ()
    advantages: tuple[float, ...] = ()
    messages: tuple[dict[str, object], ...] = ()
    finish_reason: str = ""
    parts: dict[str, float] = field(default_factory=dict)
    ref_logprobs: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class CallRow:
    """A request to an inference server for `n` completions, answered `at` (Unix seconds) after `latency` seconds.

    Tokens are summed over the completions. `error` is empty when it succeeded. `rollout` is the one of the group that
    it was made for, from 0; None for all of them, or where nobody knows.
    """

    server: int
    at: float
    n: int
    latency: float
    prompt_tokens: int = 0
    completion_tokens: int = 0
    finish_reasons: tuple[str, ...] = ()
    weight_version: int | None = None
    error: str = ""
    rollout: int | None = None


@dataclass(frozen=True, slots=True)
class GroupDetail:
    """One group in full: its line, its rollouts, its newest requests, and what broke if something did."""

    row: EndedRow
    rollouts: tuple[RolloutDetail, ...] = ()
    error: str = ""
    traceback: str = ""
    body: str = ""
    calls: tuple[CallRow, ...] = ()
    earlier_calls: int = 0


@dataclass(frozen=True, slots=True)
class GroupPage:
    """Groups that ended, newest first or as asked for; `older_than` asks for the next page, None at the end."""

    rows: tuple[EndedRow, ...]
    older_than: int | None
    total: int
