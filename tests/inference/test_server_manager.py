"""The manager: which servers there are, which one is chosen, and what it publishes and measures."""

from __future__ import annotations

import asyncio
import stat
import threading
from pathlib import Path
from typing import Any

import pytest

from atropos_tui.errors import InferenceError, UsageError
from atropos_tui.inference import (
    APIServer,
    APIServerConfig,
    DummyManagedServer,
    ManagedServer,
    OpenAIServer,
    ReasoningConfig,
    ServerBaseline,
    ServerManager,
    ServerManagerConfig,
    SGLangServer,
    TrlVllmServer,
    VLLMServer,
)
from atropos_tui.ledger import EventStream, current_group, current_rollout
from atropos_tui.ledger.events import CallFinished, CallStarted
from tests.inference.fake_inference_server import FakeServer, status
from tests.inference.managing import HELLO, Collecting, managing, until
from tests.inference.small_tokenizer import small_tokenizer


def test_the_configs_have_upstreams_defaults_and_ignore_what_they_do_not_know() -> None:
    config = APIServerConfig(weight=1.0, extra_body={})  # type: ignore[call-arg]
    assert config.model_dump() == {
        "timeout": 1200, "num_max_requests_at_once": 512, "num_requests_for_eval": 64, "model_name": "default",
        "rolling_buffer_length": 1000, "server_type": "openai", "tokenizer_name": "none", "api_key": "",
        "base_url": "", "n_kwarg_is_ignored": False, "health_check": True,
    }  # fmt: skip
    assert ServerManagerConfig().model_dump() == {
        "slurm": False, "testing": False, "max_n_completions": 8, "proxy_url": None,
    }  # fmt: skip


def test_each_server_is_of_its_own_type() -> None:
    kinds: dict[Any, type[APIServer]] = {
        "openai": OpenAIServer, "vllm": VLLMServer, "sglang": SGLangServer, "trl": TrlVllmServer,
    }  # fmt: skip
    servers = ServerManager([APIServerConfig(server_type=kind, base_url="http://x/v1") for kind in kinds]).servers
    assert [type(server) for server in servers] == list(kinds.values())
    assert not isinstance(servers[1], OpenAIServer), "environments tell plain OpenAI servers by their class"


def test_one_config_with_an_address_is_a_list_of_one() -> None:
    (server,) = ServerManager(APIServerConfig(base_url="https://api.example.com/v1", api_key="secret")).servers
    assert (server.config.base_url, server.config.api_key) == ("https://api.example.com/v1", "secret")


