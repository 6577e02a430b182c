"""From environment to trainer: our worker and trajectory API beside those of atroposlib 0.4.0.

    python benchmarks/runtime.py --upstream-python PYTHON [--seconds 15] [--rounds 2] [--check] [--json]
    python benchmarks/runtime.py --tokens 256 --latency-ms 0      # one case, ours alone

Both sides run the same environment (`parity.py`) against the same inference server (`fake_inference.py`) and the same
trainer (`minimal_trainer.py`), in turns, each with processes of its own. Upstream has its best settings, which ours
shares: many workers, a high off-policy limit, no table of rollouts. Ours keeps its outbox and its journal on disk.

Groups/s are those that the trainer receives; CPU is that of the environment's process, divided by the groups that the
trajectory API took from it. Only the ratios mean much: absolute figures differ by machine and by the hour.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from atropos_tui.monitor.client import RunClient
from atropos_tui.monitor.supervisor import start_process
from benchmarks.fake_inference import VOCABULARY
from benchmarks.minimal_trainer import MinimalTrainer
from benchmarks.sides import GROUP_SIZE, Load, Prepare, Running, cpu_seconds, ours, upstream

BATCH_SIZE = 64
GROUPS_PER_BATCH = BATCH_SIZE // GROUP_SIZE
WARM_UP_SECONDS = 3.0
LEAST_GROUPS = 4 * GROUPS_PER_BATCH
LARGEST_WITHOUT_BATCH = 256  # bytes
PATIENCE = 180.0

StartSide = Callable[[Load, Prepare], AbstractContextManager[Running]]


@dataclass(frozen=True)
class Case:
    """`times_groups` and `times_cpu` are what the ratios to upstream's must be at least and at most."""

    tokens: int
    latency_ms: float
    workers: int
    times_groups: float
    times_cpu: float = float("inf")

    def __str__(self) -> str:
        return f"{GROUP_SIZE}×{self.tokens:,} tokens, {self.latency_ms:g} ms"


CASES = (Case(256, 0, 32, 3.0), Case(4096, 0, 32, 10.0), Case(256, 500, 64, 1.0, 0.5))


class CountingTrainer(MinimalTrainer):
    """Neither inflates nor reads what comes: a trainer does that elsewhere, and here it would take our processors."""

    def receive(self) -> list[dict[str, Any]] | None:
        with self.http.stream("GET", "/batch") as answer:
            answer.raise_for_status()
            size = sum(map(len, answer.iter_raw()))
        return [{}] * GROUPS_PER_BATCH if size > LARGEST_WITHOUT_BATCH else None


@dataclass(frozen=True)
class Figures:
    """CPU in milliseconds a group: of the environment's process, and of the trajectory API."""

    groups_per_second: float
    environment_cpu: float
    api_cpu: float


# --- measuring -------------------------------------------------------------------------------------------------------


def measured(case: Case, start: StartSide, tokenizer: str, seconds: float, watched: bool = False) -> Figures:
    """One turn of one side."""
    arguments = ["--tokens", str(case.tokens), "--latency-ms", str(case.latency_ms), "--choices", str(GROUP_SIZE)]
    log_path = Path(tokenizer, "inference.log")
    trainers: list[CountingTrainer] = []

    def start_trainer(api_url: str) -> None:
        trainers.append(CountingTrainer(api_url, batch_size=BATCH_SIZE, max_token_len=2 * case.tokens))
        trainers[0].register()
        trainers[0].start()

    command = [sys.executable, str(Path(__file__).with_name("fake_inference.py"))]
    with start_process(command, arguments, log_path=log_path) as inference:
        load = Load(inference.ready["url"], tokenizer, case.tokens, case.workers)
        with start(load, start_trainer) as side:
            try:
                if not watched:
                    return figures(side, trainers[0], seconds)
                command = [sys.executable, __file__, "--watch", side.socket]
                with start_process(command, log_path=log_path):
                    return figures(side, trainers[0], seconds)
            finally:
                trainers[0].stop()


def figures(side: Running, trainer: MinimalTrainer, seconds: float) -> Figures:
    """From one arrival of a batch to another, at least `seconds` and `LEAST_GROUPS` later."""
    wait_for_arrival(trainer, after=0.0)
    began, groups_before = wait_for_arrival(trainer, after=time.monotonic() + WARM_UP_SECONDS)
    before = look(side)
    ended, received, accepted = began + seconds, 0, 0.0
    while min(received, accepted) < LEAST_GROUPS:
        ended, groups = wait_for_arrival(trainer, after=ended)
        received = groups - groups_before
        accepted, environment, api = (now - then for now, then in zip(look(side), before, strict=True))
    return Figures(
        groups_per_second=received / (ended - began),
        environment_cpu=1000 * environment / accepted,
        api_cpu=1000 * api / accepted,
    )


def look(side: Running) -> tuple[float, float, float]:
    """Groups that the trajectory API has accepted, and the seconds of CPU of the environment and of the API."""
    return side.accepted_groups(GROUPS_PER_BATCH), cpu_seconds(side.environment_pid), cpu_seconds(side.api_pid)


