"""Known faults between an environment and its inference server, with a real runtime and a server on the wire."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

from atropos_tui.inference import APIServerConfig, ServerManager
from atropos_tui.ledger.outcomes import FailReason
from tests.inference.fake_inference_server import FakeServer, status
from tests.runtime.serving_parts import FakeTrajectoryApi, ScriptedEnv, serving, until, watched

MakeEnv = Callable[..., ScriptedEnv]


class Asking(ScriptedEnv):
    """Asks its server for each rollout and takes what it says for right."""

    async def collect_trajectories(self, item: Any) -> Any:
        async with self.server.managed_server(tokenizer=self.tokenizer) as server:
            await server.completion(prompt=str(item), n=self.config.group_size, max_tokens=8)
            nodes = server.get_state()["nodes"]
        return {
            "tokens": [node.tokens for node in nodes], "masks": [node.masked_tokens for node in nodes],
            "inference_logprobs": [node.logprobs for node in nodes], "scores": [float(i) for i in range(len(nodes))],
        }, []  # fmt: skip


async def test_a_server_that_answers_500_gives_failures_and_never_a_score(
    make_env: MakeEnv, api: FakeTrajectoryApi, tokenizer_dir: Path
) -> None:
    async with FakeServer("vllm") as fake:
        env = make_env(Asking)
        config = APIServerConfig(base_url=fake.url, server_type="vllm", model_name=str(tokenizer_dir))
        env.server = ServerManager([config])
        seen = watched(env)
        fake.faults = deque([status(500)] * 1000)
        async with serving(env):
            await until(lambda: len(seen.of("group_failed")) >= 2, patience=60)
            assert api.groups == []
            assert seen.of("group_scored") == []
            assert {failed.reason for failed in seen.of("group_failed")} == {FailReason.INFERENCE_ERROR}
            assert all("500" in failed.error for failed in seen.of("group_failed"))
            fake.faults.clear()
            await until(lambda: api.groups, patience=60)


async def test_the_tokenizer_is_the_one_that_is_named_and_not_that_of_the_models_alias(tokenizer_dir: Path) -> None:
    async with FakeServer("vllm") as fake:
        config = APIServerConfig(
            base_url=fake.url, server_type="vllm", model_name="default", tokenizer_name=str(tokenizer_dir)
        )
        servers = ServerManager([config])
        await servers.tokens_and_logprobs_completion(prompt="!#", n=1, max_tokens=1)
        await servers.close()
        assert fake.bodies("/generate")[-1]["prompt"]["prompt_token_ids"] == [1, 3]
