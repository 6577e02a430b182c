"""What every kind of server is sent and how its answers, good and bad, come back; over real HTTP."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from atropos_tui.errors import InferenceError
from atropos_tui.inference import ServerManager, health, pool
from tests.inference.fake_inference_server import (
    Dialect,
    FakeServer,
    Fault,
    Sample,
    broken_off,
    connection_reset,
    hang,
    status,
    truncated_json,
    web_page,
)
from tests.inference.managing import HELLO, managing, until
from tests.inference.small_tokenizer import small_tokenizer

TOKEN_KINDS: list[Dialect] = ["vllm", "stock_vllm", "scale_out_vllm", "sglang", "trl", "new_trl"]
KINDS: list[Dialect] = ["openai", *TOKEN_KINDS]
TOKEN_PATHS = {
    "vllm": "/generate", "stock_vllm": "/v1/completions", "scale_out_vllm": "/inference/v1/generate",
    "sglang": "/generate", "trl": "/generate/", "new_trl": "/inference/v1/generate",
}  # fmt: skip
# What is not what it is configured as, and so is asked at a route that it lacks at first.
FOUND_OUT = ("stock_vllm", "scale_out_vllm", "new_trl")
CHAT_PATHS = {"trl": "/generate/"}


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pauses between attempts are cut, so that tests need not sit them out."""
    monkeypatch.setattr(pool, "FIRST_PAUSE", 0.01)
    monkeypatch.setattr(pool, "LONGEST_PAUSE", 0.05)
    monkeypatch.setattr(health, "PROBE_INTERVAL", 0.05)


async def chat(servers: ServerManager, **arguments: Any) -> Any:
    return await servers.chat_completion(messages=HELLO, max_tokens=8, **arguments)


async def tokens(servers: ServerManager, **arguments: Any) -> Any:
    return await servers.tokens_and_logprobs_completion(input_ids=[1, 2, 3], max_tokens=8, **arguments)


# Each kind of server with a way to ask it for something: text of all, tokens of those that give them.
ASK: list[Any] = [
    *(pytest.param(kind, chat, id=f"{kind}-chat") for kind in KINDS),
    *(pytest.param(kind, tokens, id=f"{kind}-tokens") for kind in TOKEN_KINDS),
]
Ask = Callable[..., Any]


@pytest.mark.parametrize("kind", KINDS)
async def test_a_chat_comes_back_as_openais_type(kind: Dialect) -> None:
    sample = Sample([71, 72], [-0.5, -0.25], "hi", "stop")
    async with FakeServer(kind, samples=[sample]) as fake:
        async with managing(fake) as servers:
            answer = await chat(servers, n=2, temperature=0.7)
        assert [choice.index for choice in answer.choices] == [0, 1]
        assert [choice.message.content for choice in answer.choices] == ["hi", "hi"]
        assert answer.usage.completion_tokens == 4
        (body,) = fake.bodies(CHAT_PATHS.get(kind, "/v1/chat/completions"))
        assert (body["n"], body["temperature"], body["max_tokens"]) == (2, 0.7, 8)


@pytest.mark.parametrize("kind", KINDS)
async def test_a_completion_comes_back_as_openais_type(kind: Dialect) -> None:
    async with FakeServer(kind) as fake:
        async with managing(fake) as servers:
            answer = await servers.completion(prompt="say", n=2, max_tokens=8)
        assert [(choice.index, choice.text) for choice in answer.choices] == [(0, "hi"), (1, "hi")]


@pytest.mark.parametrize("kind", TOKEN_KINDS)
async def test_tokens_come_back_as_they_were_sampled(kind: Dialect) -> None:
    end = small_tokenizer().eos_token_id
    samples = [Sample([5, end], [-0.5, -0.25], finish_reason="stop"), Sample([7], [-2.0], finish_reason="length")]
    async with FakeServer(kind, samples=samples) as fake:
        async with managing(fake) as servers:
            prompt, outputs, logprobs, reasons = await tokens(servers, n=2, temperature=1.0, stop=["x"])
        assert prompt == [1, 2, 3]
        assert outputs == [[5, end], [7]]
        assert logprobs == [[-0.5, -0.25], [-2.0]]
        assert [r["type"] if isinstance(r, dict) else r for r in reasons] == ["stop", "length"]


