"""Groups through a trajectory API and a worker that are killed over and over: each arrives once, in order.

    python benchmarks/survival.py [--groups 10000] [--kills 5] [--seed 0]

Real processes throughout: `python -m atropos_tui.trajectory_api --journal`, a worker that serves `numbered.py`, and a
trainer that takes batches all the while. Both servers are ended with SIGKILL and started again on the same files,
sometimes one, sometimes both at once. What entered the outbox is known from the outbox itself: a trigger in its file
notes each group in the transaction that writes it.

A trainer on this wire doesn't confirm what it received. So a trajectory API that is killed after the last byte of a
batch has left, and before that is in its journal, hands out the same batch again when it is back; a whole batch that
repeats the one before is counted apart and told.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import signal
import socket
import sqlite3
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from atropos_tui.ledger import Outcome
from atropos_tui.ledger.outcomes import RunState
from atropos_tui.monitor.client import RunClient
from atropos_tui.monitor.snapshot import LedgerSection
from atropos_tui.monitor.supervisor import ChildProcess, start_process
from atropos_tui.runtime.outbox import Outbox
from benchmarks.minimal_trainer import MinimalTrainer
from benchmarks.numbered import GROUP_SIZE, numbered_group

BATCH_GROUPS = 4
PATIENCE = 120.0


@dataclass
class Account:
    """What happened. `entered` and `received` are group numbers in order; `environments` is how many the trajectory
    API takes the worker and its successors for; `faults` says what should not have been."""

    entered: list[int] = field(default_factory=list)
    received: list[int] = field(default_factory=list)
    repeated_batches: int = 0
    environments: int = 0
    api_kills: int = 0
    worker_kills: int = 0
    seconds: float = 0.0
    faults: list[str] = field(default_factory=list)

    def judge(self) -> None:
        """Hold what was received against what entered the outbox."""
        missing, strangers = set(self.entered) - set(self.received), set(self.received) - set(self.entered)
        if missing:
            self.faults.append(f"{len(missing)} groups were lost: {sorted(missing)[:10]}")
        if strangers:
            self.faults.append(f"{len(strangers)} groups were received that never entered: {sorted(strangers)[:10]}")
        if len(self.received) != len(set(self.received)):
            self.faults.append(f"{len(self.received) - len(set(self.received))} groups were received again")
        if not self.faults and self.received != self.entered:
            self.faults.append("the order changed on the way")
        if self.environments != 1:
            self.faults.append(f"the trajectory API takes the restarted worker for {self.environments} environments")
        if self.repeated_batches > self.api_kills:
            self.faults.append(f"{self.repeated_batches} batches were repeated with {self.api_kills} kills")

    def tell(self) -> str:
        told = [
            f"{len(self.entered):,} groups entered the outbox, {len(self.received):,} were received",
            f"trajectory API killed {self.api_kills} times, worker {self.worker_kills} times, {self.seconds:.0f} s",
            f"batches handed out twice because the API died before it noted them: {self.repeated_batches}",
            *(f"FAULT: {fault}" for fault in self.faults),
        ]
        return "\n".join([*told, "every group exactly once, in order" if not self.faults else "NOT survived"])


class NotingTrainer(MinimalTrainer):
    """Notes the numbers of the groups in `received`, and compares each group with what its number says it must be.

    A whole batch that repeats the one before is left out, and counted in `repeats`.
    """

    def __init__(self, url: str) -> None:
        super().__init__(url, batch_size=BATCH_GROUPS * GROUP_SIZE, max_token_len=1000)
        self.received: list[int] = []
        self.repeats = 0
        self.faults: list[str] = []
        self._newest: list[int] = []

    def take(self, batch: list[dict[str, Any]]) -> None:
        super().take(batch)
        numbers = [int(group["tokens"][0][0]) for group in batch]
        for number, group in zip(numbers, batch, strict=True):
            wanted = numbered_group(number)
            if any(group[name] != wanted[name] for name in ("tokens", "masks", "scores")):
                self.faults.append(f"group {number} is not what was sent")
        if numbers == self._newest:
            self.repeats += 1
        else:
            self.received += numbers
        self._newest = numbers


class Ordeal:
    """The processes, their files, and the killing."""

    def __init__(self, directory: Path, rng: random.Random) -> None:
        self.account = Account()
        self._directory = directory
        self._rng = rng
        self._run_dir = directory / "run"
        self._outbox = self._run_dir / "outbox.db"
        self._holding = _hold_port()
        self._port = self._holding.getsockname()[1]
        self._url = f"http://127.0.0.1:{self._port}"
        self._trainer = NotingTrainer(self._url)
        self._api: ChildProcess | None = None
        self._worker: ChildProcess | None = None

    async def run(self, groups: int, kills: int) -> Account:
        """At least so many groups through so many kills of each server."""
        began = time.monotonic()
        _note_what_enters(self._outbox)
        make_tokenizer(self._directory / "tokenizer")
        try:
            await self._start_api()
            self._trainer.register()
            self._trainer.start()
            await self._start_worker()
            for kill in range(kills):
                await self._received((kill + 1) * groups // (kills + 1))
                await asyncio.sleep(self._rng.random() / 10)
                await self._kill_both(overlapping=bool(kill % 2))
            await self._received(groups)
            await self._end()
        finally:
            self._trainer.stop()
            for child in (self._worker, self._api):
                if child is not None:
                    child.terminate(grace=5.0)
        self._settle(time.monotonic() - began)
        return self.account

    async def _kill_both(self, overlapping: bool) -> None:
        """Kill the API and the worker: one after the other, or the worker while finished groups cannot leave."""
        self._kill_api()
        if overlapping:
            await self._until(self._some_wait, "groups in the outbox")
            await self._kill_worker()
            await self._start_worker()
            await self._start_api()
            return
        await self._start_api()
        await self._received(len(self._trainer.received) + 1)
        await self._kill_worker()
        await self._start_worker()

    async def _end(self) -> None:
        """Let everything arrive: what is in flight, what is in the outbox, and what is less than a batch."""
        assert self._worker is not None
        async with RunClient(self._worker.ready["socket"]) as client:

            async def it_runs() -> bool:
                return (await client.snapshot()).run.state is RunState.RUNNING

            await self._until(it_runs, "the worker to run")
            await client.pause()
            await self._until(self._nothing_is_open, "an empty outbox")
            self._check_ledger((await client.snapshot()).ledger)
            await client.stop()
        await asyncio.to_thread(self._worker.wait, PATIENCE)
        self.account.environments = await self._count_environments()
        self._trainer.register(batch_size=GROUP_SIZE)
        await self._received(len(_entered(self._outbox)))

    def _settle(self, seconds: float) -> None:
        account = self.account
        account.seconds = seconds
        account.entered = _entered(self._outbox)
        account.received, account.repeated_batches = self._trainer.received, self._trainer.repeats
        account.faults += self._trainer.faults
        account.judge()

    # -- processes

    async def _start_api(self) -> None:
        arguments = ["--port", str(self._port), "--journal", str(self._directory / "api.journal")]
        self._api = await self._start([sys.executable, "-m", "atropos_tui.trajectory_api"], arguments)

    async def _start_worker(self) -> None:
        environment = Path(__file__).with_name("numbered.py")
        flags = [
            "--env.rollout_server_url", self._url, "--env.tokenizer_name", str(self._directory / "tokenizer"),
        ]  # fmt: skip
        command = [sys.executable, "-m", "atropos_tui.worker", "--run-dir", str(self._run_dir)]
        self._worker = await self._start(command, ["--", str(environment), *flags])

    async def _start(self, command: list[str], arguments: list[str]) -> ChildProcess:
        log_path = self._directory / "output.log"
        return await asyncio.to_thread(start_process, command, arguments, log_path=log_path)

    def _kill_api(self) -> None:
        assert self._api is not None
        _kill(self._api)
        self.account.api_kills += 1

    async def _kill_worker(self) -> None:
        assert self._worker is not None
        self._check_ledger(await self._ledger())
        _kill(self._worker)
        self.account.worker_kills += 1

    # -- looking

    async def _ledger(self) -> LedgerSection:
        assert self._worker is not None
        async with RunClient(self._worker.ready["socket"]) as client:
            return (await client.snapshot()).ledger

    def _check_ledger(self, ledger: LedgerSection) -> None:
        if not ledger.balanced:
            self.account.faults.append(f"the ledger is off: {ledger}")

    async def _count_environments(self) -> int:
        async with httpx.AsyncClient(base_url=self._url, timeout=PATIENCE) as client:
            return len((await client.get("/inspect/environments")).json()["environments"])

    async def _some_wait(self) -> bool:
        return (await self._ledger()).by_outcome.get(Outcome.IN_OUTBOX, 0) >= 2 * BATCH_GROUPS

    async def _nothing_is_open(self) -> bool:
        counts = (await self._ledger()).by_outcome
        return not counts.get(Outcome.IN_FLIGHT, 0) and not counts.get(Outcome.IN_OUTBOX, 0)

    async def _received(self, groups: int) -> None:
        async def enough() -> bool:
            return len(self._trainer.received) >= groups

        await self._until(enough, f"{groups} groups to arrive")

    async def _until(self, condition: Callable[[], Awaitable[bool]], what: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while not await condition():
            if self._trainer.error is not None:
                raise RuntimeError("the trainer broke") from self._trainer.error
            if time.monotonic() > deadline:
                raise TimeoutError(f"waited {PATIENCE:g} s for {what}; see {self._directory / 'output.log'}")
            await asyncio.sleep(0.01)


def make_tokenizer(directory: Path) -> None:
    """The smallest that loads; nothing here is decoded."""
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast

    core = Tokenizer(models.WordLevel({"[UNK]": 0}, unk_token="[UNK]"))
    PreTrainedTokenizerFast(tokenizer_object=core, unk_token="[UNK]").save_pretrained(directory)


def _note_what_enters(outbox: Path) -> None:
    Outbox(outbox).close()
    with sqlite3.connect(outbox) as database:
        database.execute("CREATE TABLE entered (place INTEGER PRIMARY KEY AUTOINCREMENT, group_id INTEGER NOT NULL)")
        database.execute(
            "CREATE TRIGGER note_entry AFTER INSERT ON groups "
            "BEGIN INSERT INTO entered (group_id) VALUES (new.group_id); END"
        )
    database.close()


def _entered(outbox: Path) -> list[int]:
    database = sqlite3.connect(outbox)
    numbers = [number for (number,) in database.execute("SELECT group_id FROM entered ORDER BY place")]
    database.close()
    return numbers


def _kill(child: ChildProcess) -> None:
    os.kill(child.pid, signal.SIGKILL)
    child.wait(30)


def _hold_port() -> socket.socket:
    """Bound and not listening: nobody but the server that is told its number gets it, also while that is dead."""
    holding = socket.socket()
    holding.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    holding.bind(("127.0.0.1", 0))
    return holding


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--groups", type=int, default=10_000, help="(default: %(default)s)")
    parser.add_argument("--kills", type=int, default=5, help="of each server (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of the moments of the kills")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        ordeal = Ordeal(Path(directory), random.Random(options.seed))
        account = asyncio.run(ordeal.run(options.groups, options.kills))
    print(account.tell())
    return 1 if account.faults else 0


if __name__ == "__main__":
    sys.exit(main())
