"""The inference server as clients of OpenAI and vLLM see it, over HTTP from a process of its own."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from openai import OpenAI

from atropos_tui.pocket.characters import Characters
from atropos_tui.pocket.tokenizer import tokenizer_dir
from atropos_tui.pocket.weights import weights_to_bytes, write_weights
from tests.pocket.conftest import Start
from tests.pocket.small_policy import disturbed_policy

PROMPT = [3, 4, 5, 2]  # "abc>"
UNIFORM = -math.log(Characters().size)


@pytest.fixture
def http(policy_url: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=policy_url, timeout=60.0, trust_env=False) as client:
        yield client


@pytest.fixture
def own_http(start: Start) -> Iterator[httpx.Client]:
    """A client of a server that no other test uses, for those that change it."""
    url = start("atropos_tui.pocket.server", "--port", "0").ready["url"]
    with httpx.Client(base_url=str(url), timeout=60.0, trust_env=False) as client:
        yield client


def post(http: httpx.Client, route: str, /, **body: Any) -> dict[str, Any]:
    answer = http.post(route, json=body)
    assert answer.status_code == 200, answer.text
    told: dict[str, Any] = answer.json()
    return told


def test_generate_tells_a_logprob_for_each_token_as_upstreams_vllm_server_does(http: httpx.Client) -> None:
    answer = post(http, "/generate", prompt={"prompt_token_ids": PROMPT}, n=3, max_tokens=6, logprobs=0)
    assert answer["prompt"] == "abc>"
    assert answer["prompt_token_ids"] == PROMPT
    assert answer["weight_version"] == 0
    assert len(answer["token_ids"]) == len(answer["logprobs"]) == len(answer["text"]) == 3
    for tokens, logprobs, text, reason in zip(
        answer["token_ids"], answer["logprobs"], answer["text"], answer["finish_reasons"], strict=True
    ):
        assert [list(place[0]) for place in logprobs] == [[str(token)] for token in tokens]
        assert [place[0][str(token)] for place, token in zip(logprobs, tokens, strict=True)] == pytest.approx(
            [UNIFORM] * len(tokens)
        )
        assert text == Characters().decode(tokens)
        assert reason == ("stop" if tokens[-1] == Characters().end else "length")
        assert reason == "stop" or len(tokens) == 6


def test_generate_tells_no_logprobs_unless_asked(http: httpx.Client) -> None:
    assert "logprobs" not in post(http, "/generate", prompt="abc>", max_tokens=2)


def test_generate_tells_the_likeliest_tokens_of_each_place_of_the_prompt(http: httpx.Client) -> None:
    answer = post(http, "/generate", prompt={"prompt_token_ids": PROMPT}, max_tokens=1, prompt_logprobs=2)
    first, *others = answer["prompt_logprobs"]
    assert first is None
    assert len(others) == len(PROMPT) - 1
    for place, token in zip(others, PROMPT[1:], strict=True):
        assert next(iter(place)) == str(token)
        assert len(place) == 3
        assert place[str(token)] == pytest.approx(UNIFORM)


def test_the_openai_client_reads_a_chat_completion(policy_url: str) -> None:
    with OpenAI(base_url=f"{policy_url}/v1", api_key="x") as client:
        assert [model.id for model in client.models.list()] == ["pocket"]
        answer = client.chat.completions.create(
            model="pocket", messages=[{"role": "user", "content": "abc"}], n=2, max_tokens=5, logprobs=True,
            top_logprobs=2, extra_body={"return_token_ids": True},
        )  # fmt: skip
    assert answer.usage is not None
    assert answer.usage.prompt_tokens == len(PROMPT)
    told = answer.model_dump()
    assert told["prompt_token_ids"] == PROMPT
    assert answer.usage.completion_tokens == sum(len(choice["token_ids"]) for choice in told["choices"])
    for choice, fields in zip(answer.choices, told["choices"], strict=True):
        assert choice.message.role == "assistant"
        assert choice.message.content == Characters().decode(fields["token_ids"])
        assert choice.logprobs is not None
        assert choice.logprobs.content is not None
        assert [place.token for place in choice.logprobs.content] == [
            Characters().token(token) for token in fields["token_ids"]
        ]
        assert all(len(place.top_logprobs) == 2 for place in choice.logprobs.content)


def test_the_openai_client_reads_a_completion_of_token_ids(policy_url: str) -> None:
    with OpenAI(base_url=f"{policy_url}/v1", api_key="x") as client:
        answer = client.completions.create(
            model=str(tokenizer_dir()), prompt=PROMPT, n=2, max_tokens=4, logprobs=1,
            extra_body={"return_token_ids": True, "return_tokens_as_token_ids": True},
        )  # fmt: skip
    for choice, fields in zip(answer.choices, answer.model_dump()["choices"], strict=True):
        assert fields["prompt_token_ids"] == PROMPT
        assert choice.text == Characters().decode(fields["token_ids"])
        assert choice.logprobs is not None
        assert choice.logprobs.tokens == [f"token_id:{token}" for token in fields["token_ids"]]
        assert choice.logprobs.token_logprobs == pytest.approx([UNIFORM] * len(fields["token_ids"]))
        assert choice.logprobs.top_logprobs is not None
        assert len(choice.logprobs.top_logprobs) == len(fields["token_ids"])


def test_many_prompts_of_one_request_have_their_choices_in_order(http: httpx.Client) -> None:
    answer = post(http, "/v1/completions", prompt=["ab>", "abc>"], n=2, max_tokens=1, return_token_ids=True)
    assert [choice["index"] for choice in answer["choices"]] == [0, 1, 2, 3]
    assert [len(choice["prompt_token_ids"]) for choice in answer["choices"]] == [3, 3, 4, 4]


def test_a_reply_ends_before_a_stop_string(http: httpx.Client) -> None:
    vowels = ["a", "e", "i", "o", "u"]
    choices = post(
        http, "/v1/completions", prompt="abc>", n=64, max_tokens=16, stop=vowels, return_token_ids=True
    )["choices"]  # fmt: skip
    assert not any(vowel in choice["text"] for choice in choices for vowel in vowels)
    cut = [choice for choice in choices if Characters().token(choice["token_ids"][-1]) in vowels]
    assert cut
    assert {choice["finish_reason"] for choice in cut} == {"stop"}


@pytest.mark.parametrize("field", ["n", "max_tokens", "temperature", "top_p", "stop", "logprobs"])
def test_a_null_is_as_good_as_a_field_left_out(http: httpx.Client, field: str) -> None:
    assert len(post(http, "/v1/completions", prompt="abc>", **{field: None})["choices"]) == 1


def test_with_a_context_prompts_out_of_reach_are_answered_too(start: Start) -> None:
    url = str(start("atropos_tui.pocket.server", "--port", "0", "--context", "300").ready["url"])
    with httpx.Client(base_url=url, timeout=60.0, trust_env=False) as client:
        answer = post(client, "/generate", prompt="Solve this. " * 20, n=2, max_tokens=60, logprobs=0)
        assert all(0 < len(tokens) <= 60 for tokens in answer["token_ids"])
        assert post(client, "/v1/completions", prompt="abc>", max_tokens=200)["usage"]["prompt_tokens"] == 4
        assert client.get("/v1/models").json()["data"][0]["max_model_len"] == 300
        refused = client.post("/generate", json={"prompt": "a" * 250, "max_tokens": 51})
        assert "leaves room for 50 more" in refused.json()["error"]["message"]


@pytest.mark.parametrize(
    ("path", "body", "status", "param", "words"),
    [
        ("/v1/chat/completions", {"model": "gpt", "messages": [{"role": "user", "content": "a"}]}, 404, "model", "gpt"),
        ("/v1/completions", {"model": "gpt", "prompt": "a"}, 404, "model", "gpt"),
        ("/v1/chat/completions", {"messages": []}, 400, "messages", "at least 1"),
        ("/v1/chat/completions", {"model": "pocket"}, 400, "messages", "required"),
        ("/v1/completions", {"prompt": ""}, 400, "prompt", "empty"),
        ("/v1/completions", {"prompt": []}, 400, "prompt", "empty"),
        ("/v1/completions", {"prompt": "a", "stream": True}, 400, "stream", "False"),
        ("/v1/completions", {"prompt": "a", "n": 0}, 400, "n", "greater"),
        ("/v1/completions", {"prompt": "a", "max_tokens": 1000}, 400, "max_tokens", "room for 32"),
        ("/generate", {"prompt": {"prompt_token_ids": [3, 99]}}, 400, "prompt", "99"),
        ("/generate", {"prompt": "a" * 40}, 400, "prompt", "40 tokens"),
        ("/generate", {"prompt": "a", "temperature": -1}, 400, "temperature", "greater"),
        ("/update_weights", {"path": "/nowhere.npz"}, 400, "path", "/nowhere.npz"),
        ("/nowhere", {}, 404, None, "Not Found"),
    ],
)
def test_a_wrong_request_gets_an_error_in_openais_shape(
    http: httpx.Client, path: str, body: dict[str, Any], status: int, param: str | None, words: str
) -> None:
    answer = http.post(path, json=body)
    assert answer.status_code == status
    error = answer.json()["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert (error["code"], error["param"]) == (status, param)
    assert re.search(words, error["message"], re.IGNORECASE)


def test_a_body_that_is_no_json_is_told_so(http: httpx.Client) -> None:
    answer = http.post("/generate", content=b"{")
    assert answer.status_code == 400
    assert "not JSON" in answer.json()["error"]["message"]


def test_many_requests_at_once_each_get_their_own_samples(policy_url: str) -> None:
    def ask(length: int) -> dict[str, Any]:
        with httpx.Client(base_url=policy_url, timeout=60.0, trust_env=False) as client:
            return post(client, "/generate", prompt={"prompt_token_ids": [3] * length + [2]}, n=length, max_tokens=2)

    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(ask, range(1, 17)))
    assert [len(answer["prompt_token_ids"]) for answer in answers] == [length + 1 for length in range(1, 17)]
    assert [len(answer["token_ids"]) for answer in answers] == list(range(1, 17))


@pytest.mark.parametrize("way", ["as a file", "in the body"])
def test_new_weights_change_the_version_and_the_logprobs(own_http: httpx.Client, tmp_path: Path, way: str) -> None:
    policy = disturbed_policy(vocabulary=29, reach=32, width=64, hidden=128)
    if way == "as a file":
        write_weights(policy.parameters, tmp_path / "policy.npz")
        told = post(own_http, "/update_weights", path=str(tmp_path / "policy.npz"), weight_version=7)
    else:
        content = weights_to_bytes(policy.parameters)
        told = own_http.post("/update_weights", content=content, params={"weight_version": 7}).json()
    assert told["weight_version"] == 7
    assert own_http.get("/weight_info").json()["weight_version"] == 7
    answer = post(own_http, "/generate", prompt={"prompt_token_ids": PROMPT}, max_tokens=1, logprobs=0)
    assert answer["weight_version"] == 7
    (logprob,) = answer["logprobs"][0][0][0].values()
    assert logprob != pytest.approx(UNIFORM, abs=1e-3)
    assert own_http.post("/update_weights", content=weights_to_bytes(policy.parameters)).json()["weight_version"] == 8


def test_weights_of_another_shape_are_refused_and_change_nothing(own_http: httpx.Client) -> None:
    foreign = weights_to_bytes(disturbed_policy(vocabulary=30, reach=32, width=64, hidden=128).parameters)
    for content in (foreign, b"no weights", b""):
        answer = own_http.post("/update_weights", content=content)
        assert answer.status_code == 400
        assert answer.json()["error"]["message"]
    answer = post(own_http, "/generate", prompt="abc>", max_tokens=1, logprobs=0)
    assert answer["weight_version"] == 0
    assert list(answer["logprobs"][0][0][0].values()) == pytest.approx([UNIFORM])


def test_requests_wait_while_the_server_is_paused(own_http: httpx.Client) -> None:
    assert post(own_http, "/pause") == {"status": "paused"}
    assert own_http.get("/health").status_code == 200
    with pytest.raises(httpx.ReadTimeout):
        own_http.post("/generate", json={"prompt": "abc>"}, timeout=0.5)
    with ThreadPoolExecutor(1) as thread:
        waiting = thread.submit(own_http.post, "/generate", json={"prompt": "abc>"})
        assert own_http.get("/weight_info").json()["paused"] is True
        assert not waiting.done()
        assert post(own_http, "/resume") == {"status": "resumed"}
        assert waiting.result(timeout=60).status_code == 200
