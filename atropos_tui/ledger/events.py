"""What happens in a run, as small frozen events.

The runtime publishes them, the monitor folds them into snapshots and the record keeps them. Every event carries
a sequence number without gaps, a monotonic time (seconds, for durations) and a wall time (Unix seconds, for people).
Events name groups by a number that is unique in the run; what a group contains travels beside them (`content.py`).
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from atropos_tui.ledger.outcomes import (
    DeliveredAs,
    FailReason,
    Outcome,
    RejectReason,
    RequeueReason,
    RunState,
    ScoreSplit,
    SkipReason,
    Stage,
    ThrottleReason,
)


class EventBase(BaseModel):
    """What all events share; `EventStream` fills these three in."""

    # Who only looks at runs, such as the screen, then builds none of the schemas.
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    seq: int
    mono: float
    wall: float


class Setting(BaseModel):
    """One value of the merged configuration, as text, and where it is from in words. Secrets are masked."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    value: str
    source: str


class RunStarted(EventBase):
    """`settings` is the whole configuration, with servers and switches; `config` the environment's part as values."""

    kind: Literal["run_started"] = "run_started"
    run_id: str
    environment: str
    file: str
    pid: int
    group_size: int
    total_steps: int
    max_token_length: int
    tokenizer_name: str
    config: dict[str, Any] = Field(default_factory=dict)
    settings: tuple[Setting, ...] = ()
    versions: dict[str, str] = Field(default_factory=dict)


class RunConfigured(EventBase):
    """The trajectory API accepted the registration: what it told about the run."""

    kind: Literal["run_configured"] = "run_configured"
    api_url: str
    env_id: int
    starting_step: int
    total_steps: int
    batch_size: int
    max_token_len: int


class StateChanged(EventBase):
    """`waiting_for` says in words what the run waits for and where; empty when it waits for nothing.

    `paused_by` is who has paused the run, such as `ada@login1 (screen)`; empty where nobody has.
    """

    kind: Literal["state_changed"] = "state_changed"
    state: RunState
    waiting_for: str = ""
    paused_by: str = ""


class RunEnded(EventBase):
    kind: Literal["run_ended"] = "run_ended"
    state: RunState
    why: str
    traceback: str = ""


class BacklogChanged(EventBase):
    kind: Literal["backlog_changed"] = "backlog_changed"
    size: int


class ThrottleChanged(EventBase):
    """Why no further group is started (None: one may start at once), how many may run, and the numbers in words."""

    kind: Literal["throttle_changed"] = "throttle_changed"
    reason: ThrottleReason | None
    limit: int
    detail: str = ""


class TrainerStatus(EventBase):
    """What the trajectory API says of the trainer. Queue sizes are in groups of this environment's size."""

    kind: Literal["trainer_status"] = "trainer_status"
    step: int
    batch_size: int
    queue_size: int
    queue_limit: int
    self_queue_size: int
    env_weight: float
    unallocated_fraction: float


class GroupStarted(EventBase):
    """A worker took an item. `split_from` is set for the further groups that one item gave."""

    kind: Literal["group_started"] = "group_started"
    group_id: int
    item: str
    rollouts: int
    step: int
    from_backlog: bool = False
    split_from: int | None = None


class GroupStageChanged(EventBase):
    kind: Literal["group_stage_changed"] = "group_stage_changed"
    group_id: int
    stage: Stage


class GroupScored(EventBase):
    """A well-formed group has its scores, whatever the filter then does with it.

    `completion_tokens` counts the trainable tokens of each rollout, `truncated` the rollouts cut by a length limit.
    """

    kind: Literal["group_scored"] = "group_scored"
    group_id: int
    scores: tuple[float, ...]
    completion_tokens: tuple[int, ...]
    truncated: int = 0
    weight_version: int | None = None


class GroupMove(EventBase):
    """A group changes its outcome; each subclass is one outcome."""

    outcome: ClassVar[Outcome]
    group_id: int

    @property
    def reason_word(self) -> str:
        """The reason as it is counted and shown; empty where an outcome has none."""
        return str(getattr(self, "reason", ""))


class GroupEnqueued(GroupMove):
    """Written to the outbox. `raw_bytes` is the JSON body, `wire_bytes` what goes over the network."""

    outcome = Outcome.IN_OUTBOX
    kind: Literal["group_enqueued"] = "group_enqueued"
    raw_bytes: int
    wire_bytes: int


class GroupDelivered(GroupMove):
    """The trajectory API answered 2xx. `latency` is the seconds of the request that succeeded."""

    outcome = Outcome.DELIVERED
    kind: Literal["group_delivered"] = "group_delivered"
    reason: DeliveredAs
    latency: float
    attempts: int


