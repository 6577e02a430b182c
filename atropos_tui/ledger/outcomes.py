"""The one vocabulary for where a group is and why: outcomes, reasons, stages, states.

Every group that is started is in exactly one `Outcome` at any time, and ends in exactly one.
All words here are shown, counted and filterable; they are also the words of the wire between worker and screen.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType


class Outcome(StrEnum):
    """Where a started group is. The first two are on the way, the others are final."""

    IN_FLIGHT = "in_flight"
    IN_OUTBOX = "in_outbox"
    DELIVERED = "delivered"
    SKIPPED = "skipped"
    REJECTED = "rejected"
    FAILED = "failed"
    REFUSED = "refused"
    REQUEUED = "requeued"


OPEN_OUTCOMES = frozenset({Outcome.IN_FLIGHT, Outcome.IN_OUTBOX})

# From where to where a group may move; anything else is a fault of the runtime and turns the header red.
LEGAL_MOVES: Mapping[Outcome, frozenset[Outcome]] = MappingProxyType(
    {
        Outcome.IN_FLIGHT: frozenset(Outcome) - {Outcome.IN_FLIGHT, Outcome.DELIVERED, Outcome.REFUSED},
        Outcome.IN_OUTBOX: frozenset({Outcome.DELIVERED, Outcome.REFUSED, Outcome.SKIPPED}),
    }
)


class Stage(StrEnum):
    """What a group in flight is doing."""

    COLLECTING = "collecting"
    POSTPROCESSING = "postprocessing"
    CHECKING = "checking"


class DeliveredAs(StrEnum):
    """What the trajectory API said when it accepted a group."""

    RECEIVED = "received"
    BUFFERED = "buffered"


class SkipReason(StrEnum):
    """Why the runtime's own filter kept a group from the trainer."""

    IDENTICAL_SCORES = "identical_scores"
    TOO_LONG = "too_long"
    NO_TRAINABLE_TOKENS = "no_trainable_tokens"
    WRONG_GROUP_SIZE = "wrong_group_size"
    MALFORMED = "malformed"
    EMPTY = "empty"
    STALE = "stale"


class ScoreSplit(StrEnum):
    """How the scores of a group with identical scores compare with the best and worst seen in the run."""

    ALL_BEST = "all_best"
    ALL_WORST = "all_worst"
    ALL_EQUAL = "all_equal"


class RejectReason(StrEnum):
    """Which part of the environment's code returned None."""

    COLLECT_TRAJECTORIES = "collect_trajectories"
    POSTPROCESS_HISTORIES = "postprocess_histories"


class FailReason(StrEnum):
    """What broke, or that the operator gave the group up."""

    ENV_ERROR = "env_error"
    INFERENCE_ERROR = "inference_error"
    TIMEOUT = "timeout"
    CANCELLED = "cancelled"


class RequeueReason(StrEnum):
    """Why a group was cancelled on purpose; its item is back in the backlog."""

    EVAL_STARTED = "eval_started"
    HARD_PAUSE = "hard_pause"
    SHUTDOWN = "shutdown"
    OPERATOR = "operator"


class ThrottleReason(StrEnum):
    """Why no further group is started now."""

    MAX_NUM_WORKERS = "max_num_workers"
    OFF_POLICY_LIMIT = "off_policy_limit"
    EVAL = "eval"
    PAUSED = "paused"
    NO_ITEMS = "no_items"
    OUTBOX_FULL = "outbox_full"
    SERVERS_UNHEALTHY = "servers_unhealthy"
    TRAINER_NOT_READY = "trainer_not_ready"
    BACKING_OFF = "backing_off"
    FINISHING = "finishing"


class RunState(StrEnum):
    """The life of a run, as the header names it."""

    STARTING = "starting"
    RUNNING = "running"
    PAUSING = "pausing"
    PAUSED = "paused"
    EVALUATING = "evaluating"
    FINISHING = "finishing"
    FINISHED = "finished"
    CRASHED = "crashed"


ENDED_STATES = frozenset({RunState.FINISHED, RunState.CRASHED})
