"""Groups with long chats: reasoning, tool calls, Markdown, requests, a reference; and one of hostile text."""

from __future__ import annotations

import random
from dataclasses import replace

from atropos_tui.ledger.outcomes import Outcome
from atropos_tui.monitor.group_detail import CallRow, GroupDetail, RolloutDetail
from atropos_tui.monitor.snapshot import EndedRow
from tests.ui.recorded import NOW, RecordedSource, ended_rows, running

THOUGHT = (
    "The train leaves at noon and the bus twenty minutes later.\n"
    "The bus is faster by a quarter, so it gains five minutes in every twenty.\n"
    "They meet when the distances are equal: 60 t = 75 (t - 1/3), which gives t = 5/3 h."
)
ANSWER = (
    "## When they meet\n\nThe **bus** catches the *train* after `100` minutes:\n\n- the train has gone 100 km\n"
    "- the bus has gone 100 km too\n\n> Check: 60 · 5/3 = 75 · 4/3\n\n"
    "```python\nassert 60 * 5 / 3 == 75 * 4 / 3\n```\n\n"
    "So the answer is \\boxed{13:40}."
)
HOSTILE = (
    "\x1b[31mred\x1b[0m \x1b]0;title\x07 [bold]markup[/bold]\r\nbell \x07 backspace \x08\x08 nul \x00\n"
    "bidi \u202eevil\u202c zero\u200bwidth\u200d z\u0335\u0321\u0321\u0321\u0321\u0321algo\n"
    "tab\there, wide 漢字かな, lone \udc80 surrogate, tag \U000e0041, Hebrew שלום, Arabic سلام, " + "long" * 60
)


def source_of_chats(*details: GroupDetail) -> RecordedSource:
    """A run in full swing whose newest groups are these."""
    newest = [detail.row for detail in details]
    others = [row for row in ended_rows(30) if row.group_id not in {row.group_id for row in newest}]
    source = RecordedSource(running(), rows=[*newest, *others])
    source.details |= {detail.row.group_id: detail for detail in details}
    return source


def chat_group() -> GroupDetail:
    """Four rollouts of a word problem: two right ones, one wrong, one that was cut in its thoughts."""
    row = replace(
        ended_rows(1)[0], outcome=Outcome.DELIVERED, reason="received", item="A train leaves at noon with 60 km/h …",
        scores=(1.0, 0.2, 1.0, -0.5), completion_tokens=(212, 180, 199, 256), finishes=("length", "stop", "tool_calls"),
        error="", has_content=True,
    )  # fmt: skip
    rollouts = (
        _chat(1.0, THOUGHT, ANSWER, {"answer": 1.0, "format": 1.0, "brevity": 0.6}),
        _chat(0.2, THOUGHT.replace("5/3", "4/3"), ANSWER.replace("13:40", "13:20"), {"answer": 0.0, "format": 1.0}),
        _chat(1.0, "Quick: 100 minutes.", "It is \\boxed{13:40}.", {"answer": 1.0, "format": 1.0, "brevity": 1.0}),
        _chat(-0.5, THOUGHT * 3, "", {"answer": 0.0, "format": -0.5}, finish="length"),
    )
    calls = tuple(
        CallRow(
            server=number % 3, at=NOW - 9 + number, n=2, latency=0.4 + 0.35 * number, prompt_tokens=412 + 90 * number,
            completion_tokens=230 - 12 * number, weight_version=311,
            error="ReadTimeout: no answer for 30 s" if number == 2 else "",
            finish_reasons=("tool_calls", "stop") if number < 3 else ("length",) * 2,
        )
        for number in range(5)
    )  # fmt: skip
    return GroupDetail(row=row, rollouts=rollouts, calls=calls, earlier_calls=3)


def _chat(score: float, thought: str, answer: str, parts: dict[str, float], finish: str = "stop") -> RolloutDetail:
    reply = f"<think>\n{thought}\n</think>\n\n{answer}" if answer else f"<think>\n{thought}"
    call = {"id": "call_1", "function": {"name": "calculator", "arguments": '{"expression": "60 * 5 / 3"}'}}
    messages = (
        {"role": "system", "content": "Solve the problem. Think first, then give the answer in \\boxed{}."},
        {"role": "user", "content": "A train leaves at noon with 60 km/h, a bus twenty minutes later with 75 km/h. "
         "When does the bus catch the train?"},
        {"role": "assistant", "content": None, "reasoning_content": "I should compute this.", "tool_calls": [call]},
        {"role": "tool", "name": "calculator", "tool_call_id": "call_1", "content": "100.0"},
        {"role": "assistant", "content": reply},
    )  # fmt: skip
    return _with_tokens(RolloutDetail(score=score, messages=messages, finish_reason=finish, parts=parts), reply)


def _with_tokens(rollout: RolloutDetail, reply: str) -> RolloutDetail:
    """A word a token; what the reply says is trained, and a reference finds some of it less likely."""
    chance = random.Random(len(reply))
    prompt = [piece for message in rollout.messages[:2] for piece in _words(str(message["content"]))]
    pieces = [*prompt, *_words(reply)]
    trained = [False] * len(prompt) + [True] * (len(pieces) - len(prompt))
    ids = tuple(sum(map(ord, piece)) for piece in pieces)
    logprobs = tuple(-(abs(chance.gauss(0, 0.8)) ** 2) if is_trained else 1.0 for is_trained in trained)
    return replace(
        rollout, tokens=ids, pieces=tuple(pieces), logprobs=logprobs,
        masks=tuple(i if is_trained else -100 for i, is_trained in zip(ids, trained, strict=True)),
        advantages=tuple((rollout.score or 0.0) - 0.4 if is_trained else 0.0 for is_trained in trained),
        ref_logprobs=tuple(min(0.0, p + chance.gauss(-0.2, 0.7)) if p <= 0 else 1.0 for p in logprobs),
    )  # fmt: skip


def _words(text: str) -> list[str]:
    lines = text.splitlines(keepends=True)
    return [piece for line in lines for piece in line.replace(" ", "\0 ").split("\0")]


def hostile_group() -> GroupDetail:
    row: EndedRow = replace(ended_rows(2)[1], item=HOSTILE)
    rollout = RolloutDetail(score=1.0, messages=({"role": "assistant\x1b[2J", "content": HOSTILE},))
    return GroupDetail(row=row, rollouts=(rollout,))
