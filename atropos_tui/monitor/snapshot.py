"""What the screen shows, as immutable data: a `RunSnapshot` in sections.

The model in the worker makes it, the control API sends the sections that changed, the screen draws it. Its size is
bounded whatever the run does. Times ending in `_at` are Unix seconds on the worker's clock (0.0: never), so an age is
`taken_at - x`; durations are seconds; rates are per second unless the name says otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from atropos_tui.ledger.outcomes import Outcome, RunState


@dataclass(frozen=True, slots=True)
class Alert:
    """A hint with its evidence: `name` is stable and short, `text` one sentence with the numbers.

    `group_id` is a group that shows it, -1 where none does.
    """

    name: str
    text: str
    since_at: float
    severe: bool = False
    group_id: int = -1


@dataclass(frozen=True, slots=True)
class RunSection:
    """The header line. `headline` says in one sentence what everything waits for now; empty when groups flow.

    `loop_lag` is how late the event loop of the author's code is, in seconds; `loop_held_by` the line that holds it.
    """

    run_id: str = ""
    environment: str = ""
    file: str = ""
    pid: int = 0
    state: RunState = RunState.STARTING
    headline: str = ""
    started_at: float = 0.0
    ended_at: float = 0.0
    why_ended: str = ""
    step: int = 0
    total_steps: int = 0
    group_size: int = 0
    max_token_length: int = 0
    tokenizer_name: str = ""
    last_progress_at: float = 0.0
    loop_lag: float = 0.0
    loop_held_by: str = ""
    alerts: tuple[Alert, ...] = ()
    traceback: str = ""


@dataclass(frozen=True, slots=True)
class LedgerSection:
    """The equation, its terms by outcome, and the reasons within each outcome."""

    started: int = 0
    by_outcome: dict[Outcome, int] = field(default_factory=dict)
    by_reason: dict[Outcome, dict[str, int]] = field(default_factory=dict)
    balanced: bool = True
    violation: str = ""


@dataclass(frozen=True, slots=True)
class InFlightRow:
    """One group in flight. `rollouts_done` of `rollouts` wait for no completion; `server` is the last called, or -1."""

    group_id: int
    item: str
    stage: str
    started_at: float
    rollouts: int
    rollouts_done: int
    completion_tokens: int
    calls: int
    server: int


@dataclass(frozen=True, slots=True)
class QueueSection:
    """The rollout queue. `throttle` is a ThrottleReason or empty; queue sizes are groups; -1 stands for no limit.

    `rows` are those longest in flight; of very many they are not all. Rates are of scored groups, over the last minute,
    and so is `held_by_trainer`: the share of it in which no group might start because the trainer's queue was full.
    """

    rows: tuple[InFlightRow, ...] = ()
    in_flight: int = 0
    limit: int = 0
    backlog: int = 0
    throttle: str = ""
    throttle_detail: str = ""
    trainer_queue: int = 0
    trainer_queue_limit: int = -1
    rollouts_per_second: float = 0.0
    groups_per_second: float = 0.0
    held_by_trainer: float = 0.0


@dataclass(frozen=True, slots=True)
class TrendPoint:
    """Consecutive groups taken together: the mean of their mean scores, the lowest and the highest of these."""

    at: float
    groups: int
    mean: float
    low: float
    high: float
    completion_tokens: float


@dataclass(frozen=True, slots=True)
class ScorePart:
    """A named part of the score: its mean and its deviation within groups over the newest 256 groups that told it.

    `points` are means of equally many groups each, over the whole run, oldest first.
    """

    name: str
    groups: int
    mean: float
    within_std: float
    points: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class PartTakeover:
    """One part of the score has come to decide more of it while another fell; `part` is empty where none has.

    `share` is how much of the differences of scores within groups it tells, from 0 to 1; "before" is at the beginning
    of the run. `group_id` is a group that shows it, -1 where none does.
    """

    part: str = ""
    share: float = 0.0
    share_before: float = 0.0
    fallen: str = ""
    fallen_mean: float = 0.0
    fallen_mean_before: float = 0.0
    group_id: int = -1


@dataclass(frozen=True, slots=True)
class TokenLooks:
    """What a look at the tokens of the newest `rollouts` showed; -1 stands for no token and no group.

    `repetitive` rollouts go round in circles; in `doubled_end` of them the end-of-turn token stands twice in a row; of
    `untrained` ones far fewer tokens are trained on than the text of their last message has; `garbled` ones are noise.
    `mean_logprob` is that of the trained tokens as they were sampled: the further below 0, the higher the entropy of
    the policy. None where no logprobs are told.
    """

    rollouts: int = 0
    repetitive: int = 0
    repetitive_group: int = -1
    end_token: int = -1
    doubled_end: int = 0
    doubled_end_group: int = -1
    untrained: int = 0
    untrained_group: int = -1
    garbled: int = 0
    garbled_group: int = -1
    mean_logprob: float | None = None


@dataclass(frozen=True, slots=True)
class ScoresSection:
    """Scores of the last `window` groups, and the trend over the whole run; `recent` is that of the last hour, finer.

    `edges` has one entry more than `bins` and does not move while scores stay inside it; `spikes` counts exact values
    that hold many rollouts, largest first, and these are not in `bins`. `within_std` is the mean of the groups' own
    standard deviations, `between_std` the deviation of their means. `first20`, `best20` and `last20` are means of
    the first, best and newest 20 consecutive groups in order of completion; None before 20 groups are there.
    `parts`, `takeover` and `looks` come from the contents of groups: in a moment that was folded from recorded events
    they are those of `kept_at` (0.0: of this moment), and missing where that is negative, for no snapshot was kept yet.
    """

    groups: int = 0
    rollouts: int = 0
    window: int = 0
    mean: float = 0.0
    low: float = 0.0
    high: float = 0.0
    edges: tuple[float, ...] = ()
    bins: tuple[int, ...] = ()
    spikes: tuple[tuple[float, int], ...] = ()
    trend: tuple[TrendPoint, ...] = ()
    recent: tuple[TrendPoint, ...] = ()
    within_std: float = 0.0
    between_std: float = 0.0
    zero_advantage_share: float = 0.0
    first20: float | None = None
    best20: float | None = None
    last20: float | None = None
    completion_tokens: float = 0.0
    truncated_share: float = 0.0
    parts: tuple[ScorePart, ...] = ()
    takeover: PartTakeover = field(default_factory=PartTakeover)
    looks: TokenLooks = field(default_factory=TokenLooks)
    kept_at: float = 0.0


@dataclass(frozen=True, slots=True)
class ReasonCount:
    """One reason for which groups did not reach the trainer: in all, in the last minute and in the last ten."""

    outcome: Outcome
    reason: str
    count: int
    last_minute: int
    last_ten_minutes: int = 0


@dataclass(frozen=True, slots=True)
class EndedRow:
    """One group that ended: a line of the ring of skipped ones, and of the trajectory list.

    `scores` and `completion_tokens` have one entry a rollout, at most 64. `step` is the trainer's when it started.
    `finishes` are the ways in which its replies ended, such as `length` and `stop`.
    """

    group_id: int
    at: float
    outcome: Outcome
    reason: str
    split: str
    item: str
    scores: tuple[float, ...]
    completion_tokens: tuple[int, ...]
    step: int
    seconds: float
    weight_version: int | None = None
    has_content: bool = False
    error: str = ""
    finishes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SkippedSection:
    """Groups that ended without reaching the trainer: skipped, rejected, failed, refused.

    `ended_last_minute` is the denominator of the rates: all groups that ended in the last minute. `in_a_row` counts the
    newest consecutive groups with zero advantage. `recent` is newest first. Requeued groups are left out everywhere.
    """

    total: int = 0
    last_minute: int = 0
    ended_last_minute: int = 0
    last_ten_minutes: int = 0
    ended_last_ten_minutes: int = 0
    reasons: tuple[ReasonCount, ...] = ()
    all_best: int = 0
    all_worst: int = 0
    all_equal: int = 0
    in_a_row: int = 0
    recent: tuple[EndedRow, ...] = ()


@dataclass(frozen=True, slots=True)
class SendsSection:
    """The way to the trainer. Bytes are totals.

    `unwritable` says what keeps the outbox at `outbox_path` from taking groups, `unwritable_remedy` what helps, both
    empty while it takes them; `unwritten` finished groups wait for that in the worker's memory.

    Lags are means, of the newest 64 groups, of the trainer's steps from the start of a group: `policy_lag` until it was
    delivered, `lag_when_taken` until the trainer took it (-1.0: it has taken none yet). `send_rate_history` has the
    deliveries of each second of the last minute, oldest first. `seconds_per_step` is the trainer's newest pace, 0.0
    before two steps were seen; `trainer_queue_own` of the groups in its queue are this run's.
    """

    api_url: str = ""
    outbox: int = 0
    oldest_in_outbox_at: float = 0.0
    delivered: int = 0
    buffered: int = 0
    refused: int = 0
    delivered_per_second: float = 0.0
    last_delivered_at: float = 0.0
    latency_p50: float = 0.0
    latency_p95: float = 0.0
    raw_bytes: int = 0
    wire_bytes: int = 0
    retries: int = 0
    last_error: str = ""
    last_error_body: str = ""
    last_error_at: float = 0.0
    next_retry_at: float = 0.0
    trainer_step: int = 0
    trainer_step_at: float = 0.0
    seconds_per_step: float = 0.0
    batch_size: int = 0
    trainer_queue: int = 0
    trainer_queue_limit: int = -1
    trainer_queue_own: int = 0
    policy_lag: float = 0.0
    lag_when_taken: float = -1.0
    send_rate_history: tuple[float, ...] = ()
    outbox_path: str = ""
    unwritable: str = ""
    unwritable_remedy: str = ""
    unwritable_since_at: float = 0.0
    unwritten: int = 0


@dataclass(frozen=True, slots=True)
class ServerRow:
    """One inference server. `healthy` is None while nothing is known; rates and percentiles over the last minute.

    `auxiliary` ones make no rollouts: the environment made them itself, to judge for example.
    """

    server: int
    url: str
    server_type: str
    model_name: str
    healthy: bool | None
    detail: str
    in_flight: int
    limit: int
    eval_in_flight: int
    eval_limit: int
    requests: int
    errors: int
    latency_p50: float
    latency_p95: float
    tokens_per_second: float
    last_error: str
    last_error_at: float
    weight_version: int | None
    auxiliary: bool = False


@dataclass(frozen=True, slots=True)
class InferenceSection:
    """The servers, in the order of their numbers."""

    servers: tuple[ServerRow, ...] = ()


@dataclass(frozen=True, slots=True)
class LogRow:
    """Log lines that are equal but for numbers, taken together; `text` is one line, that of the newest.

    Of lines that tell of groups that failed, `group_id` and `item` are those of the newest; else -1 and empty.
    """

    level: str
    logger: str
    text: str
    count: int
    first_at: float
    last_at: float
    traceback: str = ""
    group_id: int = -1
    item: str = ""


@dataclass(frozen=True, slots=True)
class LogsSection:
    """Newest first; `dropped` distinct lines no longer fit."""

    rows: tuple[LogRow, ...] = ()
    errors: int = 0
    warnings: int = 0
    dropped: int = 0


@dataclass(frozen=True, slots=True)
class EvalRow:
    """One evaluation: its metrics by name, or what broke it."""

    step: int
    at: float
    seconds: float
    metrics: dict[str, float]
    error: str = ""
    traceback: str = ""


@dataclass(frozen=True, slots=True)
class EvalsSection:
    """Newest first. `running_since_at` is 0.0 when no evaluation runs."""

    rows: tuple[EvalRow, ...] = ()
    running_since_at: float = 0.0
    running_step: int = 0


@dataclass(frozen=True, slots=True)
class RecordSection:
    """The run file. `level` is empty when nothing is recorded, `stopped` says why recording ended early.

    Sizes are bytes (0: no limit); every event up to `seq` is on disk. Of `dropped_arrays` groups the token arrays, of
    `dropped_contents` groups everything but their lines made room; `missed_contents` came too fast to be written.
    """

    level: str = ""
    path: str = ""
    size: int = 0
    size_limit: int = 0
    seq: int = 0
    dropped_arrays: int = 0
    dropped_contents: int = 0
    missed_contents: int = 0
    stopped: str = ""


@dataclass(frozen=True, slots=True)
class RunSnapshot:
    """One moment of a run. `versions` has a number a section that grows when the section changes."""

    seq: int = 0
    taken_at: float = 0.0
    versions: dict[str, int] = field(default_factory=dict)
    run: RunSection = field(default_factory=RunSection)
    ledger: LedgerSection = field(default_factory=LedgerSection)
    queue: QueueSection = field(default_factory=QueueSection)
    scores: ScoresSection = field(default_factory=ScoresSection)
    skipped: SkippedSection = field(default_factory=SkippedSection)
    sends: SendsSection = field(default_factory=SendsSection)
    inference: InferenceSection = field(default_factory=InferenceSection)
    logs: LogsSection = field(default_factory=LogsSection)
    evals: EvalsSection = field(default_factory=EvalsSection)
    record: RecordSection = field(default_factory=RecordSection)


SECTIONS = ("run", "ledger", "queue", "scores", "skipped", "sends", "inference", "logs", "evals", "record")


@dataclass(frozen=True, slots=True)
class ConfigRow:
    """One value of the merged configuration, as one would write it on the command line, and where it is from.

    Secrets are `***`. `source` is `command line`, the name of the `--config` file, `config_init`, `class default`,
    `the environment's code`, `the trainer`; empty where a record does not tell.
    """

    name: str
    value: str
    source: str
