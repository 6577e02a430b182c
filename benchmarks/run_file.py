"""The run file: how fast it is written, how large it gets, how fast it is read.

    python benchmarks/run_file.py [--rollouts 1000000] [--keep DIR]    write, then read
    python benchmarks/run_file.py --kill 50                            kill a recorder while it writes, again and again

Groups of 8 rollouts share a prompt of 500 tokens and have answers of 500 tokens and 2 kB of text each. Budgets: 0.3 s
to the first moment of a file with 1,000,000 rollouts, 0.2 s a search in it.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from atropos_tui.ledger import EventStream, GroupContent, Rollout  # noqa: E402
from atropos_tui.ledger.events import (  # noqa: E402
    CallFinished,
    CallStarted,
    GroupDelivered,
    GroupEnqueued,
    GroupScored,
    GroupSkipped,
    GroupStarted,
    RunEnded,
    RunStarted,
    StateChanged,
)
from atropos_tui.ledger.outcomes import DeliveredAs, RunState, SkipReason  # noqa: E402
from atropos_tui.monitor.group_store import GroupFilter, MemoryGroupStore  # noqa: E402
from atropos_tui.monitor.recorded.recorded_run import RecordedRun  # noqa: E402
from atropos_tui.monitor.run_file.reader import RunFileReader  # noqa: E402
from atropos_tui.monitor.run_file.recorder import MAX_CONTENTS, Recorder  # noqa: E402
from atropos_tui.monitor.run_file.writer import RecordLevel  # noqa: E402
from atropos_tui.monitor.run_view import RunView  # noqa: E402

GROUP = 8
PROMPT_TOKENS, ANSWER_TOKENS, ANSWER_WORDS = 500, 500, 350
VOCABULARY = 50_000
SOME_ANSWERS = 2_000


class Answers:
    """Text and tokens with the frequencies of language: a few words often, most seldom."""

    def __init__(self, seed: int = 0) -> None:
        chance = random.Random(seed)
        words = ["".join(chance.choices("etaoinshrdlucmfwypvbgkqjxz", k=chance.randint(2, 9))) for _ in range(20_000)]
        weights = [1 / (rank + 1) for rank in range(len(words))]
        self._chance = chance
        self._texts = [" ".join(chance.choices(words, weights, k=ANSWER_WORDS)) for _ in range(SOME_ANSWERS)]
        self.common, self.rare = words[0], words[15_000]

    def group(self, group_id: int) -> GroupContent:
        chance = self._chance
        prompt = [chance.randrange(VOCABULARY) for _ in range(PROMPT_TOKENS)]
        question = {"role": "user", "content": chance.choice(self._texts)[:1000]}
        rollouts = []
        for index in range(GROUP):
            answer = [chance.randrange(VOCABULARY) for _ in range(ANSWER_TOKENS)]
            rollouts.append(
                Rollout(
                    score=float(index % 2),
                    tokens=prompt + answer,
                    masks=[-100] * PROMPT_TOKENS + answer,
                    logprobs=[1.0] * PROMPT_TOKENS + [-chance.random() for _ in range(ANSWER_TOKENS)],
                    messages=[question, {"role": "assistant", "content": chance.choice(self._texts)}],
                    finish_reason="stop",
                )
            )
        return GroupContent(group_id, f"item {group_id}", tuple(rollouts))


def write(path: Path, rollouts: int, level: RecordLevel) -> float:
    """Record so many rollouts as fast as they are written; the seconds it took."""
    answers = Answers()
    contents = [answers.group(number) for number in range(64)]
    recorder = Recorder(path, level, content_share=1e6)
    view = RunView(MemoryGroupStore(), recorder=recorder)
    stream = EventStream(view.collector)
    recorder.start(1, 1, time.time())
    stream.publish(
        RunStarted, run_id="bench", environment="Bench", file="bench.py", pid=1, group_size=GROUP, total_steps=1000,
        max_token_length=2048, tokenizer_name="",
    )  # fmt: skip
    stream.publish(StateChanged, state=RunState.RUNNING)
    began = time.perf_counter()
    for group_id in range(1, rollouts // GROUP + 1):
        tell_group(stream, group_id, contents[group_id % len(contents)])
        view.drain()
        view.record_moment()
        while recorder.contents_waiting > MAX_CONTENTS // 2:
            time.sleep(0.001)
        if group_id == rollouts // GROUP // 4:
            print(f"memory after a quarter: {resident_megabytes():,.0f} MB")
    stream.publish(RunEnded, state=RunState.FINISHED, why="done")
    view.drain()
    view.record_moment(last=True)
    print(f"memory at the end: {resident_megabytes():,.0f} MB")
    recorder.close(timeout=120.0)
    seconds = time.perf_counter() - began
    if (section := recorder.section()).stopped or section.missed_contents:
        print(f"NOT ALL WAS WRITTEN: {section}")
    return seconds


def tell_group(stream: EventStream, group_id: int, content: GroupContent) -> None:
    """The events of one group; every tenth is skipped."""
    stream.publish(GroupStarted, group_id=group_id, item=f"item {group_id}", rollouts=GROUP, step=group_id // 100)
    stream.publish(CallStarted, call_id=group_id, group_id=group_id, server=0, split="train", n=GROUP)
    stream.publish(
        CallFinished, call_id=group_id, group_id=group_id, server=0, split="train", n=GROUP, latency=0.5,
        prompt_tokens=PROMPT_TOKENS, completion_tokens=GROUP * ANSWER_TOKENS, finish_reasons=("stop",) * GROUP,
    )  # fmt: skip
    stream.keep(GroupContent(group_id, content.item, content.rollouts))
    scores = tuple(float(rollout.score or 0) for rollout in content.rollouts)
    stream.publish(GroupScored, group_id=group_id, scores=scores, completion_tokens=(ANSWER_TOKENS,) * GROUP)
    if group_id % 10 == 0:
        stream.publish(GroupSkipped, group_id=group_id, reason=SkipReason.IDENTICAL_SCORES)
        return
    stream.publish(GroupEnqueued, group_id=group_id, raw_bytes=100_000, wire_bytes=30_000)
    stream.publish(GroupDelivered, group_id=group_id, reason=DeliveredAs.RECEIVED, latency=0.01, attempts=1)


def resident_megabytes() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def read(path: Path, groups: int) -> None:
    """Print what a screen waits for when it opens the file, pages through it and searches."""
    reader = RunFileReader(path)
    answers = Answers()
    middle = groups // 2
    chance = random.Random(1)
    show("first moment", lambda: asyncio.run(first_moment(path)), 5)
    show("newest page", lambda: reader.page(GroupFilter(), None, 50))
    show("page in the middle", lambda: reader.page(GroupFilter(), middle, 50))
    show("page of skipped", lambda: reader.page(GroupFilter(outcome="skipped"), middle, 50))
    show("page by score", lambda: reader.page(GroupFilter(score_from=0.9), None, 50))
    show("one group", lambda: reader.find(chance.randrange(1, groups)))
    show("search, common word", lambda: reader.page(GroupFilter(search=answers.common), None, 50))
    show("search, rare word", lambda: reader.page(GroupFilter(search=answers.rare), None, 50))
    show("search, both, skipped", lambda: reader.page(
        GroupFilter(search=f"{answers.common} {answers.rare}", outcome="skipped"), None, 50
    ))  # fmt: skip
    reader.close()


async def first_moment(path: Path) -> None:
    run = RecordedRun(path, decode=lambda ids: [])
    await anext(run.stream())
    await run.groups(limit=50)
    await run.close()


def show(name: str, work: Callable[[], Any], times: int = 20) -> None:
    seconds = []
    for _ in range(times):
        began = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - began)
    print(f"{name:<24} first {seconds[0] * 1000:8.1f} ms   median {statistics.median(seconds) * 1000:8.1f} ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rollouts", type=int, default=100_000)
    parser.add_argument("--level", type=RecordLevel, default=RecordLevel.ALL, choices=list(RecordLevel))
    parser.add_argument("--keep", type=Path, help="leave the file in this directory")
    parser.add_argument("--kill", type=int, metavar="TIMES", help="kill a recorder so many times instead")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=args.keep) as directory:
        path = (args.keep or Path(directory)) / "bench.db"
        if args.kill:
            from tests.run_file.killing import kill_while_writing

            confirmed = kill_while_writing(path, args.kill)
            print(f"{args.kill} kills: each left a whole file, and all {confirmed} confirmed groups are in it")
            return
        seconds = write(path, args.rollouts, args.level)
        megabytes = path.stat().st_size / 1e6
        per_100k = megabytes * 100_000 / args.rollouts
        print(f"written: {args.rollouts} rollouts in {seconds:.1f} s, {args.rollouts / seconds:,.0f} rollouts/s")
        print(f"size: {megabytes:,.0f} MB, {per_100k:,.0f} MB per 100,000 rollouts")
        read(path, args.rollouts // GROUP)


if __name__ == "__main__":
    main()