class GroupSkipped(GroupMove):
    outcome = Outcome.SKIPPED
    kind: Literal["group_skipped"] = "group_skipped"
    reason: SkipReason
    split: ScoreSplit | None = None
    detail: str = ""


class GroupRejected(GroupMove):
    outcome = Outcome.REJECTED
    kind: Literal["group_rejected"] = "group_rejected"
    reason: RejectReason


class GroupFailed(GroupMove):
    """`error` is the root cause in one line, `traceback` the whole of it."""

    outcome = Outcome.FAILED
    kind: Literal["group_failed"] = "group_failed"
    reason: FailReason
    error: str
    traceback: str = ""


class GroupRefused(GroupMove):
    """The trajectory API answered 4xx; the group is kept."""

    outcome = Outcome.REFUSED
    kind: Literal["group_refused"] = "group_refused"
    status: int
    body: str

    @property
    def reason_word(self) -> str:
        return f"http_{self.status}"


class GroupRequeued(GroupMove):
    outcome = Outcome.REQUEUED
    kind: Literal["group_requeued"] = "group_requeued"
    reason: RequeueReason


class SendFailed(EventBase):
    """A send did not arrive and will be tried again in `retry_in` seconds; the groups stay in the outbox."""

    kind: Literal["send_failed"] = "send_failed"
    error: str
    body: str = ""
    attempts: int
    retry_in: float


class OutboxUnwritable(EventBase):
    """The disk did not take a finished group, which is written again in `retry_in` seconds; GroupEnqueued ends that.

    `path` is the outbox, empty for one in memory; `error` what is wrong and `remedy` what helps, in words.
    """

    kind: Literal["outbox_unwritable"] = "outbox_unwritable"
    group_id: int
    path: str = ""
    error: str
    remedy: str
    retry_in: float


class CallStarted(EventBase):
    """A request to an inference server begins. `group_id` is None for calls outside a rollout, such as evals.

    `auxiliary`: to a server that the environment made itself, such as a judge's; it makes no rollout.
    """

    kind: Literal["call_started"] = "call_started"
    call_id: int
    group_id: int | None
    server: int
    split: Literal["train", "eval"]
    n: int
    auxiliary: bool = False


class CallFinished(EventBase):
    """Latency in seconds, tokens summed over the `n` choices. `error` is empty when the call succeeded.

    `rollout` is the one of the group that it was made for, from 0; None for all of them, or where nobody knows.
    """

    kind: Literal["call_finished"] = "call_finished"
    call_id: int
    group_id: int | None
    rollout: int | None = None
    server: int
    split: Literal["train", "eval"]
    n: int
    latency: float
    prompt_tokens: int = 0
    completion_tokens: int = 0
    finish_reasons: tuple[str, ...] = ()
    weight_version: int | None = None
    error: str = ""
    error_kind: str = ""
    auxiliary: bool = False


class ServerHealth(EventBase):
    """Sent when a server is first known and whenever its health or its limits change."""

    kind: Literal["server_health"] = "server_health"
    server: int
    url: str
    server_type: str
    model_name: str
    healthy: bool | None
    detail: str = ""
    limit: int
    eval_limit: int
    auxiliary: bool = False


class EvalStarted(EventBase):
    kind: Literal["eval_started"] = "eval_started"
    step: int


class EvalEnded(EventBase):
    """`error` is empty when the evaluation succeeded."""

    kind: Literal["eval_ended"] = "eval_ended"
    step: int
    seconds: float
    metrics: dict[str, float] = Field(default_factory=dict)
    error: str = ""
    traceback: str = ""


class MetricsLogged(EventBase):
    kind: Literal["metrics_logged"] = "metrics_logged"
    step: int
    metrics: dict[str, float]


class CheckpointSaved(EventBase):
    kind: Literal["checkpoint_saved"] = "checkpoint_saved"
    step: int
    path: str


class LogLine(EventBase):
    kind: Literal["log_line"] = "log_line"
    level: str
    logger: str
    text: str
    traceback: str = ""


Event: TypeAlias = Annotated[
    RunStarted
    | RunConfigured
    | StateChanged
    | RunEnded
    | BacklogChanged
    | ThrottleChanged
    | TrainerStatus
    | GroupStarted
    | GroupStageChanged
    | GroupScored
    | GroupEnqueued
    | GroupDelivered
    | GroupSkipped
    | GroupRejected
    | GroupFailed
    | GroupRefused
    | GroupRequeued
    | SendFailed
    | OutboxUnwritable
    | CallStarted
    | CallFinished
    | ServerHealth
    | EvalStarted
    | EvalEnded
    | MetricsLogged
    | CheckpointSaved
    | LogLine,
    Field(discriminator="kind"),
]

EVENT_ADAPTER: TypeAdapter[Event] = TypeAdapter(Event, config=ConfigDict(defer_build=True))
