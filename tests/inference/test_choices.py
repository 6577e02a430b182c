"""`n` is honoured whatever the server does with it: topped up, never more, numbered from 0, usage summed."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from openai.types import CompletionUsage

from atropos_tui.errors import InferenceError
from atropos_tui.inference.results import CHAT, chat_choice, chat_completion
from tests.inference.fake_inference_server import Dialect, FakeServer, Sample, status
from tests.inference.managing import HELLO, managing

SAMPLES = [Sample([i], [-float(i) - 1], f"text {i}") for i in range(40)]


@pytest.mark.parametrize(
    ("most_choices", "n", "requests"),
    [(100, 4, 1), (1, 4, 4), (1, 1, 1), (3, 8, 6), (100, 8, 1), (100, 20, 3), (1, 20, 20)],
)
@pytest.mark.parametrize("kind", ["openai", "vllm", "sglang"])
async def test_exactly_n_choices_come_of_as_few_requests_as_the_server_allows(
    kind: Dialect, most_choices: int, n: int, requests: int
) -> None:
    async with FakeServer(kind, samples=SAMPLES, most_choices=most_choices) as fake:
        async with managing(fake) as servers:
            answer = await servers.chat_completion(messages=HELLO, n=n)
        assert [choice.index for choice in answer.choices] == list(range(n))
        assert sorted(choice.message.content for choice in answer.choices) == sorted(s.text for s in SAMPLES[:n])
        assert answer.usage.completion_tokens == n
        assert len(fake.requests) == requests


async def test_a_server_that_gives_too_many_is_cut_back() -> None:
    async with FakeServer("openai", samples=SAMPLES, extra_choices=3) as fake:
        async with managing(fake) as servers:
            answer = await servers.chat_completion(messages=HELLO, n=2)
        assert [choice.index for choice in answer.choices] == [0, 1]


@pytest.mark.parametrize("kind", ["vllm", "stock_vllm", "sglang", "trl"])
async def test_tokens_are_topped_up_too(kind: Dialect) -> None:
    async with FakeServer(kind, samples=SAMPLES, most_choices=1) as fake:
        async with managing(fake) as servers:
            _, outputs, logprobs, reasons = await servers.tokens_and_logprobs_completion(
                input_ids=[1], n=3, max_tokens=4
            )
        assert sorted(outputs) == [[0], [1], [2]]
        assert [[-float(token) - 1 for token in output] for output in outputs] == logprobs
        assert len(reasons) == 3


async def test_a_server_found_to_ignore_n_is_asked_for_all_at_once_from_then_on() -> None:
    async with FakeServer("openai", samples=SAMPLES, most_choices=1, delay=0.05) as fake:
        async with managing(fake) as servers:
            await servers.chat_completion(messages=HELLO, n=2)
            assert servers.servers[0].config.n_kwarg_is_ignored
            fake.requests.clear()
            fake.most_in_flight = 0
            await servers.chat_completion(messages=HELLO, n=4)
        assert [body.get("n") for _, body in fake.requests] == [None] * 4
        assert fake.most_in_flight == 4


async def test_topping_up_keeps_to_the_permits() -> None:
    async with FakeServer("openai", samples=SAMPLES, most_choices=1, delay=0.01) as fake:
        async with managing(fake, num_max_requests_at_once=2) as servers:
            answers = await asyncio.gather(*(servers.chat_completion(messages=HELLO, n=5) for _ in range(4)))
        assert all(len(answer.choices) == 5 for answer in answers)
        assert fake.most_in_flight == 2


async def test_a_top_up_that_fails_fails_the_call_and_stops_the_others() -> None:
    async with FakeServer("openai", samples=SAMPLES, most_choices=1) as fake, managing(fake) as servers:
        await servers.chat_completion(messages=HELLO, n=2)
        fake.faults.append(status(400, {"error": {"message": "no more"}}))
        fake.delay = 600
        with pytest.raises(InferenceError, match="no more"):
            await asyncio.wait_for(servers.chat_completion(messages=HELLO, n=4), 60)
        assert servers.servers[0].sem.in_use == 0


async def test_arguments_that_openai_does_not_know_are_sent_all_the_same() -> None:
    async with FakeServer("openai") as fake:
        async with managing(fake) as servers:
            await servers.chat_completion(messages=HELLO, top_k=5, extra_body={"min_p": 0.1}, model="another")
        assert fake.requests[-1][1] == {"messages": HELLO, "model": "m", "top_k": 5, "min_p": 0.1}


@pytest.mark.parametrize(
    "body",
    [
        {"error": {"message": "n must be 1 when using greedy sampling, got 4.", "code": 400}},
        {"error": {"message": "Only one completion choice is allowed", "code": 400}},
        {"error": {"message": "'n' : number must be at most 1", "type": "invalid_request_error"}},
    ],
    ids=["vllm", "llama.cpp", "groq"],
)
async def test_a_server_that_refuses_n_is_asked_for_one_at_a_time(body: dict[str, Any]) -> None:
    async with FakeServer("openai", samples=SAMPLES) as fake:
        fake.faults.append(status(400, body))
        async with managing(fake) as servers:
            answer = await servers.chat_completion(messages=HELLO, n=4, temperature=0.0)
        assert [choice.index for choice in answer.choices] == [0, 1, 2, 3]
        assert [sent.get("n") for _, sent in fake.requests] == [4, None, None, None, None]


async def test_what_a_server_says_of_a_single_choice_is_not_taken_for_a_refusal_of_n() -> None:
    async with FakeServer("openai") as fake, managing(fake) as servers:
        fake.faults.append(status(400, {"error": {"message": "n must be an integer"}}))
        with pytest.raises(InferenceError, match="n must be an integer"):
            await servers.chat_completion(messages=HELLO, n=1)
        assert len(fake.requests) == 1


def test_usage_is_summed_with_its_details_and_whatever_a_provider_adds() -> None:
    def answer(reasoning: int | None, cost: float) -> Any:
        usage = {
            "prompt_tokens": 3, "completion_tokens": 5, "total_tokens": 8, "cost": cost, "service": "a",
            "completion_tokens_details": None if reasoning is None else {"reasoning_tokens": reasoning},
        }  # fmt: skip
        return chat_completion("m", [chat_choice(0, "hi", "stop")], CompletionUsage.model_validate(usage))

    merged = CHAT.merge([answer(2, 0.25), answer(None, 0.5), answer(4, 0.25)], 3)
    assert (merged.usage.prompt_tokens, merged.usage.completion_tokens, merged.usage.total_tokens) == (9, 15, 24)
    assert merged.usage.completion_tokens_details.reasoning_tokens == 6
    assert (merged.usage.cost, merged.usage.service) == (1.0, "a")
