"""The way of scored groups from a request's bytes into the run: inflate, check, recognise repeats, note, admit.

Idempotency: a request may carry the header `Idempotency-Key`, any text of up to 255 characters that names what it
brings; ours is `<run id>:<group id>`. A key that was accepted before is answered as it was then and brings nothing
new, so that a sender whose answer got lost may simply send again. The key is of the request; a list that was taken in
part is completed when it comes again. Keys of requests that were refused are not kept. The newest 100,000 keys are
remembered, over restarts too if there is a journal, until the data is reset. A sender of keys is taken to know that
404 means to register its environment again; it gets that for an unknown `env_id`.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any, TypeVar

from atropos_tui.trajectory_api.deflating import Deflater, deflate
from atropos_tui.trajectory_api.group import Place, QueuedGroup, ScoredGroup
from atropos_tui.trajectory_api.http import Body, Request
from atropos_tui.trajectory_api.inflating import inflate
from atropos_tui.trajectory_api.journal import KEYS_REMEMBERED, Journal
from atropos_tui.trajectory_api.request_errors import RequestError
from atropos_tui.trajectory_api.reusing import GzippedJson, split_body
from atropos_tui.trajectory_api.run import TrainingRun
from atropos_tui.trajectory_api.wire import Accepted

T = TypeVar("T")

LONGEST_KEY = 255
# Bodies up to these sizes are checked at once, in about a millisecond; larger ones in a thread.
INLINE_BYTES = 256 * 1024
INLINE_QUICK_BYTES = 1024 * 1024
# Gzip bodies up to this size probably inflate to no more than that.
INLINE_GZIP_BYTES = INLINE_BYTES // 4


@dataclass(frozen=True, slots=True)
class GroupReader:
    """Makes groups of a body: `thoroughly` of any, `quickly` of the plainest, where it gives None for all others."""

    thoroughly: Callable[[Body], list[ScoredGroup]]
    quickly: Callable[[Body], list[ScoredGroup] | None] = lambda _: None

    def read(self, body: Body) -> list[ScoredGroup]:
        return self.quickly(body) or self.thoroughly(body)


class Intake:
    """Accepts groups, each idempotency key once."""

    def __init__(self, run: TrainingRun, journal: Journal | None, workers: Executor, body_limit: int) -> None:
        self._run = run
        self._journal = journal
        self._workers = workers
        self._body_limit = body_limit
        self._deflater = Deflater()
        self._answers: OrderedDict[str, Accepted] = OrderedDict()
        # Keys whose requests are on their way; a second request with the same key waits for the first one's end.
        self._busy: dict[str, asyncio.Event] = {}

    async def receive(self, request: Request, reader: GroupReader) -> list[Accepted]:
        """Admit the groups of a request; one answer each.

        Groups whose key is known get the answer that they got before. Raises RequestError when one is refused (then
        none is admitted) or when the journal cannot be written.
        """
        self._deflater.request_begins()
        try:
            key = _key_of(request)
            scored = await self._parsed(request.body, request.is_gzipped, reader)
            return await (self._accept_once(scored, key) if key else self._accept(scored, [""] * len(scored)))
        finally:
            self._deflater.request_ends()

    def remember(self, keys: Iterable[tuple[str, Accepted]]) -> None:
        """Take over keys that an earlier process accepted."""
        self._answers.update(keys)

    def forget(self) -> None:
        """Forget all keys: after a reset nothing was accepted yet."""
        self._answers.clear()

    def close(self) -> None:
        self._deflater.close()

    async def _parsed(self, body: Body, gzipped: bool, reader: GroupReader) -> list[ScoredGroup]:
        """The groups of the body, inflated if need be, off the event loop if that takes long. Raises RequestError."""
        if gzipped:
            return await self._parsed_gzip(body, reader)
        quickly_read = reader.quickly(body) if len(body) <= INLINE_QUICK_BYTES else None
        if quickly_read is not None:
            return quickly_read
        if len(body) <= INLINE_BYTES:
            return reader.thoroughly(body)
        return await self._off_loop(reader.thoroughly if len(body) <= INLINE_QUICK_BYTES else reader.read, body)

    async def _parsed_gzip(self, body: Body, reader: GroupReader) -> list[ScoredGroup]:
        if len(body) <= INLINE_GZIP_BYTES:
            try:
                return _parsed_gzip(body, min(INLINE_BYTES, self._body_limit), reader.read)
            except RequestError as error:
                if error.status != 413:
                    raise
        return await self._off_loop(_parsed_gzip, body, self._body_limit, reader.read)

    async def _accept_once(self, scored: Sequence[ScoredGroup], key: str) -> list[Accepted]:
        while key in self._busy:
            await self._busy[key].wait()
        self._busy[key] = asyncio.Event()
        try:
            return await self._accept(scored, [f"{key}#{index}" for index in range(len(scored))])
        finally:
            self._busy.pop(key).set()

    async def _accept(self, scored: Sequence[ScoredGroup], keys: Sequence[str]) -> list[Accepted]:
        new = [index for index, key in enumerate(keys) if not key or key not in self._answers]
        for index in new:
            self._run.check(scored[index].env_id, scored[index].sequences, sender_registers=bool(keys[index]))
        groups = [self._queued(scored[index], keys[index]) for index in new]
        if self._journal and groups:
            resets = self._run.resets
            await self._journal.keep(groups)
            if self._run.resets != resets:
                raise RequestError(503, "the data was reset meanwhile", "send again")
        fresh = dict(zip(new, map(self._admit, groups), strict=True))
        self._run.counters.repeated_groups += len(keys) - len(new)
        answers = [fresh[index] if index in fresh else self._answers[key] for index, key in enumerate(keys)]
        for group in groups:
            await self._store_small(group)
        return answers

    def _queued(self, scored: ScoredGroup, key: str) -> QueuedGroup:
        group = QueuedGroup(
            number=self._run.next_number(),
            env_id=scored.env_id,
            sequences=scored.sequences,
            tokens=scored.tokens,
            scores=scored.scores,
            received_at=time.time(),
            stored=scored.json,
            key=key,
        )
        if self._run.will_buffer(group):
            group.place = Place.BUFFERED
        return group

    def _admit(self, group: QueuedGroup) -> Accepted:
        answer = self._run.admit(group)
        if group.key:
            self._answers[group.key] = answer
            while len(self._answers) > KEYS_REMEMBERED:
                self._answers.popitem(last=False)
        return answer

    async def _store_small(self, group: QueuedGroup) -> None:
        if group.stored.deflated or (self._journal is not None and self._journal.leaves_texts_in_file):
            return
        if self._deflater.is_full:
            await self._off_loop(deflate, group)
        else:
            self._deflater.submit(group)

    async def _off_loop(self, work: Callable[..., T], *arguments: Any) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._workers, work, *arguments)


def _parsed_gzip(body: Body, limit: int, parse: Callable[[Body], list[ScoredGroup]]) -> list[ScoredGroup]:
    split = split_body(body, limit)
    if split is not None:
        return [split.keep_blocks(group) for group in parse(split.text)]
    text = inflate(body, limit)
    return [GzippedJson.as_it_came(body, text, group) for group in parse(text)]


def _key_of(request: Request) -> str:
    key = request.headers.get(b"idempotency-key", b"").decode("latin-1")
    if len(key) > LONGEST_KEY:
        raise RequestError(400, f"the Idempotency-Key has {len(key)} characters", f"use at most {LONGEST_KEY}")
    return key
