"""A server that keeps track of what it samples, so that every token can be trained on exactly as it was sampled."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from atropos_tui.errors import InferenceError
from atropos_tui.inference.decoding import Detokenizer
from atropos_tui.inference.dialogue import ChatTemplate, begins_with, plain_messages, without_end_of_turn
from atropos_tui.inference.prompts import load_tokenizer, without_doubled_bos
from atropos_tui.inference.results import (
    RawFinishReason,
    chat_choice,
    chat_completion,
    finish_word,
    openai_finish_reason,
    text_completion,
    usage_of,
    weight_versions_of,
)
from atropos_tui.inference.sampled import check_logprobs
from atropos_tui.inference.sequence import SequenceNode, Turn, grown
from atropos_tui.inference.server import APIServer
from atropos_tui.inference.tool_calls import WRITTEN_AS_TEXT
from atropos_tui.inference.tool_parsers import parser_named

if TYPE_CHECKING:
    from openai.types import Completion
    from openai.types.chat import ChatCompletion

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Sampled:
    """One choice: its sequence, what the caller gets to read, and why it ended."""

    node: SequenceNode
    turn: Turn
    text: str
    reason: RawFinishReason


def _metadata(reason: RawFinishReason, version: int | None) -> dict[str, Any]:
    word = finish_word(reason) or "stop"
    metadata: dict[str, Any] = {"finish_reason": word}
    if version is not None:
        metadata["weight_version"] = version
    if word == "abort":
        metadata["partial"] = True
    return metadata


class ManagedServer:
    """Chat and completion on one server, with the sequences that come of it in `current_nodes`.

    A request that goes on from a tracked sequence sends that sequence's ids and encodes only what is new; the longer
    sequence takes the shorter one's place. With `track_tree` all sequences stay, by their text in `sequences`, and each
    is trainable only in what its own request sampled. `tool_parser`, one of `tool_parsers.PARSERS`, reads tool calls
    from the text. `detokenizer` is another managed server's, for the same tokenizer.
    `preserve_think_blocks`: thinking stays in earlier turns even where the chat template would strip it.
    """

    def __init__(
        self,
        server: APIServer,
        tokenizer: Any = None,
        track_tree: bool = False,
        tool_parser: str | None = None,
        preserve_think_blocks: bool = True,
        detokenizer: Detokenizer | None = None,
    ) -> None:
        self.server = server
        if tokenizer is None:
            tokenizer = getattr(server, "tokenizer", None)
        self.tokenizer = load_tokenizer(server.config) if tokenizer is None else tokenizer
        if detokenizer is None or detokenizer.tokenizer is not self.tokenizer:
            detokenizer = Detokenizer(self.tokenizer)
        self.detokenizer = detokenizer
        self.track_tree = track_tree
        self._tool_parser_name = tool_parser
        self._preserve_think_blocks = preserve_think_blocks
        self.current_nodes: list[SequenceNode] = []
        self.sequences: dict[str, SequenceNode] = {}
        # Sequences whose place a longer one took: a chat may yet branch off from them.
        self._outgrown: list[SequenceNode] = []

    async def chat_completion(self, **kwargs: Any) -> ChatCompletion:
        """Chat with OpenAI's arguments; `choices[i]` belongs to the i-th of the newest sequences.

        Tool calls are dicts on the message when a tool parser is set. Raises InferenceError.
        """
        messages = plain_messages(kwargs.pop("messages", None) or [])
        tools, tool_choice = kwargs.pop("tools", None), kwargs.pop("tool_choice", None)
        if tools and not self._tool_parser_name:
            logger.warning("tools are left out of the prompt: no tool_parser is set")
            tools = None
        prompt, base = self._prompt_of(messages, tools)
        sampled, usage = await self._sample(prompt, base, kwargs, keep_special=bool(tools))
        choices = []
        for index, choice in enumerate(sampled):
            reads_calls = bool(tools) and tool_choice != "none"
            content, calls = self._read_calls(choice.text, tools) if reads_calls else (choice.text, [])
            reason = "tool_calls" if calls else openai_finish_reason(choice.reason)
            reply = {"role": "assistant", "content": content, "tool_calls": calls}
            choice.node.seen_as(replace(choice.turn, messages=(*messages, reply)))
            choices.append(chat_choice(index, content, reason, calls))
        return chat_completion(self.server.config.model_name, choices, usage)

    async def completion(self, **kwargs: Any) -> Completion:
        """Completion of `prompt` with OpenAI's arguments. Raises InferenceError."""
        prompt = kwargs.pop("prompt", "")
        sampled, usage = await self._sample(prompt, self._find_extending_node(prompt), kwargs)
        return text_completion(
            self.server.config.model_name,
            [choice.text for choice in sampled],
            [choice.reason for choice in sampled],
            usage,
        )

    async def get_logprobs(self, **kwargs: Any) -> dict[str, Any]:
        """Logprobs of the tokens of `messages`, `prompt` or `input_ids`; see `APIServer.get_logprobs`."""
        messages = kwargs.pop("messages", None)
        if messages is not None:
            kwargs["prompt"], kwargs["input_ids"] = self.render(messages)
        elif kwargs.get("input_ids") is None:
            prompt = kwargs.get("prompt") or ""
            kwargs["input_ids"] = self._compute_input_ids(prompt, self._find_extending_node(prompt))
        return await self.server.get_logprobs(**kwargs)

    def render(self, messages: Sequence[Any], tools: Sequence[Any] | None = None) -> tuple[str, list[int]]:
        """The prompt of a chat as it would be sent now: its text and its ids."""
        prompt, base = self._prompt_of(plain_messages(messages), tools)
        return prompt, self._compute_input_ids(prompt, base)

    def _convert_messages_to_prompt(self, messages: Sequence[Any], tools: Sequence[Any] | None = None) -> str:
        """The text of `render`, under the name that tests of environments ask for it."""
        return self._prompt_of(plain_messages(messages), tools)[0]

    def get_state(self) -> dict[str, Any]:
        """`{"nodes": [SequenceNode]}`, or `{"sequences": {text: SequenceNode}, "tree": the same}` with `track_tree`.
        Copies: `reset` leaves them alone."""
        if self.track_tree:
            return {"sequences": dict(self.sequences), "tree": dict(self.sequences)}
        return {"nodes": list(self.current_nodes)}

    def reset(self) -> None:
        """Forget all sequences."""
        self.current_nodes.clear()
        self.sequences.clear()
        self._outgrown.clear()

    def _prompt_of(
        self, messages: Sequence[Any], tools: Sequence[Any] | None = None
    ) -> tuple[str, SequenceNode | None]:
        """The prompt text of a chat, in which the longest beginning that was sampled here stands as it was sampled, and
        the sequence that this beginning is."""
        template = ChatTemplate(self.tokenizer, self._preserve_think_blocks, self._tool_parser_name in WRITTEN_AS_TEXT)
        for node, turn in self._turns_of(messages):
            continued = template.continued(node.full_text, turn, messages, tools)
            if continued is not None:
                return continued, node
        text = template.render(messages, tools)
        return text, self._find_extending_node(text)

    def _turns_of(self, messages: Sequence[Any]) -> list[tuple[SequenceNode, Turn]]:
        """The tracked sequences that a chat goes on from, longest first."""
        turns = [(node, node.turn) for node in self._tracked() if node.turn is not None]
        fitting = [(node, turn) for node, turn in turns if begins_with(messages, turn.messages)]
        return sorted(fitting, key=lambda pair: len(pair[1].messages), reverse=True)

    def _tracked(self) -> list[SequenceNode]:
        if self.track_tree:
            return list(self.sequences.values())
        return [*self.current_nodes, *self._outgrown]

    def _find_extending_node(self, input_text: str) -> SequenceNode | None:
        """The longest tracked sequence that a prompt text goes on from, with or without its special tokens."""
        best, longest = None, 0
        for node in self._tracked():
            # A sequence with an empty reply reads as its prompt, which may be asked again or lead elsewhere.
            shortest = node.turn.prompt_length if node.turn else 0
            for text in (node.full_text, node.turn.text if node.turn else ""):
                if len(text) > max(longest, shortest) and input_text.startswith(text):
                    best, longest = node, len(text)
        return best

    def _compute_input_ids(self, input_text: str, extending_node: SequenceNode | None) -> list[int]:
        """The prompt's ids: those of the sequence it goes on from, and newly encoded ones only for the rest."""
        if extending_node is None:
            return without_doubled_bos(self.tokenizer.encode(input_text, add_special_tokens=True), self.tokenizer)
        turn = extending_node.turn
        if turn is not None and not input_text.startswith(extending_node.full_text):
            rest = without_end_of_turn(input_text[len(turn.text) :], turn.end_of_turn)
        else:
            rest = input_text[len(extending_node.full_text) :]
        return extending_node.tokens + (self.tokenizer.encode(rest, add_special_tokens=False) if rest else [])

    async def _sample(
        self, prompt: str, base: SequenceNode | None, arguments: dict[str, Any], keep_special: bool = False
    ) -> tuple[list[_Sampled], Any]:
        """Sample, check and track; the choices with their sequences, and the usage."""
        ids = self._compute_input_ids(prompt, base)
        model = self.server.config.model_name
        answer = await self.server.tokens_and_logprobs_completion(
            **{**arguments, "prompt": prompt, "input_ids": ids, "model": model}
        )
        told_ids, output_tokens, output_logprobs, reasons = answer
        if list(told_ids) != ids:
            raise InferenceError(f"{model} completed another prompt than it was sent", kind="misaligned")
        versions = weight_versions_of(answer)
        detokenizer = self.detokenizer
        sampled = []
        for tokens, logprobs, reason, version in zip(output_tokens, output_logprobs, reasons, versions, strict=True):
            check_logprobs(model, tokens, logprobs)
            said, end = detokenizer.split_end_of_turn(tokens)
            text = detokenizer.decode(said, skip_special_tokens=not keep_special)
            # Decoding is a fifth of all work on a long reply: once is enough where it leaves nothing out.
            whole = text if keep_special or not detokenizer.may_hide(said) else detokenizer.decode(said)
            end_of_turn = detokenizer.decode(end) if end else ""
            node = grown(
                None if self.track_tree else base, ids, tokens, logprobs,
                full_text=prompt + whole + end_of_turn, metadata=_metadata(reason, version),
            )  # fmt: skip
            turn = Turn(prompt + text, len(prompt), end_of_turn)
            sampled.append(_Sampled(node.seen_as(turn), turn, text, reason))
        self._remember(base, [choice.node for choice in sampled])
        return sampled, usage_of(len(ids), sum(map(len, output_tokens)))

    def _remember(self, base: SequenceNode | None, nodes: Sequence[SequenceNode]) -> None:
        """Track new sequences: the first takes the place of the one it goes on from, the others come after all."""
        if self.track_tree:
            self.sequences.update((node.full_text, node) for node in nodes)
            return
        rest = list(nodes)
        for place, node in enumerate(self.current_nodes):
            if node is base and rest:
                self.current_nodes[place] = rest.pop(0)
                self._outgrown.append(node)
                break
        self.current_nodes.extend(rest)

    def _read_calls(
        self, text: str, tools: Sequence[Mapping[str, Any]] | None
    ) -> tuple[str | None, list[dict[str, Any]]]:
        assert self._tool_parser_name is not None
        return parser_named(self._tool_parser_name)(text, tools or ()) or (text, [])