def wait_for_arrival(trainer: MinimalTrainer, after: float) -> tuple[float, int]:
    """The first batch that arrives after a time: when, and the groups up to it."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and trainer.is_alive():
        if trainer.arrivals and trainer.arrivals[-1][0] > after:
            return next(arrival for arrival in trainer.arrivals if arrival[0] > after)
        time.sleep(0.01)
    raise SystemExit(f"no batch came within {PATIENCE:g} s: {trainer.error or 'the environment sends nothing'}")


async def watch(socket_path: str, ready_fd: int | None) -> None:
    """What an open dashboard costs its worker: four snapshots a second."""
    from atropos_tui.child import announce_ready

    announce_ready(ready_fd)
    async with RunClient(socket_path) as client:
        async for _ in client.stream(hz=4.0):
            pass


def make_tokenizer(directory: str) -> None:
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    words = {f"w{number}": number for number in range(VOCABULARY)} | {"[UNK]": VOCABULARY, "[END]": VOCABULARY + 1}
    core = Tokenizer(models.WordLevel(words, unk_token="[UNK]"))
    core.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=core, unk_token="[UNK]", eos_token="[END]")
    tokenizer.chat_template = "{% for m in messages %}{{ m['role'] }} {{ m['content'] }} [END] {% endfor %}"
    tokenizer.save_pretrained(directory)


# --- reporting -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Result:
    case: Case
    sides: dict[str, Figures]

    @property
    def ratios(self) -> dict[str, float]:
        """Of ours to upstream's."""
        mine, other = asdict(self.sides["ours"]), asdict(self.sides["upstream"])
        return {name: mine[name] / other[name] for name in mine}

    @property
    def met(self) -> bool:
        if "upstream" not in self.sides:
            return True
        ratios = self.ratios
        return (
            ratios["groups_per_second"] >= self.case.times_groups and ratios["environment_cpu"] <= self.case.times_cpu
        )

    def show(self) -> None:
        print(self.case)
        for name, figures in self.sides.items():
            print(
                f"  {name:14} {figures.groups_per_second:8.1f} groups/s to the trainer, CPU a group: environment "
                f"{figures.environment_cpu:7.2f} ms, trajectory API {figures.api_cpu:7.2f} ms"
            )
        if "upstream" in self.sides:
            ratios = self.ratios
            wanted = f"wanted: ≥ {self.case.times_groups:g} × the groups"
            if self.case.times_cpu < float("inf"):
                wanted += f", ≤ {self.case.times_cpu:g} × the environment's CPU"
            print(
                f"  ours/upstream  {ratios['groups_per_second']:8.2f} ×, environment's CPU "
                f"{ratios['environment_cpu']:.2f} ×; {wanted}: {'met' if self.met else 'MISSED'}"
            )
        if "ours, watched" in self.sides:
            cost = 1 - self.sides["ours, watched"].groups_per_second / self.sides["ours"].groups_per_second
            print(f"  cost of being watched at 4 Hz: {100 * cost:.1f} % of the groups/s")
        sys.stdout.flush()

    def as_json(self) -> dict[str, object]:
        sides = {name: asdict(figures) for name, figures in self.sides.items()}
        ratios = {"ratios": self.ratios} if "upstream" in self.sides else {}
        return {"case": str(self.case), "sides": sides, "met": self.met, **ratios}


def run(case: Case, upstream_python: str | None, tokenizer: str, seconds: float, rounds: int) -> Result:
    """All sides in turns, `rounds` times; the medians count."""
    turns: dict[str, list[Figures]] = {}

    def take_turn(name: str, start: StartSide, watched: bool = False) -> None:
        turns.setdefault(name, []).append(measured(case, start, tokenizer, seconds, watched))

    for _ in range(rounds):
        take_turn("ours", ours)
        if upstream_python:
            take_turn("upstream", lambda load, prepare: upstream(upstream_python, load, prepare))
        take_turn("ours, watched", ours, watched=True)
    return Result(case, {name: medians(found) for name, found in turns.items()})


def medians(found: list[Figures]) -> Figures:
    return Figures(
        *(statistics.median(column) for column in zip(*(asdict(one).values() for one in found), strict=True))
    )


def cases_of(options: argparse.Namespace) -> list[Case]:
    if options.tokens is None and options.latency_ms is None:
        return list(CASES)
    tokens, latency = options.tokens or 256, options.latency_ms or 0.0
    known = [case for case in CASES if (case.tokens, case.latency_ms) == (tokens, latency)]
    return known or [Case(tokens, latency, 64 if latency else 32, 0.0)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--upstream-python", metavar="PYTHON", help="an interpreter that can import atroposlib 0.4.0")
    parser.add_argument("--seconds", type=float, default=15.0, help="of each measurement (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=2, help="turns of each side (default: %(default)s)")
    parser.add_argument("--tokens", type=int, help="of each completion; with --latency-ms: one case instead of three")
    parser.add_argument("--latency-ms", type=float, help="of each inference request")
    parser.add_argument("--check", action="store_true", help="end with status 1 when a target is missed")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of a table")
    parser.add_argument("--watch", metavar="SOCKET", help=argparse.SUPPRESS)
    parser.add_argument("--ready-fd", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--lifeline-fd", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.watch:
        from atropos_tui.child import end_with_parent

        end_with_parent(options.lifeline_fd)
        asyncio.run(watch(options.watch, options.ready_fd))
        return 0
    results = []
    with tempfile.TemporaryDirectory() as tokenizer:
        make_tokenizer(tokenizer)
        for case in cases_of(options):
            results.append(run(case, options.upstream_python, tokenizer, options.seconds, options.rounds))
            if not options.json:
                results[-1].show()
    if options.json:
        print(json.dumps([result.as_json() for result in results], indent=2))
    return 1 if options.check and not all(result.met for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