async def test_the_bodies_for_tokens_are_those_of_each_wire_format() -> None:
    async def sent(kind: Dialect) -> dict[str, Any]:
        async with FakeServer(kind) as fake:
            async with managing(fake) as servers:
                await tokens(servers, n=2, temperature=0.5, extra_body={"top_k": 3})
            return fake.bodies(TOKEN_PATHS[kind])[-1]

    assert await sent("vllm") == {
        "prompt": {"prompt_token_ids": [1, 2, 3]},
        "logprobs": 0,
        "n": 2,
        "max_tokens": 8,
        "temperature": 0.5,
        "top_k": 3,
    }
    stock = await sent("stock_vllm")
    assert stock | {"logprobs": 1} == stock
    assert (stock["model"], stock["prompt"], stock["return_token_ids"]) == ("m", [1, 2, 3], True)
    assert await sent("sglang") == {
        "input_ids": [1, 2, 3],
        "sampling_params": {"n": 2, "max_new_tokens": 8, "temperature": 0.5, "top_k": 3},
        "return_logprob": True,
        "return_text_in_logprobs": False,
    }
    assert (await sent("trl"))["prompts"] == [[1, 2, 3]]


async def test_stock_vllm_is_found_out_with_one_request_and_remembered() -> None:
    async with FakeServer("stock_vllm") as fake:
        async with managing(fake) as servers:
            for _ in range(3):
                await tokens(servers)
        assert len(fake.bodies("/v1/completions")) == 3
        assert fake.missed == ["/generate", "/inference/v1/generate"]


async def test_stock_vllm_is_found_out_by_many_at_once() -> None:
    async with FakeServer("stock_vllm") as fake, managing(fake) as servers:
        await asyncio.gather(*(tokens(servers) for _ in range(20)))
        assert len(fake.bodies("/v1/completions")) == 20


@pytest.mark.parametrize(("kind", "ask"), ASK)
async def test_a_400_is_not_tried_again_and_carries_the_servers_own_words(kind: Dialect, ask: Ask) -> None:
    async with FakeServer(kind) as fake:
        async with managing(fake) as servers:
            if kind in FOUND_OUT:
                await ask(servers)
            before = len(fake.requests)
            fake.faults.append(status(400, {"error": {"message": "max_tokens is too large: 9000", "code": 400}}))
            with pytest.raises(InferenceError, match="HTTP 400: max_tokens is too large: 9000") as caught:
                await ask(servers)
        assert caught.value.kind == "http_400"
        assert len(fake.requests) == before + 1


@pytest.mark.parametrize(("kind", "ask"), ASK)
@pytest.mark.parametrize(
    "fault",
    [status(500), status(503, "Server is paused"), truncated_json, web_page, broken_off, connection_reset],
    ids=["500", "503", "truncated_json", "web_page", "broken_off", "connection_reset"],
)
async def test_a_passing_fault_is_overcome(kind: Dialect, ask: Ask, fault: Fault) -> None:
    async with FakeServer(kind) as fake:
        fake.faults.append(fault)
        async with managing(fake) as servers:
            assert await ask(servers)
        assert len(fake.requests) == 2


@pytest.mark.parametrize(("kind", "ask"), ASK)
async def test_a_fault_that_does_not_pass_is_reported_as_it_is(kind: Dialect, ask: Ask) -> None:
    async with FakeServer(kind) as fake:
        fake.faults.extend([status(500, {"error": {"message": "CUDA out of memory"}})] * 20)
        async with managing(fake) as servers:
            with pytest.raises(InferenceError, match="HTTP 500: CUDA out of memory") as caught:
                await ask(servers)
        assert caught.value.kind == "http_500"
        assert len(fake.requests) == pool.MAX_ATTEMPTS


@pytest.mark.parametrize(("kind", "ask"), ASK)
async def test_retry_after_is_honoured(kind: Dialect, ask: Ask) -> None:
    async with FakeServer(kind) as fake:
        fake.faults.append(status(429, {"message": "slow down"}, {"retry-after": "0.3"}))
        async with managing(fake) as servers:
            began = time.monotonic()
            assert await ask(servers)
        assert time.monotonic() - began >= 0.3


async def test_retry_after_may_be_a_date_and_one_that_is_too_far_away_is_not_waited_for() -> None:
    async with FakeServer("openai") as fake:
        date = format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True)
        fake.faults.append(status(429, {"message": "slow down"}, {"retry-after": date}))
        async with managing(fake) as servers:
            with pytest.raises(InferenceError, match="slow down"):
                await chat(servers, timeout=600)
        assert len(fake.requests) == 1


