"""A game of many turns: the model guesses a secret word with a tool, and each guess earns a reward of its own.

The whole game is one sequence. Of its tokens those that the model sampled are trained on, as they were sampled, and
each turn has the advantage of what was still earned from it on, relative to the same turn of the group's other games.

    atropos-tui serve envs/word_game.py --env.tokenizer_name MODEL --openai.model_name MODEL --openai.base_url URL
"""

from __future__ import annotations

import asyncio
import itertools
import json
import random
from statistics import fmean
from typing import Any, TypedDict

from pydantic import Field

from atropos_tui import APIServerConfig, BaseEnv, BaseEnvConfig, Message, ScoredDataGroup, ScoredDataItem

WORDS = """
apple beach bread brick chair cloud crane dance eagle earth flame fruit ghost grape heart horse house juice knife lemon
light maple money mouse music night ocean paint peach piano pilot plant queen river robot salad shark sheep smile snake
spoon stone storm sugar table tiger toast tower train whale wheat world zebra
""".split()  # noqa: SIM905  words read better as words
SYSTEM = (
    "Find the secret word of five letters. Each turn, call the tool `guess` once. The answer has one sign a letter: "
    "+ right place, ~ elsewhere in the word, - not in the word."
)
GUESS = {
    "type": "function",
    "function": {
        "name": "guess",
        "description": "Guess the secret word.",
        "parameters": {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]},
    },
}
NOT_TRAINED = -100


class Round(TypedDict):
    secret: str


class WordGameConfig(BaseEnvConfig):
    max_turns: int = Field(6, ge=1, description="Guesses a game may have")
    max_tokens: int = Field(256, ge=1, description="Tokens a turn may have")
    seed: int = Field(7, description="Seed of the secret words")


class WordGameEnv(BaseEnv):
    name = "word_game"
    env_config_cls = WordGameConfig
    config: WordGameConfig
    cursor_attributes = ("random",)  # which checkpoints keep, so that a run goes on where it was

    @classmethod
    def config_init(cls) -> tuple[WordGameConfig, list[APIServerConfig]]:
        config = WordGameConfig(wandb_name=cls.name, use_wandb=False, group_size=8, max_token_length=4096)
        return config, [APIServerConfig(server_type="vllm", base_url="http://localhost:9001/v1")]

    async def setup(self) -> None:
        self.random = random.Random(self.config.seed)
        self.server.tool_parser = "hermes"  # how Hermes, Qwen and others write a call

    async def get_next_item(self) -> Round:
        return {"secret": self.random.choice(WORDS)}

    async def collect_trajectory(self, item: Round) -> tuple[ScoredDataItem, list[Round]]:
        """One game. The reward of a turn stands in the message that answers it."""
        game = Game(item["secret"])
        messages: list[Message] = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": "Begin."}]
        async with self.server.managed_server(tokenizer=self.tokenizer) as server:
            while not game.solved and game.turns < self.config.max_turns:
                answer = await server.chat_completion(
                    messages=messages, tools=[GUESS], n=1, max_tokens=self.config.max_tokens, temperature=1.0
                )
                message = answer.choices[0].message
                messages += [said(message), game.play(message.tool_calls or [])]
            (node,) = server.get_state()["nodes"]
        return ScoredDataItem(
            tokens=node.tokens,
            masks=node.masked_tokens,
            inference_logprobs=node.logprobs,
            finish_reasons=node.metadata["finish_reason"],
            scores=sum(game.parts.values()),
            score_parts=game.parts,
            messages=messages,
        ), []

    async def postprocess_histories(self, trajectories: ScoredDataGroup) -> ScoredDataGroup:
        """Add the advantages, which need all games of the group."""
        returns = [returns_of(messages) for messages in trajectories["messages"] or []]
        if all(game == returns[0] for game in returns):
            return trajectories  # nothing to learn from, which the runtime sees by the scores
        baselines = [fmean(turn for turn in turns if turn is not None) for turns in itertools.zip_longest(*returns)]
        trajectories["advantages"] = [
            per_token(mask, [earned - baseline for earned, baseline in zip(game, baselines, strict=False)])
            for mask, game in zip(trajectories["masks"], returns, strict=True)
        ]
        return trajectories

    async def evaluate(self, *args: Any, **kwargs: Any) -> dict[str, float]:
        """The first words of the list, one game each, as in training."""
        games = await asyncio.gather(*(self.collect_trajectory({"secret": word}) for word in WORDS[:10]))
        parts = [game["score_parts"] or {} for game, _ in games]
        metrics = {f"eval/{name}": fmean(part[name] for part in parts) for name in ("solved", "found", "wasted")}
        await self.evaluate_log(metrics)
        return metrics


class Game:
    """One secret word: what was guessed, what is known, and what was earned for what."""

    def __init__(self, secret: str) -> None:
        self.solved = False
        self.turns = 0
        self.parts = {"solved": 0.0, "found": 0.0, "wasted": 0.0}
        self._secret = secret
        self._found: set[int] = set()
        self._guessed: set[str] = set()

    def play(self, calls: list[dict[str, Any]]) -> Message:
        """The answer to one turn, with its reward: 1 for the word, 0.1 for each new letter in place."""
        self.turns += 1
        before = sum(self.parts.values())
        word = guessed_word(calls)
        if word is None or word in self._guessed:
            self.parts["wasted"] -= 0.1
            reply = "Call the tool `guess` once, with a new word of five letters."
        else:
            self._guessed.add(word)
            right = {place for place in range(5) if word[place] == self._secret[place]}
            self.parts["found"] += 0.1 * len(right - self._found)
            self._found |= right
            self.solved = word == self._secret
            self.parts["solved"] = float(self.solved)
            reply = signs(self._secret, word)
        return Message(role="tool", content=reply, reward=round(sum(self.parts.values()) - before, 6))


def said(message: Any) -> Message:
    """The assistant's message as the next request carries it."""
    told = Message(role="assistant", content=message.content or "")
    if message.tool_calls:
        told["tool_calls"] = message.tool_calls
    return told


def guessed_word(calls: list[dict[str, Any]]) -> str | None:
    """The word of exactly one well-formed call; else None."""
    if len(calls) != 1 or calls[0]["function"]["name"] != "guess":
        return None
    try:
        word = str(json.loads(calls[0]["function"]["arguments"])["word"]).lower()
    except (ValueError, TypeError, KeyError):
        return None
    return word if len(word) == 5 and word.isalpha() else None


def signs(secret: str, word: str) -> str:
    return "".join("+" if a == b else "~" if b in secret else "-" for a, b in zip(secret, word, strict=True))


def returns_of(messages: list[Message]) -> list[float]:
    """What was earned from each turn on."""
    rewards = [reward for message in messages if (reward := message.get("reward")) is not None]
    return list(itertools.accumulate(reversed(rewards)))[::-1]


def per_token(mask: list[int], turns: list[float]) -> list[float]:
    """The value of its turn for each token that is trained on: a turn is a stretch of such tokens, which tool answers
    part from the next. 0 for the others."""
    values, turn = [], -1
    for before, token in itertools.pairwise([NOT_TRAINED, *mask]):
        turn += before == NOT_TRAINED != token
        values.append(0.0 if token == NOT_TRAINED else turns[turn])
    return values


if __name__ == "__main__":
    WordGameEnv.cli()
