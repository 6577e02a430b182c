"""Environments that ask a teacher model how likely each token of a rollout is, for a trainer that distils it."""

from __future__ import annotations

import asyncio
import logging
from abc import ABC
from collections.abc import Sequence
from typing import Any, ClassVar, TypeAlias

from pydantic import Field

from atropos_tui.errors import UsageError
from atropos_tui.inference import APIServerConfig, ServerBaseline, ServerManager
from atropos_tui.runtime.base_env import BaseEnv
from atropos_tui.runtime.config import BaseEnvConfig
from atropos_tui.runtime.failures import describe
from atropos_tui.runtime.tokenizer import load_tokenizer
from atropos_tui.runtime.types import Groups, Item

logger = logging.getLogger(__name__)

ServerConfigs: TypeAlias = ServerBaseline | Sequence[APIServerConfig]


class TeacherDistillationConfig(BaseEnvConfig):
    """The config of an environment with a teacher."""

    teacher_enabled: bool = Field(False, description="Ask the teacher for logprobs of every group")
    teacher_top_k: int = Field(
        0, ge=-1, description="The teacher's likeliest tokens at each position; 0: only the rollout's own, -1: none"
    )


class TeacherDistillationEnv(BaseEnv, ABC):
    """Adds `distill_token_ids` and `distill_logprobs`, both [sequence][position][k], to every group that is sent.

    Teacher and policy must have the same vocabulary. A group's `group_overrides` may set `teacher_top_k`, or
    `skip_teacher_top_k` to do without. When the teacher fails the group is sent without them.
    """

    env_config_cls = TeacherDistillationConfig
    teacher_namespace = "teacher"
    config: TeacherDistillationConfig
    # What the command line and the file say of the teacher.
    teacher_server_configs: ClassVar[ServerConfigs | None] = None

    @classmethod
    def teacher_config_init(cls) -> ServerConfigs | None:
        """The default configuration of the teacher's servers; `--teacher.*` and `teacher:` in the file change it."""
        return None

    def __init__(
        self,
        config: TeacherDistillationConfig,
        server_configs: ServerConfigs,
        teacher_server_configs: ServerConfigs | bool | None = None,
        slurm: bool = False,
        testing: bool = False,
    ) -> None:
        """Raises UsageError when a teacher is wanted and not named, or has another vocabulary."""
        given: ServerConfigs | None = None
        if isinstance(teacher_server_configs, bool):
            # Written for BaseEnv's order: config, servers, slurm, testing.
            slurm, testing = teacher_server_configs, slurm
        else:
            given = teacher_server_configs
        super().__init__(config, server_configs, slurm=slurm, testing=testing)
        self.teacher_server: ServerManager | None = None
        if not config.teacher_enabled:
            return
        teacher = given or self.teacher_server_configs or self.teacher_config_init()
        if not teacher:
            raise UsageError(
                "teacher_enabled is set and no teacher is named", "give --teacher.base_url and --teacher.model_name"
            )
        servers = [teacher] if isinstance(teacher, APIServerConfig) else teacher
        self.teacher_server = ServerManager(servers, testing=testing)
        first = servers if isinstance(servers, ServerBaseline) else servers[0]
        self._validate_teacher_tokenizer_compatibility(
            first.model_name if first.tokenizer_name in ("", "none") else first.tokenizer_name
        )

    async def handle_send_to_api(
        self,
        scored_data: Groups,
        item: Item = None,
        do_send_to_api: bool = True,
        abort_on_any_max_length_exceeded: bool = True,
    ) -> None:
        """Add the teacher's logprobs, then do as every environment does."""
        for group in scored_data if isinstance(scored_data, list) else [scored_data]:
            if group is not None and self.teacher_server is not None:
                await self._attach_teacher_distillation(group)
        await super().handle_send_to_api(scored_data, item, do_send_to_api, abort_on_any_max_length_exceeded)

    async def _attach_teacher_distillation(self, group: Any) -> Any:
        group["distill_token_ids"] = group["distill_logprobs"] = None
        overrides = group.get("group_overrides") or {}
        top_k = int(overrides.get("teacher_top_k", self.config.teacher_top_k))
        sequences = group.get("tokens") or []
        if top_k < 0 or not sequences or overrides.get("skip_teacher_top_k", False):
            return group
        try:
            told = await asyncio.gather(*(self._fetch_teacher_for_sequence(ids, top_k) for ids in sequences))
        except Exception as error:  # noqa: BLE001  a teacher that fails must not cost the group
            logger.warning("the group goes without the teacher's logprobs: %s", describe(error))
            return group
        group["distill_token_ids"] = [ids for ids, _ in told]
        group["distill_logprobs"] = [logprobs for _, logprobs in told]
        return group

    async def _fetch_teacher_for_sequence(
        self, token_ids: Sequence[int], top_k: int
    ) -> tuple[list[list[int]], list[list[float]]]:
        """Ids and logprobs, [position][k]. Raises InferenceError."""
        assert self.teacher_server is not None
        told = await self.teacher_server.get_logprobs(
            input_ids=list(token_ids), top_k=top_k, max_tokens=1, split="train"
        )
        return told["prompt_topk_token_ids"], told["prompt_topk_logprobs"]

    def _validate_teacher_tokenizer_compatibility(self, teacher_tokenizer_name: str) -> None:
        own_name = getattr(self.tokenizer, "name_or_path", "")
        if teacher_tokenizer_name == own_name:
            return
        if load_tokenizer(teacher_tokenizer_name).get_vocab() != self.tokenizer.get_vocab():
            raise UsageError(
                f"the teacher's tokenizer {teacher_tokenizer_name!r} has another vocabulary than {own_name!r}",
                "choose a teacher with the policy's tokenizer",
            )