async def test_an_exhausted_quota_is_not_waited_for() -> None:
    async with FakeServer("openai") as fake:
        fake.faults.append(status(429, {"error": {"message": "You are out of credit", "code": "insufficient_quota"}}))
        async with managing(fake) as servers:
            with pytest.raises(InferenceError, match="out of credit"):
                await chat(servers)
        assert len(fake.requests) == 1


@pytest.mark.parametrize(("kind", "ask"), ASK)
async def test_a_hanging_request_ends_with_its_timeout(kind: Dialect, ask: Ask) -> None:
    async with FakeServer(kind) as fake:
        fake.faults.extend([hang] * 5)
        async with managing(fake) as servers:
            began = time.monotonic()
            with pytest.raises(InferenceError, match="did not answer within 0") as caught:
                await ask(servers, timeout=0.3)
            assert time.monotonic() - began < 60
            assert caught.value.kind == "timeout"
            # Nothing is left behind: the permit is back, and the server is used again.
            assert servers.servers[0].sem.in_use == 0
            fake.faults.clear()
            assert await ask(servers)


@pytest.mark.parametrize(("kind", "ask"), ASK)
async def test_a_server_that_goes_down_and_comes_back_loses_no_request(kind: Dialect, ask: Ask) -> None:
    fake = FakeServer(kind)
    async with fake:
        pass
    async with managing(fake) as servers:
        asking = asyncio.create_task(ask(servers))
        await until(lambda: "connect" in servers.unhealthy_detail.lower())
        assert fake.url.removesuffix("/v1") in servers.unhealthy_detail
        await fake.start()
        try:
            assert await asyncio.wait_for(asking, 60)
            assert servers.unhealthy_detail == ""
        finally:
            await fake.stop()


@pytest.mark.parametrize("kind", TOKEN_KINDS)
async def test_a_missing_logprob_fails_at_once(kind: Dialect) -> None:
    bad: list[Any] = [Sample([5, 6], [-0.5, None])]  # type: ignore[list-item]
    async with FakeServer(kind, samples=bad) as fake:
        async with managing(fake) as servers:
            with pytest.raises(InferenceError, match="logprob") as caught:
                await tokens(servers)
        assert caught.value.kind == "no_logprobs"
        assert len(fake.requests) == 1


async def test_fewer_logprobs_than_tokens_fail_at_once() -> None:
    async with FakeServer("stock_vllm", samples=[Sample([5, 6], [-0.5])]) as fake, managing(fake) as servers:
        with pytest.raises(InferenceError, match="1 logprobs for 2 tokens"):
            await tokens(servers)


async def test_the_bodies_for_vllms_own_routes_for_ids() -> None:
    async with FakeServer("scale_out_vllm") as fake, managing(fake) as servers:
        await tokens(servers, n=2, temperature=0.5, stop=["x"])
        # A format of the reply is no sampling parameter: that route would ignore it.
        await tokens(servers, response_format={"type": "json_object"})
        (body,) = fake.bodies("/inference/v1/generate")
        assert body == {
            "model": "m", "token_ids": [1, 2, 3],
            "sampling_params": {"logprobs": 0, "n": 2, "max_tokens": 8, "temperature": 0.5, "stop": ["x"]},
        }  # fmt: skip
        assert fake.bodies("/v1/completions")[0]["response_format"] == {"type": "json_object"}


async def test_a_404_of_a_server_that_is_starting_up_is_not_taken_for_its_kind() -> None:
    async with FakeServer("vllm") as fake:
        fake.faults.extend([status(404)] * 3)
        async with managing(fake) as servers:
            with pytest.raises(InferenceError, match=r"HTTP 40[34]"):
                await tokens(servers)
            fake.faults.clear()
            await tokens(servers)
        assert fake.bodies("/generate"), "its own route is asked again"


async def test_a_newer_trl_is_found_out_and_spoken_to_as_vllm() -> None:
    async with FakeServer("new_trl") as fake:
        async with managing(fake) as servers:
            for _ in range(2):
                await chat(servers, n=2)
                await tokens(servers)
        assert fake.missed.count("/generate/") == 1
        assert len(fake.bodies("/v1/chat/completions")) == len(fake.bodies("/inference/v1/generate")) == 2


