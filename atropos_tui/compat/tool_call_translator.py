"""Tool calls between a model's text and OpenAI's objects, under atroposlib's names; vLLM is not needed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from openai.types.chat import ChatCompletionMessageToolCall

from atropos_tui.inference.tool_calls import as_text
from atropos_tui.inference.tool_parsers import parser_named

# Whether tool calls can be read out of text; atroposlib asks vLLM for that.
VLLM_AVAILABLE = True


class ToolCallTranslator:
    """Reads calls with a named parser and remembers the text that each came from, in `call_id_to_raw_text`."""

    def __init__(self, tokenizer: Any, parser_name: str = "hermes") -> None:
        """Raises UsageError for a parser that is not known."""
        self.tokenizer = tokenizer
        self.parser_name = parser_name
        self.call_id_to_raw_text: dict[str, str] = {}
        self._parse = parser_named(parser_name)

    def parse_model_output(
        self, raw_text: str, tool_choice: str | Mapping[str, Any] | None = None, tools: Sequence[Any] | None = None
    ) -> tuple[str | None, list[ChatCompletionMessageToolCall] | None, str]:
        """Content, calls and finish reason; the text itself and "stop" when it has no calls or none are wanted."""
        parsed = self._parse(raw_text, tools) if tools and tool_choice != "none" else None
        if parsed is None:
            return raw_text, None, "stop"
        content, found = parsed
        calls = [ChatCompletionMessageToolCall.model_validate(call) for call in found]
        for call in calls:
            written = as_text({"tool_calls": [call.model_dump()]})["content"]
            self.call_id_to_raw_text[call.id] = raw_text if len(calls) == 1 and not content else written
        return content, calls, "tool_calls"

    def decode_with_tool_awareness(self, token_ids: Sequence[int], has_tools: bool) -> str:
        """The text of tokens, with special tokens only where tool calls, which they may mark, are looked for."""
        text: str = self.tokenizer.decode(token_ids, skip_special_tokens=not has_tools)
        return text

    def reconstruct_raw_text_from_tool_calls(self, tool_calls: Sequence[Mapping[str, Any]]) -> str:
        """The text that the calls came from; for calls that were not read here, as a model would write them."""
        return "\n".join(
            self.call_id_to_raw_text.get(str(call.get("id"))) or as_text({"tool_calls": [call]})["content"]
            for call in tool_calls
        )

    def convert_messages_for_template(self, messages: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        """The messages, with the calls of assistants in their text; all others as they are."""
        return [self._with_calls_in_text(message) if message.get("tool_calls") else message for message in messages]

    def _with_calls_in_text(self, message: Mapping[str, Any]) -> dict[str, Any]:
        calls = self.reconstruct_raw_text_from_tool_calls(message["tool_calls"])
        said = message.get("content") or ""
        return {"role": message["role"], "content": f"{said}\n{calls}" if said else calls}
