"""The wire: bodies and answers of every endpoint, as upstream's trajectory API (atroposlib 0.4.0) has them.

Masks are -100 where a token is not trained on, else the token itself; `inference_logprobs` are aligned with the
tokens and exactly 1.0 where a token was not sampled. `distill_*` have the shape [sequence][position][k].
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, FiniteFloat, field_validator

DEFAULT_ENV_NAME = "environment"
# Choosing a batch takes time in proportion to its size.
LARGEST_BATCH: Final = 2**24
# What the journal and all readers of JSON can hold.
Integer: TypeAlias = Annotated[int, Field(ge=-(2**63), lt=2**63)]


class ScoredData(BaseModel):
    """A scored group. One entry a sequence in every list; those named `…logprobs`, `masks` and `advantages` hold
    one number a token of it."""

    tokens: list[list[int]]
    masks: list[list[int]]
    scores: list[FiniteFloat]
    advantages: list[list[FiniteFloat]] | None = None
    ref_logprobs: list[list[FiniteFloat]] | None = None
    messages: list[list[dict[str, Any]]] | None = None
    generation_params: dict[str, Any] | None = None
    inference_logprobs: list[list[FiniteFloat]] | None = None
    overrides: list[dict[str, Any]] | None = None
    group_overrides: dict[str, Any] | None = None
    images: Any = None
    env_id: int | None = None
    distill_token_ids: list[list[list[int]]] | None = None
    distill_logprobs: list[list[list[FiniteFloat]]] | None = None


class Registration(BaseModel):
    """What a trainer says of its run. `batch_size` counts sequences, not groups."""

    wandb_group: str
    wandb_project: str
    batch_size: int = Field(ge=1, le=LARGEST_BATCH)
    max_token_len: Integer
    checkpoint_dir: str
    save_checkpoint_interval: Integer
    starting_step: Integer
    num_steps: Integer


class LenientRegistration(Registration):
    """For trainers of other dialects: what they leave out or send as null gets a default, other names are known."""

    model_config = ConfigDict(populate_by_name=True)

    wandb_group: str = Field("", validation_alias=AliasChoices("wandb_group", "run_group", "run_id"))
    wandb_project: str = Field("", validation_alias=AliasChoices("wandb_project", "run_project"))
    checkpoint_dir: str = ""
    save_checkpoint_interval: Integer = 0
    starting_step: Integer = 0
    num_steps: Integer = -1

    @field_validator("*", mode="before")
    @classmethod
    def _default_for_null(cls, value: Any, info: Any) -> Any:
        return cls.model_fields[info.field_name].get_default() if value is None else value


class RegisterEnv(BaseModel):
    """What an environment says of itself.

    `min_batch_allocation` is the least share of each batch, 0 to 1. The last two are ours and optional: `run_id` names
    the environment's run, so that one that registers again gets its former id, and `control_url` says where it can be
    watched.
    """

    max_token_length: Integer
    desired_name: str | None = None
    weight: FiniteFloat | None = 1.0
    group_size: int = Field(ge=1, lt=2**63)
    # Above 1 it is cut down, as upstream does; so large that it cannot be multiplied, it would be a mistake.
    min_batch_allocation: FiniteFloat | None = Field(None, ge=0, le=1000)
    run_id: str | None = None
    control_url: str | None = None


class EnvIdentifier(BaseModel):
    env_id: int


class Message(BaseModel):
    message: str


class Registered(BaseModel):
    """`uuid` is an integer of up to 128 bits."""

    uuid: int


class WandbInfo(BaseModel):
    group: str | None
    project: str | None


class Info(BaseModel):
    """-1 before a trainer registered."""

    batch_size: int
    max_token_len: int


class Status(BaseModel):
    """`current_step` counts delivered batches from the trainer's `starting_step`; the queue is in groups."""

    current_step: int
    queue_size: int


class EnvRegistered(BaseModel):
    status: Literal["success"] = "success"
    env_id: int
    wandb_name: str
    checkpoint_dir: str
    starting_step: int
    checkpoint_interval: int
    num_steps: int


class EnvNotRegistered(BaseModel):
    """Not yet, or not with these settings: `status` says why in words, and asking again is right."""

    status: str


class Disconnected(BaseModel):
    status: Literal["success", "failure"]
    error: str | None = None


class EnvStatus(BaseModel):
    """Queue sizes are in groups of the asking environment's size; `queue_size` leaves out what other environments'
    minimums will take."""

    current_step: int
    queue_size: int
    unallocated_fraction: float
    self_queue_size: int
    max_group_size: int
    env_weight: float


class Accepted(BaseModel):
    """`buffered`: the group's size is not the environment's own, it waits for others to make up that size together;
    `buffer_size` is the number of sequences that then wait."""

    status: Literal["received", "buffered"]
    buffer_size: int | None = None


class ListAccepted(BaseModel):
    status: Literal["received"] = "received"
    groups_processed: int
    buffered: int | None = None
    last_buffer_size: int | None = None


class Batch(BaseModel):
    """`batch` is null while none can be made. Without a trainer it is an empty list, with `status` and `message`."""

    batch: list[ScoredData] | None
    status: Literal["error"] | None = None
    message: str | None = None


class Health(BaseModel):
    status: Literal["ok"] = "ok"


FIELDS = tuple(ScoredData.model_fields)