async def test_what_trl_has_no_field_for_goes_to_its_sampler_all_the_same() -> None:
    tokenizer = small_tokenizer()
    stopped = [*tokenizer.encode("so"), *tokenizer.encode("###")]
    async with FakeServer("trl", samples=[Sample(stopped, [-0.5] * len(stopped))]) as fake:
        async with managing(fake) as servers:
            answer = await tokens(servers, stop="###", seed=3, extra_body={"min_tokens": 2, "reasoning": {}})
            await tokens(servers)
        first, second = fake.bodies("/generate/")
        assert first["generation_kwargs"] == {"stop": "###", "seed": 3, "min_tokens": 2}
        assert "generation_kwargs" not in second
        assert answer[3] == ["stop"]


@pytest.mark.parametrize("suffix", ["", "/v1"])
async def test_the_address_of_a_trl_server_may_end_in_v1(suffix: str) -> None:
    async with FakeServer("trl") as fake, managing(fake, base_url=fake.root + suffix) as servers:
        assert await chat(servers)


async def test_an_old_trl_without_logprobs_says_what_to_do() -> None:
    async with FakeServer("old_trl") as fake, managing(fake) as servers:
        assert (await chat(servers)).choices[0].message.content == "hi"
        with pytest.raises(InferenceError, match="use a newer TRL"):
            await tokens(servers)


async def test_openai_gives_no_tokens() -> None:
    async with FakeServer("openai") as fake, managing(fake) as servers:
        with pytest.raises(NotImplementedError, match="no token ids"):
            await tokens(servers)
        with pytest.raises(NotImplementedError, match="no logprobs"):
            await servers.get_logprobs(input_ids=[1])
        assert servers.servers[0].sem.in_use == 0


@pytest.mark.parametrize(
    ("kind", "told", "version"),
    [
        ("vllm", "v7", 7),
        ("sglang", "12", 12),
        ("sglang", None, None),
        ("scale_out_vllm", [{"version": "v8", "start": 0, "end": 1}, {"version": "v9", "start": 1, "end": 2}], 8),
        ("scale_out_vllm", None, None),
    ],
)
async def test_the_weight_version_is_the_oldest_that_sampled(kind: Dialect, told: Any, version: int | None) -> None:
    async with FakeServer(kind, weight_version=told) as fake:
        async with managing(fake) as servers:
            answer = await tokens(servers)
        assert answer.weight_versions == (version,)


@pytest.mark.parametrize("kind", TOKEN_KINDS)
async def test_logprobs_of_a_prompt_have_one_entry_a_token(kind: Dialect) -> None:
    async with FakeServer(kind) as fake:
        async with managing(fake) as servers:
            answer = await servers.get_logprobs(input_ids=[4, 5, 6], top_k=2)
        assert answer["prompt_tokens"] == [4, 5, 6]
        assert answer["prompt_topk_token_ids"] == [[], [0, 1], [0, 1]]
        assert answer["prompt_topk_logprobs"] == [[], [-1.0, -2.0], [-1.0, -2.0]]


async def test_upstreams_vllm_without_prompt_logprobs_is_told_from_a_passing_fault() -> None:
    async with FakeServer("vllm") as fake:
        fake.faults.append(status(200, {"text": ["x"]}))
        async with managing(fake) as servers:
            with pytest.raises(InferenceError, match="gives no prompt_logprobs"):
                await servers.get_logprobs(input_ids=[1, 2])
        assert len(fake.requests) == 1


@pytest.mark.parametrize("key", ["", "secret"])
@pytest.mark.parametrize(("kind", "ask"), ASK)
async def test_a_key_is_sent_as_a_bearer_token_and_only_if_there_is_one(kind: Dialect, ask: Ask, key: str) -> None:
    async with FakeServer(kind) as fake:
        async with managing(fake, api_key=key) as servers:
            await ask(servers)
        assert fake.headers[-1].get("authorization") == (f"Bearer {key}" if key else None)


async def test_only_the_suffix_v1_is_left_out_of_an_address() -> None:
    async with FakeServer("vllm") as fake, managing(fake, base_url=f"{fake.root}/v1x/v1") as servers:
        assert servers.servers[0].transport.root_url == f"{fake.root}/v1x"
