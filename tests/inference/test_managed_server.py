"""Managed servers: every token, mask and logprob is the one that the server sampled, over one turn and many."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from atropos_tui.errors import ContractError, InferenceError, UsageError
from atropos_tui.inference import ManagedServer, ManagedServerAdapter, SequenceNode
from atropos_tui.inference.sequence import grown
from tests.inference.fake_inference_server import Dialect, FakeServer, Sample, status
from tests.inference.managing import HELLO, managing
from tests.inference.small_tokenizer import small_tokenizer

# Writes the arguments one by one, as the templates of Qwen 3 Coder and others do.
CALLS_AS_VALUES = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] or '' }}"
    "{% for call in m['tool_calls'] or [] %}{{ call.function.name }} of"
    "{% for key, value in call.function.arguments | items %} {{ key }}={{ value }}{% endfor %}{% endfor %}"
    "<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}


def said(tokenizer: Any, text: str, *, ended: bool = True, logprob: float = -0.5, reason: str = "stop") -> Sample:
    """A reply as a model samples it, letter by letter (so never as it would be encoded), with its end of turn."""
    ids = [token for letter in text for token in tokenizer.encode(letter, add_special_tokens=False)]
    ids += [tokenizer.eos_token_id] * ended
    return Sample(ids, [logprob - i / 64 for i in range(len(ids))], text, reason)


@asynccontextmanager
async def tracking(
    tokenizer: Any,
    samples: Sequence[Sample] = (Sample([71, 72], [-0.5, -0.25], "hi"),),
    dialect: Dialect = "vllm",
    manager: dict[str, Any] | None = None,
    delay: float = 0.0,
    weight_version: Any = None,
    **options: Any,
) -> AsyncIterator[tuple[FakeServer, ManagedServer]]:
    """A managed server on a fake that samples these."""
    fake = FakeServer(dialect, samples, delay=delay, weight_version=weight_version)
    async with (
        fake,
        managing(fake, manager=manager) as servers,
        servers.managed_server(tokenizer, **options) as managed,
    ):
        yield fake, managed


def trained(node: SequenceNode) -> list[int]:
    return [token for token in node.masked_tokens if token != -100]


def sent(fake: FakeServer) -> list[list[int]]:
    return [body["prompt"]["prompt_token_ids"] for body in fake.bodies("/generate")]


def and_then(messages: Sequence[dict[str, Any]], reply: Any, user: str = "more") -> list[dict[str, Any]]:
    return [*messages, {"role": "assistant", "content": reply}, {"role": "user", "content": user}]


async def test_a_chat_makes_one_aligned_node_a_choice() -> None:
    tokenizer = small_tokenizer()
    samples = [said(tokenizer, "hello"), said(tokenizer, "thin", ended=False, reason="length")]
    async with tracking(tokenizer, samples=samples) as (_, managed):
        answer = await managed.chat_completion(messages=HELLO, n=2, max_tokens=8, temperature=1.0)
        state = managed.get_state()
    assert managed.current_nodes == [], "the sequences are forgotten when the context ends"
    assert [choice.message.content for choice in answer.choices] == ["hello", "thin"]
    assert [choice.finish_reason for choice in answer.choices] == ["stop", "length"]
    prompt = tokenizer.encode(tokenizer.apply_chat_template(HELLO, tokenize=False, add_generation_prompt=True))
    for node, sample in zip(state["nodes"], samples, strict=True):
        assert node.tokens == prompt + sample.tokens
        assert node.masked_tokens == [-100] * len(prompt) + sample.tokens
        assert node.logprobs == [1.0] * len(prompt) + sample.logprobs
        assert node.full_text == tokenizer.decode(node.tokens)
        assert node.metadata == {"finish_reason": sample.finish_reason}
    assert answer.usage.completion_tokens == 10


async def test_a_second_turn_sends_the_sampled_ids_and_encodes_only_what_is_new() -> None:
    tokenizer = small_tokenizer()
    samples = [said(tokenizer, "hello", logprob=-0.5), said(tokenizer, "the in", logprob=-3.0)]
    async with tracking(tokenizer, samples=samples) as (fake, managed):
        first = await managed.chat_completion(messages=HELLO)
        turn_one = managed.get_state()["nodes"][0]
        await managed.chat_completion(messages=and_then(HELLO, first.choices[0].message.content))
        (node,) = managed.get_state()["nodes"]
    assert sent(fake)[1][: len(turn_one.tokens)] == turn_one.tokens
    assert tokenizer.decode(sent(fake)[1]) == tokenizer.apply_chat_template(
        and_then(HELLO, "hello"), tokenize=False, add_generation_prompt=True
    ), "no end of turn is doubled or lost"
    assert trained(node) == samples[0].tokens + samples[1].tokens
    assert [p for p in node.logprobs if p != 1.0] == samples[0].logprobs + samples[1].logprobs
    assert node.tokens[: len(turn_one.tokens)] == turn_one.tokens


async def test_a_reply_that_was_cut_off_gets_the_end_of_turn_of_the_template() -> None:
    tokenizer = small_tokenizer()
    async with tracking(tokenizer, samples=[said(tokenizer, "hell", ended=False, reason="length")]) as (fake, managed):
        await managed.chat_completion(messages=HELLO)
        await managed.chat_completion(messages=and_then(HELLO, "hell"))
        (node,) = managed.current_nodes
    assert tokenizer.decode(sent(fake)[1]).count("<|im_end|>") == 3
    assert tokenizer.eos_token_id not in trained(node)


async def test_a_completion_keeps_earlier_completions_trainable() -> None:
    tokenizer = small_tokenizer()
    samples = [said(tokenizer, "hello"), said(tokenizer, " in")]
    async with tracking(tokenizer, samples=samples) as (fake, managed):
        first = await managed.completion(prompt="Say: ")
        second = await managed.completion(prompt="Say: " + first.choices[0].text + " then", max_tokens=8)
        (node,) = managed.current_nodes
    assert (first.choices[0].text, second.choices[0].text) == ("hello", " in")
    assert trained(node) == samples[0].tokens + samples[1].tokens
    assert sent(fake)[1] == [*tokenizer.encode("Say: "), *samples[0].tokens, *tokenizer.encode(" then")]


async def test_a_completion_whose_prompt_writes_the_end_of_turn_out_does_not_double_it() -> None:
    tokenizer = small_tokenizer()
    async with tracking(tokenizer, samples=[said(tokenizer, "hello")]) as (fake, managed):
        await managed.completion(prompt="Say: ")
        await managed.completion(prompt="Say: hello<|im_end|>\nmore")
    assert sent(fake)[1].count(tokenizer.eos_token_id) == 1


async def test_several_choices_on_an_extension_replace_and_append() -> None:
    tokenizer = small_tokenizer()
    samples = [said(tokenizer, word) for word in ("a", "b", "c", "d")]
    async with tracking(tokenizer, samples=samples) as (_, managed):
        await managed.chat_completion(messages=HELLO)
        await managed.chat_completion(messages=[{"role": "user", "content": "else"}])
        await managed.chat_completion(messages=and_then(HELLO, "a"), n=2)
        nodes = list(managed.current_nodes)
    words = [tokenizer.decode(trained(node), skip_special_tokens=True) for node in nodes]
    assert words == ["ac", "b", "ad"]


async def test_a_chat_can_branch_off_from_a_sequence_that_has_grown() -> None:
    tokenizer = small_tokenizer()
    samples = [said(tokenizer, word) for word in ("hello", "b", "c")]
    async with tracking(tokenizer, samples=samples) as (fake, managed):
        await managed.chat_completion(messages=HELLO)
        turn_one = managed.current_nodes[0].tokens
        await managed.chat_completion(messages=and_then(HELLO, "hello", "left"))
        await managed.chat_completion(messages=and_then(HELLO, "hello", "right"))
        nodes = list(managed.current_nodes)
    assert [ids[: len(turn_one)] for ids in sent(fake)[1:]] == [turn_one, turn_one]
    assert [trained(node) for node in nodes] == [samples[0].tokens + s.tokens for s in samples[1:]]


async def test_concurrent_turns_from_one_reply_make_two_sequences() -> None:
    tokenizer = small_tokenizer()
    samples = [said(tokenizer, word) for word in ("hello", "b", "c")]
    async with tracking(tokenizer, samples=samples, delay=0.01) as (_, managed):
        await managed.chat_completion(messages=HELLO)
        await asyncio.gather(
            *(managed.chat_completion(messages=and_then(HELLO, "hello", word)) for word in ("left", "right"))
        )
        nodes = list(managed.current_nodes)
    assert len(nodes) == 2
    assert all(trained(node)[:6] == samples[0].tokens for node in nodes)


@pytest.mark.parametrize("ended", [True, False])
async def test_a_prompt_asked_again_is_sampled_anew_even_after_an_empty_reply(ended: bool) -> None:
    tokenizer = small_tokenizer()
    samples = [said(tokenizer, "", ended=ended), said(tokenizer, "hello")]
    async with tracking(tokenizer, samples=samples) as (fake, managed):
        for _ in range(2):
            await managed.chat_completion(messages=HELLO)
        for _ in range(2):
            await managed.completion(prompt="Say: ")
        nodes = list(managed.current_nodes)
    assert sent(fake)[0] == sent(fake)[1]
    assert sent(fake)[2] == sent(fake)[3]
    assert [trained(node) for node in nodes] == [sample.tokens for sample in samples] * 2


async def test_an_edited_reply_begins_a_sequence_of_its_own() -> None:
    tokenizer = small_tokenizer()
    async with tracking(tokenizer, samples=[said(tokenizer, "hello"), said(tokenizer, "b")]) as (_, managed):
        await managed.chat_completion(messages=HELLO)
        await managed.chat_completion(messages=and_then(HELLO, "something else"))
        assert [len(trained(node)) for node in managed.current_nodes] == [6, 2]


@pytest.mark.parametrize("template", ["chatml", "llama3"])
async def test_a_template_that_trims_replies_does_not_change_what_was_sampled(template: str) -> None:
    tokenizer = small_tokenizer(template)
    async with tracking(tokenizer, samples=[said(tokenizer, "  hello \n")]) as (fake, managed):
        first = await managed.chat_completion(messages=HELLO)
        turn_one = managed.current_nodes[0].tokens
        await managed.chat_completion(messages=and_then(HELLO, first.choices[0].message.content))
    assert first.choices[0].message.content == "  hello \n"
    assert sent(fake)[1][: len(turn_one)] == turn_one


@pytest.mark.parametrize("preserve", [None, True, False])
async def test_thinking_stays_in_earlier_turns_if_it_shall_be_preserved(preserve: bool | None) -> None:
    tokenizer = small_tokenizer("strips_thinking")
    options = {} if preserve is None else {"preserve_think_blocks": preserve}
    async with tracking(tokenizer, samples=[said(tokenizer, "<think>hm</think>\nhello")], **options) as (fake, managed):
        first = await managed.chat_completion(messages=HELLO)
        turn_one = managed.current_nodes[0].tokens
        reply = first.choices[0].message.content
        await managed.chat_completion(messages=and_then(HELLO, reply))
        nodes = len(managed.current_nodes)
    second = sent(fake)[1]
    if preserve is False:
        assert "hm" not in tokenizer.decode(second)
        assert tokenizer.decode(second).count("<|im_end|>") == 3
        assert nodes == 2
    else:
        assert second[: len(turn_one)] == turn_one
        assert nodes == 1


async def test_thinking_in_replies_that_were_not_sampled_here_is_preserved_too() -> None:
    tokenizer = small_tokenizer("strips_thinking")
    async with FakeServer("vllm") as fake, managing(fake) as servers:
        for preserve in (True, False):
            async with servers.managed_server(tokenizer=tokenizer, preserve_think_blocks=preserve) as managed:
                await managed.chat_completion(messages=and_then(HELLO, "<think>hm</think>\nhello"))
    assert ["<think>hm</think>" in tokenizer.decode(ids) for ids in sent(fake)] == [True, False]


async def test_a_beginning_of_sequence_is_not_doubled() -> None:
    tokenizer = small_tokenizer("llama3")
    encode = tokenizer.encode
    tokenizer.encode = lambda text, add_special_tokens=True: (
        [tokenizer.bos_token_id] * add_special_tokens + encode(text, add_special_tokens=False)
    )
    async with tracking(tokenizer) as (fake, managed):
        await managed.chat_completion(messages=HELLO)
    assert sent(fake)[0].count(tokenizer.bos_token_id) == 1


async def test_a_tree_keeps_all_sequences_each_trainable_in_its_own_step() -> None:
    tokenizer = small_tokenizer()
    samples = [said(tokenizer, word) for word in ("hello", "b", "c")]
    async with FakeServer("vllm", samples=samples) as fake, managing(fake) as servers:
        managed = ManagedServer(servers.servers[0], tokenizer, track_tree=True)
        await managed.chat_completion(messages=HELLO)
        await managed.chat_completion(messages=and_then(HELLO, "hello"), n=2)
        state = managed.get_state()
    assert state["sequences"] == state["tree"]
    nodes = list(state["sequences"].values())
    assert [trained(node) for node in nodes] == [sample.tokens for sample in samples]
    assert sent(fake)[1][: len(nodes[0].tokens)] == nodes[0].tokens
    managed.reset()
    assert managed.get_state()["sequences"] == {}
    assert len(state["sequences"]) == 3


REASON_TELLING: list[Dialect] = ["vllm", "stock_vllm", "scale_out_vllm", "sglang"]


@pytest.mark.parametrize("dialect", REASON_TELLING)
async def test_a_generation_that_a_weight_update_aborted_is_flagged_and_counts_as_cut_off(dialect: Dialect) -> None:
    tokenizer = small_tokenizer()
    cut_off = said(tokenizer, "he", ended=False, reason="abort")
    async with tracking(tokenizer, samples=[cut_off], dialect=dialect) as (fake, managed):
        fake.faults.append(status(503, "Server is paused", {"retry-after": "0.05"}))
        answer = await managed.chat_completion(messages=HELLO)
        completion = await managed.completion(prompt="x")
        assert managed.current_nodes[0].metadata == {"finish_reason": "abort", "partial": True}
        assert trained(managed.current_nodes[0]) == cut_off.tokens
    assert answer.choices[0].finish_reason == completion.choices[0].finish_reason == "length"


async def test_of_a_generation_under_two_versions_of_the_weights_the_older_is_kept() -> None:
    tokenizer = small_tokenizer()
    spans = [{"version": "12", "start": 0, "end": 1}, {"version": "13", "start": 1, "end": 3}]
    async with tracking(tokenizer, samples=[said(tokenizer, "he")], dialect="scale_out_vllm", weight_version=spans) as (
        _,
        managed,
    ):
        await managed.chat_completion(messages=HELLO)
        assert managed.current_nodes[0].metadata == {"finish_reason": "stop", "weight_version": 12}


async def test_the_weight_version_is_kept_with_the_sequence() -> None:
    tokenizer = small_tokenizer()
    async with tracking(tokenizer, samples=[said(tokenizer, "he")], weight_version="7") as (_, managed):
        await managed.chat_completion(messages=HELLO)
        assert managed.current_nodes[0].metadata == {"finish_reason": "stop", "weight_version": 7}


async def test_a_rollout_without_logprobs_fails_and_leaves_no_node() -> None:
    tokenizer = small_tokenizer()
    bad = Sample([5, 6], [-0.5])
    async with tracking(tokenizer, samples=[bad], dialect="stock_vllm") as (_, managed):
        with pytest.raises(InferenceError, match="logprobs"):
            await managed.chat_completion(messages=HELLO)
        assert managed.current_nodes == []


async def test_an_answer_to_another_prompt_is_refused() -> None:
    tokenizer = small_tokenizer()
    async with FakeServer("vllm") as fake, managing(fake) as servers:
        answer = {"logprobs": [], "finish_reasons": [], "prompt_token_ids": [1, 2], "token_ids": []}
        fake.faults.extend([status(200, answer)] * 9)
        async with servers.managed_server(tokenizer=tokenizer) as managed:
            with pytest.raises(InferenceError, match="another prompt"):
                await managed.chat_completion(messages=HELLO, timeout=1)


def test_an_output_with_fewer_logprobs_than_tokens_is_refused() -> None:
    with pytest.raises(InferenceError, match="3 tokens, 3 mask entries and 2 logprobs"):
        grown(None, [1], [2, 3], [-1.0], full_text="", metadata={})


def test_a_sequence_that_somebody_has_changed_is_not_continued() -> None:
    base = grown(None, [1], [2, 3], [-1.0, -2.0], full_text="", metadata={})
    with pytest.raises(InferenceError, match="does not begin with"):
        grown(base, [1, 2, 4], [5], [-1.0], full_text="", metadata={})
    base.logprobs.pop()
    with pytest.raises(InferenceError, match="4 tokens, 4 mask entries and 3 logprobs"):
        grown(base, [1, 2, 3], [5], [-1.0], full_text="", metadata={})


@pytest.mark.parametrize("keeps_text", [True, False])
async def test_tool_calls_are_read_from_the_reply_and_the_next_turn_keeps_its_ids(keeps_text: bool) -> None:
    tokenizer = small_tokenizer()
    call = '<tool_call>\n{"name": "look", "arguments": {"at": "in"}}\n</tool_call>'
    async with tracking(
        tokenizer,
        samples=[said(tokenizer, "I look. " + call), said(tokenizer, "done")],
        manager={"tool_parser": "hermes"},
    ) as (fake, managed):
        answer = await managed.chat_completion(messages=HELLO, tools=[TOOL], tool_choice="auto")
        (choice,) = answer.choices
        turn_one = managed.current_nodes[0].tokens
        reply = {
            "role": "assistant",
            "content": choice.message.content if keeps_text else None,
            "tool_calls": choice.message.tool_calls,
        }  # fmt: skip
        result = {"role": "tool", "tool_call_id": choice.message.tool_calls[0]["id"], "content": "nothing"}
        second = await managed.chat_completion(messages=[*HELLO, reply, result], tools=[TOOL])
        nodes = len(managed.current_nodes)
    assert choice.finish_reason == "tool_calls"
    assert choice.message.content == "I look. "
    assert choice.message.tool_calls[0]["function"] == {"name": "look", "arguments": '{"at": "in"}'}
    assert second.choices[0].message.content == "done"
    assert second.choices[0].finish_reason == "stop"
    assert sent(fake)[1][: len(turn_one)] == turn_one
    assert nodes == 1


@pytest.mark.parametrize(
    "text",
    [
        "no call",
        "<tool_call>{broken</tool_call>",
        "<think><tool_call>{}</tool_call></think>no",
        "<tool_call>[]</tool_call>",
    ],
)
async def test_what_is_no_tool_call_stays_text(text: str) -> None:
    tokenizer = small_tokenizer()
    async with tracking(tokenizer, samples=[said(tokenizer, text)], manager={"tool_parser": "hermes"}) as (
        _,
        managed,
    ):
        (choice,) = (await managed.chat_completion(messages=HELLO, tools=[TOOL])).choices
    assert (choice.message.content, choice.message.tool_calls, choice.finish_reason) == (text, None, "stop")


async def test_an_assistants_tool_calls_from_elsewhere_are_written_as_the_model_writes_them() -> None:
    tokenizer = small_tokenizer()
    messages = [
        *HELLO,
        {"role": "assistant", "content": None, "tool_calls": [
            {"id": "1", "type": "function", "function": {"name": "look", "arguments": '{"at": 1}'}}
        ]},
        {"role": "tool", "content": "nothing"},
    ]  # fmt: skip
    async with tracking(tokenizer, manager={"tool_parser": "hermes"}) as (fake, managed):
        await managed.chat_completion(messages=messages)
    assert '<tool_call>\n{"name": "look", "arguments": {"at": 1}}\n</tool_call>' in tokenizer.decode(sent(fake)[0])


QWEN_CALL = "<tool_call>\n<function=look>\n<parameter=at>\nin\n</parameter>\n</function>\n</tool_call>"


@pytest.mark.parametrize(
    ("parser", "call"),
    [
        ("qwen3_coder", QWEN_CALL),
        ("llama3_json", '{"name": "look", "parameters": {"at": "in"}}'),
        ("mistral", '[TOOL_CALLS]look[ARGS]{"at": "in"}'),
    ],
)
async def test_a_call_in_another_format_is_left_to_the_template_and_its_ids_are_kept(parser: str, call: str) -> None:
    tokenizer = small_tokenizer()
    tokenizer.chat_template = CALLS_AS_VALUES
    async with tracking(
        tokenizer, samples=[said(tokenizer, call), said(tokenizer, "done")], manager={"tool_parser": parser}
    ) as (fake, managed):
        (choice,) = (await managed.chat_completion(messages=HELLO, tools=[TOOL])).choices
        turn_one = managed.current_nodes[0].tokens
        reply = {"role": "assistant", "content": None, "tool_calls": choice.message.tool_calls}
        result = {"role": "tool", "tool_call_id": choice.message.tool_calls[0]["id"], "content": "nothing"}
        await managed.chat_completion(messages=[*HELLO, reply, result], tools=[TOOL])
        assert len(managed.current_nodes) == 1
        await managed.chat_completion(messages=[{"role": "user", "content": "again"}, reply, result], tools=[TOOL])
    assert choice.message.tool_calls[0]["function"] == {"name": "look", "arguments": '{"at": "in"}'}
    assert sent(fake)[1][: len(turn_one)] == turn_one
    assert "look of at=in" in tokenizer.decode(sent(fake)[2]), "the template gets the arguments as values"


async def test_an_unknown_tool_parser_is_named() -> None:
    async with tracking(small_tokenizer(), manager={"tool_parser": "klingon"}) as (_, managed):
        assert managed._tool_parser_name == "klingon"
        with pytest.raises(UsageError, match=r"no tool parser 'klingon'; choose one of: hermes, .*mistral"):
            await managed.chat_completion(messages=HELLO, tools=[TOOL])


async def test_a_tokenizer_without_a_chat_template_is_an_error_that_says_so() -> None:
    tokenizer = small_tokenizer()
    tokenizer.chat_template = None
    async with tracking(tokenizer) as (_, managed):
        with pytest.raises(ContractError, match="no chat template"):
            await managed.chat_completion(messages=HELLO)


async def test_openais_own_messages_can_be_sent_back() -> None:
    tokenizer = small_tokenizer()
    async with tracking(tokenizer, samples=[said(tokenizer, "hello")]) as (_, managed):
        first = await managed.chat_completion(messages=HELLO)
        messages = [*HELLO, first.choices[0].message, {"role": "user", "content": "more"}]
        await managed.chat_completion(messages=messages)
        assert len(managed.current_nodes) == 1


async def test_logprobs_of_a_chat_are_those_of_its_ids() -> None:
    tokenizer = small_tokenizer()
    async with tracking(tokenizer, samples=[said(tokenizer, "hello")]) as (_, managed):
        await managed.chat_completion(messages=HELLO)
        node = managed.current_nodes[0]
        answer = await managed.get_logprobs(messages=[*HELLO, {"role": "assistant", "content": "hello"}], top_k=1)
    assert answer["prompt_tokens"][: len(node.tokens)] == node.tokens
    assert len(answer["prompt_topk_logprobs"]) == len(answer["prompt_tokens"])


async def test_the_adapter_looks_like_an_openai_client() -> None:
    tokenizer = small_tokenizer()
    async with tracking(tokenizer, samples=[said(tokenizer, "hello")]) as (fake, managed):
        client = ManagedServerAdapter(managed_server=managed, base_url=fake.url)
        chat = await client.chat.completions.create(messages=HELLO)
        text = await client.completions.create(prompt="x")
        assert len(managed.current_nodes) == 2
        with pytest.raises(NotImplementedError, match="tokenize"):
            await client.post("/tokenize", {}, dict)
        with pytest.raises(NotImplementedError):
            client.copy()
    assert (chat.choices[0].message.content, text.choices[0].text, client.base_url) == ("hello", "hello", fake.url)