@pytest.mark.parametrize(
    "config", [ServerBaseline(model_name="m", timeout=7), APIServerConfig(model_name="m", timeout=7)]
)
def test_a_baseline_means_four_local_servers(config: ServerBaseline, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SLURM_JOB_NODELIST", raising=False)
    servers = ServerManager(config).servers
    assert [s.config.base_url for s in servers] == [f"http://localhost:{port}/v1" for port in (9004, 9005, 9006, 9007)]
    assert {(s.config.model_name, s.config.timeout) for s in servers} == {("m", 7)}


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A SLURM job of three nodes, with a `scontrol` that names them."""
    scontrol = tmp_path / "scontrol"
    scontrol.write_text('#!/bin/sh\n[ "$3" = "node[1-3]" ] && printf "node1\\nnode2\\nnode3\\n"\n')
    scontrol.chmod(scontrol.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("SLURM_JOB_NODELIST", "node[1-3]")
    monkeypatch.setenv("NUM_TRAINING_NODES", "1")
    monkeypatch.setenv("INFER_TP", "4")
    return monkeypatch


def test_slurm_nodes_after_the_training_nodes_have_servers(slurm: pytest.MonkeyPatch) -> None:
    expected = [f"http://{node}:{port}/v1" for node in ("node2", "node3") for port in (9000, 9001)]
    servers = ServerManager([APIServerConfig(base_url="http://x", api_key="k", server_type="vllm")], slurm=True).servers
    assert [s.config.base_url for s in servers] == expected
    assert {(type(s), s.config.api_key) for s in servers} == {(VLLMServer, "k")}
    assert [s.config.base_url for s in ServerManager(ServerBaseline()).servers] == expected


@pytest.mark.parametrize(
    ("variable", "value", "words"),
    [
        ("NUM_TRAINING_NODES", "", "NUM_TRAINING_NODES"),
        ("INFER_TP", "two", "INFER_TP"),
        ("NUM_TRAINING_NODES", "3", "no node"),
    ],
)
def test_a_slurm_job_that_is_set_up_wrongly_says_so(
    slurm: pytest.MonkeyPatch, variable: str, value: str, words: str
) -> None:
    slurm.setenv(variable, value)
    with pytest.raises(UsageError, match=words):
        ServerManager(ServerBaseline())


def test_no_scontrol_is_an_error_that_says_so(slurm: pytest.MonkeyPatch) -> None:
    slurm.setenv("PATH", "/nowhere")
    with pytest.raises(UsageError, match="scontrol"):
        ServerManager(ServerBaseline())


async def test_no_server_at_all_is_an_error_that_says_so() -> None:
    servers = ServerManager([])
    assert servers.unhealthy_detail == ""
    with pytest.raises(UsageError, match="no inference server is configured"):
        await servers.chat_completion(messages=HELLO)


async def test_testing_is_a_working_offline_server() -> None:
    servers = ServerManager([APIServerConfig(server_type="vllm")], testing=True)
    (server,) = servers.servers
    assert server.server_healthy
    answer = await servers.chat_completion(messages=HELLO, n=3)
    assert [choice.index for choice in answer.choices] == [0, 1, 2]
    assert (await servers.completion(prompt="x")).choices[0].text
    async with servers.managed_server(tokenizer=small_tokenizer()) as managed:
        await managed.chat_completion(messages=HELLO, n=2)
        assert [len(node.tokens) == len(node.logprobs) for node in managed.current_nodes] == [True, True]
    assert "server/x_request_time_avg" in await server.wandb_metrics({}, "x")
    await servers.update_weight(0.5)
    await servers.close()


async def test_a_managed_server_stays_on_one_server_and_sessions_spread() -> None:
    async with FakeServer("vllm") as first, FakeServer("vllm") as second, managing(first, second) as servers:
        tokenizer = small_tokenizer()
        async with servers.managed_server(tokenizer) as one, servers.managed_server(tokenizer) as other:
            assert isinstance(one, ManagedServer)
            assert {one.server.url, other.server.url} == {first.url, second.url}
            for _ in range(3):
                await one.chat_completion(messages=HELLO)
        async with servers.managed_server(tokenizer, base_url=second.url + "/") as pinned:
            assert pinned.server.url == second.url
    assert (len(first.requests), len(second.requests)) == (3, 0)


async def test_a_dedicated_server_does_not_wait_for_itself() -> None:
    async with FakeServer("openai") as fake, managing(fake, num_max_requests_at_once=1) as servers:
        async with servers.dedicated_server() as one, servers.dedicated_server() as other:
            assert isinstance(one, OpenAIServer)
            chats = [server.chat_completion(messages=HELLO, n=1) for server in (one, other)]
            await asyncio.wait_for(asyncio.gather(*chats), 60)
        assert servers.servers[0].sem.reserved == 0


async def test_a_managed_server_on_openai_needs_leave(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ATROPOS_ALLOW_DUMMY_MANAGED_SERVER", raising=False)
    async with FakeServer("openai") as fake, managing(fake) as servers:
        with pytest.raises(NotImplementedError, match="ATROPOS_ALLOW_DUMMY_MANAGED_SERVER"):
            async with servers.managed_server(small_tokenizer()):
                pass
        assert servers.servers[0].sem.reserved == 0
        monkeypatch.setenv("ATROPOS_ALLOW_DUMMY_MANAGED_SERVER", "1")
        async with servers.managed_server(small_tokenizer()) as managed:
            assert isinstance(managed, DummyManagedServer)
            await managed.chat_completion(messages=HELLO, n=2)
            await managed.completion(prompt="say ")
            chat, _, text = managed.get_state()["nodes"]
            with pytest.raises(NotImplementedError):
                await managed.get_logprobs(prompt="x")
    assert chat.full_text == "user:hello\n\nassistant:hi"
    assert text.full_text == "say hi"
    assert (len(chat.tokens), chat.masked_tokens[:2], chat.logprobs[0]) == (128, [-100, 1], -0.5)
    assert chat.metadata == {"finish_reason": "stop", "dummy_tokens": True}


@pytest.mark.parametrize(
    ("config", "body"),
    [
        (ReasoningConfig(), {}),
        (ReasoningConfig(enabled=True), {"reasoning": {"enabled": True}}),
        (ReasoningConfig(effort="high", max_tokens=9), {"reasoning": {"enabled": True, "effort": "high"}}),
        (ReasoningConfig(max_tokens=2000), {"reasoning": {"enabled": True, "max_tokens": 2000}}),
    ],
)
async def test_chats_ask_for_reasoning_unless_told_not_to(config: ReasoningConfig, body: dict[str, Any]) -> None:
    async with FakeServer("openai") as fake, managing(fake, manager={"reasoning_config": config}) as servers:
        await servers.chat_completion(messages=HELLO)
        await servers.chat_completion(messages=HELLO, skip_reasoning=True)
        await servers.completion(prompt="x")
    asked = [{name: value for name, value in sent.items() if name == "reasoning"} for _, sent in fake.requests]
    assert asked == [body, {}, {}]
    assert all("skip_reasoning" not in sent for _, sent in fake.requests)


def test_openai_itself_is_asked_for_reasoning_in_its_own_words() -> None:
    added = ReasoningConfig(enabled=True).added_to({"max_tokens": 5, "temperature": 0.2}, "https://api.openai.com/v1")
    assert added == {"extra_body": {"reasoning_effort": "medium"}, "temperature": 1.0, "max_completion_tokens": 5}
    with pytest.raises(ValueError, match="Invalid reasoning_effort"):
        ReasoningConfig(effort="enormous")


async def test_every_request_is_published_with_its_group_and_what_came_of_it() -> None:
    sink = Collecting()
    async with FakeServer("vllm", weight_version=3) as fake, managing(fake) as servers:
        servers.attach(EventStream(sink))

        async def rollout(group: int | None, **arguments: Any) -> None:
            current_group.set(group)
            current_rollout.set(None if group is None else group - 7)
            await servers.tokens_and_logprobs_completion(input_ids=[1, 2, 3], **arguments)

        await asyncio.create_task(rollout(7, n=2))
        fake.faults.append(status(400, {"error": {"message": "no"}}))
        with pytest.raises(InferenceError):
            await asyncio.create_task(rollout(None, split="eval"))
        fake.delay = 30
        cancelled = asyncio.create_task(rollout(8))
        await until(lambda: fake.in_flight == 1)
        cancelled.cancel()
        await asyncio.gather(cancelled, return_exceptions=True)
    started, finished = sink.of(CallStarted), sink.of(CallFinished)
    assert [(e.call_id, e.group_id, e.split, e.n, e.server) for e in started] == [
        (1, 7, "train", 2, 0), (2, None, "eval", 1, 0), (3, 8, "train", 1, 0),
    ]  # fmt: skip
    assert [(e.call_id, e.group_id, e.rollout) for e in finished] == [(1, 7, 0), (2, None, None), (3, 8, 1)]
    good, refused, stopped = finished
    assert (good.prompt_tokens, good.completion_tokens, good.finish_reasons, good.weight_version, good.error) == (
        3, 4, ("stop", "stop"), 3, "",
    )  # fmt: skip
    assert 0 < good.latency < 60
    assert (refused.error_kind, stopped.error_kind) == ("http_400", "cancelled")
    assert "HTTP 400: no" in refused.error


async def test_each_attempt_is_a_request_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("atropos_tui.inference.pool.FIRST_PAUSE", 0.01)
    sink = Collecting()
    async with FakeServer("openai") as fake, managing(fake) as servers:
        servers.attach(EventStream(sink))
        fake.faults.append(status(500))
        await servers.chat_completion(messages=HELLO)
    assert [event.error_kind for event in sink.of(CallFinished)] == ["http_500", ""]


async def test_metrics_of_all_servers_describe_the_newest_requests() -> None:
    async with (
        FakeServer("openai") as first,
        FakeServer("openai") as second,
        managing(first, second, rolling_buffer_length=3) as servers,
    ):
        for _ in range(5):
            await asyncio.gather(*(servers.chat_completion(messages=HELLO) for _ in range(2)))
        await servers.chat_completion(messages=HELLO, split="eval")
        metrics: dict[str, Any] = {}
        for i, server in enumerate(servers.servers):
            metrics = await server.wandb_metrics(metrics, f"server_{i}")
        assert [len(server.request_timings) for server in servers.servers] == [3, 3]
    train = ["request_time_avg", "request_time_std", "request_time_99p", "average_num_attempts"]
    evals = ["eval_request_time_avg", "eval_request_time_std", "eval_request_time_99p", "eval_retry_rate"]
    assert set(metrics) == {f"server/server_{i}_{name}" for i in (0, 1) for name in train} | {
        f"server/server_0_{name}" for name in evals
    }
    assert all(isinstance(value, float) for value in metrics.values())
    assert metrics["server/server_0_average_num_attempts"] == 1.0


async def test_requests_may_come_from_the_loops_of_other_threads() -> None:
    before = threading.active_count()
    async with FakeServer("vllm") as fake, managing(fake) as servers:

        def from_another_loop() -> list[int]:
            async def ask() -> list[int]:
                answers = [await servers.tokens_and_logprobs_completion(input_ids=[i]) for i in range(3)]
                await servers.chat_completion(messages=HELLO)
                return [answer.prompt_tokens[0] for answer in answers]

            return asyncio.run(ask())

        results = await asyncio.gather(*(asyncio.to_thread(from_another_loop) for _ in range(4)))
        # Those of the loop's own pool may stay.
        assert threading.active_count() <= before + 4
        assert results == [[0, 1, 2]] * 4
        assert await servers.chat_completion(messages=HELLO)
        assert servers.servers[0].sem.in_use == 0


async def test_an_authors_own_server_class_is_used_as_it_is() -> None:
    class Mine(VLLMServer):
        async def _tokens_and_logprobs_completion_wrapper(self, **kwargs: Any) -> tuple[Any, Any, Any, Any]:
            return kwargs["input_ids"], [[1], [2]], [[-1.0], [-2.0]], ["stop", "length"]

    servers = ServerManager([APIServerConfig(base_url="http://x/v1", server_type="vllm")], server_class=Mine)
    assert type(servers.servers[0]) is Mine
    answer = await servers.tokens_and_logprobs_completion(input_ids=[9], n=2)
    assert answer == ([9], [[1], [2]], [[-1.0], [-2.0]], ["stop", "length"])
    async with servers.managed_server(small_tokenizer()) as managed:
        await managed.completion(prompt="x", n=2)
        assert [node.masked_tokens[-1] for node in managed.current_nodes] == [1, 2]


async def test_an_error_in_an_authors_own_server_class_passes_unchanged() -> None:
    class Broken(VLLMServer):
        async def _completion_wrapper(self, **kwargs: Any) -> Any:
            raise KeyError("mine")

    servers = ServerManager([APIServerConfig(base_url="http://x/v1", server_type="vllm")], server_class=Broken)
    with pytest.raises(KeyError, match="mine"):
        await servers.completion(prompt="x")
    assert servers.servers[0].sem.in_use == 0
