"""What the fake model says: to a prompt that asks for a sum, the sum in the form that the prompt wants."""

from __future__ import annotations

import json
import re

_SUM = re.compile(r"What is (\d+) plus (\d+)\?")
_OPTIONS = re.compile(r"\bA[.):]\s|multiple choice|The best answer is", re.IGNORECASE)


def reply(prompt: str, choice: int) -> str:
    """The reply of one choice: right when its number is even. It depends on nothing else."""
    right = choice % 2 == 0
    sums = _SUM.findall(prompt)
    if "<answer>^[a-z]+$</answer>" in prompt:
        return _thought("I write a pattern.", f"<answer>{'^[0-9]+$' if right else '^x'}</answer>")
    if "<reversed_text>" in prompt and sums:
        text = f"What is {sums[-1][0]} plus {sums[-1][1]}?"
        return _thought("I reverse.", f"<reversed_text>{text[::-1] if right else text}</reversed_text>")
    if "tool_call" in prompt:
        return _thought("I call a tool.", f"<tool_call>\n{json.dumps(_tool_call(sums, right))}\n</tool_call>")
    if _OPTIONS.search(prompt):
        letter = "A" if right else "B"
        return _thought("I look at the options.", f"The best answer is {letter}. <answer>{letter}</answer>")
    total = sum(map(int, sums[-1])) if sums else 7
    answer = total if right else total + 1
    return _thought(f"I add the numbers {choice}.", f"The answer is \\boxed{{{answer}}}\n<answer>{answer}</answer>")


def prompt_of(messages: list[dict[str, object]]) -> str:
    """The text of a chat; of messages in parts, the text of these."""
    texts = []
    for message in messages:
        content = message.get("content")
        parts = content if isinstance(content, list) else [{"text": content or ""}]
        texts.append(" ".join(str(part.get("text", "")) for part in parts))
    return "\n".join(texts)


def _tool_call(sums: list[tuple[str, str]], right: bool) -> dict[str, object]:
    if not sums:
        return {"name": "take_action", "arguments": {"action": "stick" if right else "hit"}}
    first, second = map(int, sums[-1])
    return {"name": "add", "arguments": {"a": first, "b": second if right else 99}}


def _thought(thought: str, said: str) -> str:
    return f"<think>\n{thought}\n</think>\n{said}"
