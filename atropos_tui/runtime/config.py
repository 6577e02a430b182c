"""The configuration every environment has. Environments subclass it; unknown keywords are ignored, as files rely on."""

from __future__ import annotations

import inspect
from enum import Enum
from typing import Any, get_type_hints

from pydantic import BaseModel, Field, field_validator

AUTO_OUTBOX = "auto"
REASONING_EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh")


class EvalHandlingEnum(Enum):
    """What training does while an evaluation runs: stop, go on with a share of the workers, or go on as before."""

    STOP_TRAIN = "STOP_TRAIN"
    LIMIT_TRAIN = "LIMIT_TRAIN"
    NONE = "NONE"


class BaseEnvConfig(BaseModel):
    """Names, types and defaults are those of atroposlib 0.4.0; what is ours stands at the end."""

    group_size: int = Field(4, ge=1, description="Rollouts that are scored together as one group")
    max_num_workers: int = Field(
        -1, description="Groups in flight at most; -1 takes max_num_workers_per_node for each inference server"
    )
    max_eval_workers: int = Field(16, description="Tasks of an evaluation that run at once, where the environment asks")
    max_num_workers_per_node: int = Field(8, description="Groups in flight for each inference server")
    steps_per_eval: int = Field(100, description="Evaluate whenever the trainer crosses a multiple; 0 or less: never")
    max_token_length: int = Field(2048, description="Longest sequence in tokens that rollouts may generate")
    eval_handling: EvalHandlingEnum = Field(
        EvalHandlingEnum.STOP_TRAIN, description="What training does during an evaluation"
    )
    eval_limit_ratio: float = Field(0.5, description="Share of the workers that go on under LIMIT_TRAIN")
    inference_weight: float = Field(1.0, description="Share of the inference servers next to other environments")
    batch_size: int = Field(-1, description="Sequences a training batch; -1: as the trainer says")
    max_batches_offpolicy: int = Field(3, description="Batches that may wait for the trainer; 0 or less: no limit")
    tokenizer_name: str = Field(
        "NousResearch/DeepHermes-3-Llama-3-3B-Preview", description="Tokenizer on the hub, or a directory"
    )
    use_wandb: bool = Field(True, description="Log metrics to Weights & Biases")
    rollout_server_url: str = Field("http://localhost:8000", description="Address of the trajectory API")
    total_steps: int = Field(1000, description="The trainer's step to end at; -1: as the trainer says")
    wandb_name: str | None = Field(None, description="Name of the run in W&B and at the trajectory API")
    num_rollouts_to_keep: int = Field(32, description="Groups shown in a W&B table")
    num_rollouts_per_group_for_logging: int = Field(1, description="Rollouts of each of them; -1: all")
    ensure_scores_are_not_same: bool = Field(True, description="Skip groups whose scores are all the same")
    data_path_to_save_groups: str | None = Field(None, description="JSONL file of the groups; never overwritten")
    data_dir_to_save_evals: str | None = Field(None, description="Directory of the results of evaluations")
    min_items_sent_before_logging: int = Field(2, description="Groups that must have ended before metrics are logged")
    include_messages: bool = Field(False, description="Send messages to the trainer, decoded from tokens if need be")
    min_batch_allocation: float | None = Field(None, description="Least share of each batch, from 0.0 to 1.0")
    worker_timeout: float = Field(600, description="Seconds a group may take; 0 or less: no limit")
    thinking_mode: bool = Field(False, description="Ask the model to reason; implied by the next two")
    reasoning_effort: str | None = Field(None, description=f"One of {', '.join(REASONING_EFFORTS)}")
    max_reasoning_tokens: int | None = Field(None, ge=1024, le=32000, description="Tokens of reasoning at most")
    custom_thinking_prompt: str | None = Field(None, description="System prompt that environments add to make it think")

    score_tolerance: float = Field(1e-6, ge=0.0, description="Scores this close to each other count as the same")
    outbox_limit: int = Field(1000, ge=1, description="Finished groups that may wait for the trajectory API")
    outbox_path: str | None = Field(
        AUTO_OUTBOX,
        description="File where they wait; auto: in the run's directory, or a place of the environment's own under the "
        "run root; None: in memory, so that a killed process loses them",
    )
    item_retries: int = Field(
        0, ge=0, description="How often an item is tried again after an inference error or a timeout"
    )

    @field_validator("reasoning_effort")
    @classmethod
    def _known_effort(cls, effort: str | None) -> str | None:
        if effort is not None and effort not in REASONING_EFFORTS:
            raise ValueError(f"must be one of {', '.join(REASONING_EFFORTS)}")
        return effort


def config_class(environment: type) -> type[BaseEnvConfig]:
    """The config class of an environment: its `env_config_cls`, or what some name it by instead.

    Those are a class or class method `config_cls`, `name_config_cls`, and the annotation of `config` in `__init__`.
    """
    named = [getattr(environment, name, None) for name in ("env_config_cls", "config_cls", "name_config_cls")]
    for candidate in (*(name() if inspect.ismethod(name) else name for name in named), _annotated_config(environment)):
        if inspect.isclass(candidate) and issubclass(candidate, BaseEnvConfig) and candidate is not BaseEnvConfig:
            return candidate
    return BaseEnvConfig


def default_config(environment: type) -> BaseEnvConfig:
    """The config of an environment that says nothing else. Fields without a default are left out, to be given later."""
    config = config_class(environment)
    required = any(field.is_required() for field in config.model_fields.values())
    return config.model_construct() if required else config()


def _annotated_config(environment: type) -> Any:
    try:
        return get_type_hints(environment.__init__).get("config")  # type: ignore[misc]
    except (NameError, TypeError, AttributeError):  # names that exist for type checkers only
        return None
