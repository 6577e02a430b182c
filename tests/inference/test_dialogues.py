"""Random dialogues under three chat templates: a turn's prompt begins with exactly the ids of the turn before."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.inference.fake_inference_server import FakeServer, Sample
from tests.inference.managing import managing
from tests.inference.nodes import check_node
from tests.inference.small_tokenizer import TEMPLATES, small_tokenizer

TOKENIZERS = {name: small_tokenizer(name) for name in TEMPLATES}
ORDINARY_TOKENS = 256 + 7


@dataclass(frozen=True)
class Turn:
    """What the user says, and what the model samples `n` times: any tokens, so also broken characters and spellings
    that the tokenizer would never choose. `ended`: with an end of turn."""

    user: str
    replies: tuple[tuple[int, ...], ...]
    thought: str | None
    ended: bool
    goes_on_from: int


turns = st.builds(
    Turn,
    user=st.text(max_size=12),
    replies=st.lists(st.lists(st.integers(0, ORDINARY_TOKENS - 1), max_size=8).map(tuple), min_size=1, max_size=3).map(
        tuple
    ),
    thought=st.none() | st.text("abc \n", max_size=6),
    ended=st.booleans(),
    goes_on_from=st.integers(0, 2),
)


@pytest.mark.parametrize("template", TEMPLATES)
@settings(max_examples=80, deadline=None)
@given(dialogue=st.lists(turns, min_size=2, max_size=4), system=st.none() | st.text(max_size=8))
def test_a_turn_begins_with_exactly_the_ids_of_the_turn_before(
    template: str, dialogue: list[Turn], system: str | None
) -> None:
    asyncio.run(_hold(TOKENIZERS[template], dialogue, system))


async def _hold(tokenizer: Any, dialogue: list[Turn], system: str | None) -> None:
    messages: list[dict[str, Any]] = [] if system is None else [{"role": "system", "content": system}]
    sampled: list[int] = []
    grown: list[Any] = []
    async with FakeServer("vllm") as fake, managing(fake) as servers, servers.managed_server(tokenizer) as managed:
        for turn in dialogue:
            fake.samples = [_sample(tokenizer, turn, reply) for reply in turn.replies]
            messages.append({"role": "user", "content": turn.user})
            answer = await managed.chat_completion(messages=messages, n=len(fake.samples))
            sent = fake.bodies("/generate")[-1]["prompt"]["prompt_token_ids"]
            if grown:
                # Replies that read the same cannot be told apart; it went on from one of them.
                assert any(sent[: len(node.tokens)] == node.tokens for node in grown)
                _check_end_of_turn(tokenizer, sent, grown[0])

            made = [node for node in managed.current_nodes if node.tokens[: len(sent)] == sent]
            chosen = answer.choices[turn.goes_on_from % len(answer.choices)].message.content
            grown = [node for node in made if node.turn is not None and node.turn.messages[-1]["content"] == chosen]
            assert grown
            for node in managed.current_nodes:
                check_node(node)
            sampled = grown[0].tokens[len(sent) :]
            assert [token for token in grown[0].masked_tokens if token != -100][
                -len(sampled) :
            ] == sampled or not sampled
            messages.append({"role": "assistant", "content": chosen})


def _sample(tokenizer: Any, turn: Turn, reply: tuple[int, ...]) -> Sample:
    thought = [] if turn.thought is None else tokenizer.encode(f"<think>{turn.thought}</think>")
    tokens = [*thought, *reply, *[tokenizer.eos_token_id] * turn.ended]
    return Sample(tokens, [-0.25] * len(tokens), "", "stop" if turn.ended else "length")


def _check_end_of_turn(tokenizer: Any, sent: list[int], before: Any) -> None:
    """Between two turns there is one end of turn, whether the model sampled it or the template wrote it."""
    added = sent[len(before.tokens) :]
    if before.tokens and before.tokens[-1] == tokenizer.eos_token_id:
        assert added[0] != tokenizer.eos_token_id
    else:
        assert added[0] == tokenizer.eos_token_id


WORDS = st.text("abcdefgh the in", min_size=1, max_size=8)


@settings(max_examples=60, deadline=None)
@given(words=st.lists(st.tuples(WORDS, WORDS), min_size=2, max_size=4))
def test_what_is_sent_reads_exactly_as_the_template_renders_it(words: list[tuple[str, str]]) -> None:
    asyncio.run(_render(words))


async def _render(words: list[tuple[str, str]]) -> None:
    tokenizer = TOKENIZERS["chatml"]
    messages: list[dict[str, Any]] = []
    async with FakeServer("vllm") as fake, managing(fake) as servers, servers.managed_server(tokenizer) as managed:
        for user, reply in words:
            messages.append({"role": "user", "content": user})
            tokens = [token for letter in reply for token in tokenizer.encode(letter)] + [tokenizer.eos_token_id]
            fake.samples = [Sample(tokens, [-0.5] * len(tokens))]
            await managed.chat_completion(messages=messages)
            sent = fake.bodies("/generate")[-1]["prompt"]["prompt_token_ids"]
            rendered = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
            assert tokenizer.decode(sent) == rendered
            messages.append({"role": "assistant", "content": reply})
        assert len(managed.current_nodes) == 1
