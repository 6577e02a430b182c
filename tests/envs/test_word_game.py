"""Word game: the rules, and twenty groups of games of several turns with tool calls, trained token by token."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.envs.conftest import environment_module, serve_groups
from tests.envs.scripted_model import LOGPROB, ScriptedModel
from tests.runtime.serving_parts import FakeTrajectoryApi

word_game = environment_module("word_game")
MakeEnv = Callable[..., Any]


def call(word: str, name: str = "guess") -> dict[str, Any]:
    return {"id": "1", "type": "function", "function": {"name": name, "arguments": json.dumps({"word": word})}}


def written(word: str) -> str:
    return f'<tool_call>\n{{"name": "guess", "arguments": {{"word": "{word}"}}}}\n</tool_call>'


def test_signs_say_what_is_right_elsewhere_and_wrong() -> None:
    assert word_game.signs("apple", "apple") == "+++++"
    assert word_game.signs("apple", "paint") == "~~---"
    assert len(set(word_game.WORDS)) == len(word_game.WORDS)
    assert all(len(word) == 5 and word.isalpha() and word.islower() for word in word_game.WORDS)


def test_each_guess_earns_what_it_found_anew() -> None:
    game = word_game.Game("stone")
    answers = [game.play([call(word)]) for word in ("storm", "STORE", "stone")]
    assert [answer["content"] for answer in answers] == ["+++--", "+++-+", "+++++"]
    assert [answer["reward"] for answer in answers] == pytest.approx([0.3, 0.1, 1.1])
    assert game.solved
    assert game.parts == pytest.approx({"solved": 1.0, "found": 0.5, "wasted": 0.0})


@pytest.mark.parametrize(
    "calls",
    [
        [],
        [call("stone"), call("storm")],
        [call("stone", "peek")],
        [call("stones")],
        [call("st0ne")],
        [{"id": "1", "type": "function", "function": {"name": "guess", "arguments": "no JSON"}}],
        [{"id": "1", "type": "function", "function": {"name": "guess", "arguments": '["stone"]'}}],
        [{"id": "1", "type": "function", "function": {"name": "guess", "arguments": "{}"}}],
    ],
)
def test_a_turn_without_a_proper_guess_is_wasted(calls: list[dict[str, Any]]) -> None:
    game = word_game.Game("stone")
    assert game.play(calls)["reward"] == pytest.approx(-0.1)
    assert not game.solved
    assert game.turns == 1


def test_a_guess_made_twice_is_wasted() -> None:
    game = word_game.Game("stone")
    game.play([call("storm")])
    assert game.play([call("storm")])["reward"] == pytest.approx(-0.1)


def test_a_turns_tokens_have_the_value_of_their_turn() -> None:
    mask = [-100, -100, 5, 6, -100, 7, -100, -100, 8, 9]
    assert word_game.per_token(mask, [1.0, 2.0, 3.0]) == [0, 0, 1.0, 1.0, 0, 2.0, 0, 0, 3.0, 3.0]


class Players:
    """Plays each game of a group in a way of its own: at once right, right at the second turn, silent, or stubborn.

    A game is told from the others of its group by its first guess, which stands in all its later prompts.
    """

    def __init__(self) -> None:
        self.secret = ""
        self._begun = 0

    def __call__(self, prompt: str, n: int) -> list[str]:
        assert n == 1
        if "tool:" not in prompt:
            self._begun += 1
            return [[written(self.secret), written("fuzzy"), "Let me think.", written("jazzy")][self._begun % 4]]
        return [written(self.secret) if "fuzzy" in prompt else "Hm." if "Let me think." in prompt else written("jazzy")]


async def test_twenty_groups_of_games_are_trained_turn_by_turn(
    make_env: MakeEnv, api: FakeTrajectoryApi, tokenizer: Any
) -> None:
    players = Players()
    async with ScriptedModel(tokenizer, players) as model:
        env = make_env(word_game.WordGameEnv, model.url, max_turns=3, max_num_workers=1)
        next_round = env.get_next_item

        async def noted() -> Any:
            item = await next_round()
            players.secret = item["secret"]
            return item

        env.get_next_item = noted
        served = await serve_groups(env, api, 20)
    assert served.outcomes() == {"delivered": 20}
    for content, group in zip(served.delivered(), api.groups, strict=True):
        by_turns = sorted(content.rollouts, key=lambda rollout: rollout.score or 0.0, reverse=True)
        for rollout in content.rollouts:
            assert rollout.score == pytest.approx(sum(rollout.parts.values()))
            rewards = [message["reward"] for message in rollout.messages if message["role"] == "tool"]
            assert rollout.score == pytest.approx(sum(rewards))
        assert by_turns[0].parts["solved"] == by_turns[1].parts["solved"] == 1.0
        assert by_turns[-1].parts["wasted"] == pytest.approx(-0.3)
        check_tokens(group, content, tokenizer)


def check_tokens(group: dict[str, Any], content: Any, tokenizer: Any) -> None:
    """What is trained on is what the model said, with the advantage of its turn, and nothing else."""
    for tokens, mask, logprobs, advantages, messages in zip(
        group["tokens"],
        group["masks"],
        group["inference_logprobs"],
        group["advantages"],
        group["messages"],
        strict=True,
    ):
        trained = [place for place, token in enumerate(mask) if token != -100]
        replies = [message for message in messages if message["role"] == "assistant"]
        text = tokenizer.decode([tokens[place] for place in trained])
        assert text.count("<eos>") == len(replies)
        for message in replies:
            assert message.get("tool_calls") or message["content"] in text
        assert {logprobs[place] for place in trained} == {LOGPROB}
        assert all(advantages[place] == 0.0 for place in range(len(tokens)) if place not in set(trained))
    first = [
        next(a for a, m in zip(*pair, strict=True) if m != -100)
        for pair in zip(group["advantages"], group["masks"], strict=True)
    ]
    assert sum(first) == pytest.approx(0.0)
    assert first[group["scores"].index(max(group["scores"]))] == max(first) > 0


async def test_an_evaluation_plays_the_same_words(make_env: MakeEnv, tokenizer: Any) -> None:
    async with ScriptedModel(tokenizer, lambda _, n: [written("apple")] * n) as model:
        env = make_env(word_game.WordGameEnv, model.url, max_turns=2)
        await env.setup()
        metrics = await env.evaluate()
        await env.server.close()
    assert metrics["eval/solved"] == pytest.approx(0.1)
