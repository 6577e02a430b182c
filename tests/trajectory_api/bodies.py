"""Bodies as trainers and environments send them."""

from __future__ import annotations

from typing import Any

from atropos_tui.trajectory_api.door import read_any_group, read_plain_group
from atropos_tui.trajectory_api.group import ScoredGroup

GROUP_KEYS = {
    "tokens", "masks", "scores", "advantages", "ref_logprobs", "messages", "generation_params", "inference_logprobs",
    "overrides", "group_overrides", "images", "env_id", "distill_token_ids", "distill_logprobs",
}  # fmt: skip


def registration(**changes: Any) -> dict[str, Any]:
    return {
        "wandb_group": "group", "wandb_project": "project", "batch_size": 8, "max_token_len": 512,
        "checkpoint_dir": "/checkpoints", "save_checkpoint_interval": 7, "starting_step": 0, "num_steps": 1000,
        **changes,
    }  # fmt: skip


def environment(**changes: Any) -> dict[str, Any]:
    return {"max_token_length": 512, "desired_name": "env", "weight": 1.0, "group_size": 4, **changes}


def group(sequences: int = 4, *, mark: int = 0, **changes: Any) -> dict[str, Any]:
    """A group of three tokens a sequence; `mark` is its first token, by which a test knows it again."""
    return {
        "tokens": [[mark, 2, 3] for _ in range(sequences)],
        "masks": [[-100, 2, 3] for _ in range(sequences)],
        "scores": [index / 2 for index in range(sequences)],
        **changes,
    }


def mark_of(received: dict[str, Any]) -> int:
    """The `mark` that the group was made with."""
    return int(received["tokens"][0][0])


def read_group(body: bytes) -> list[ScoredGroup]:
    """As the server reads the body of `/scored_data`: the quick way if it can."""
    return read_plain_group(body) or read_any_group(body)
