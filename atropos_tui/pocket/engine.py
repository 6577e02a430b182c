"""Sampling for many callers at once: requests that come close together share one batch, in a thread of its own."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from atropos_tui.pocket.layers import Array, log_softmax
from atropos_tui.pocket.policy import Parameters, Policy
from atropos_tui.pocket.positions import anchor_of, positions_of
from atropos_tui.pocket.sampling import Sample, SamplingRequest, sample

GATHER_SECONDS = 0.003
LARGEST_BATCH = 256


@dataclass(frozen=True, slots=True)
class Sampled:
    """The samples of one request, and the version of the weights that made them all."""

    samples: list[Sample]
    weight_version: int


@dataclass(slots=True)
class EngineCounts:
    """Totals since the start; `busy_seconds` is time spent in sampling."""

    requests: int = 0
    sequences: int = 0
    tokens: int = 0
    batches: int = 0
    busy_seconds: float = 0.0


class Engine:
    """Owns the policy's weights. All work on them is done in one thread, so that no batch sees two versions."""

    def __init__(self, policy: Policy, *, end_token: int, turn_token: int, seed: int) -> None:
        self.weight_version = 0
        self.counts = EngineCounts()
        self._policy = policy
        self._end_token = end_token
        self._turn_token = turn_token
        self._random = np.random.default_rng(seed)
        self._waiting: asyncio.Queue[tuple[SamplingRequest, asyncio.Future[Sampled]]] = asyncio.Queue()
        self._running = asyncio.Event()
        self._running.set()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="policy")

    @property
    def paused(self) -> bool:
        return not self._running.is_set()

    def pause(self) -> None:
        """Start no further batch; requests wait."""
        self._running.clear()

    def resume(self) -> None:
        self._running.set()

    async def sample(self, request: SamplingRequest) -> Sampled:
        """`request.n` samples of one prompt."""
        answer: asyncio.Future[Sampled] = asyncio.get_running_loop().create_future()
        self._waiting.put_nowait((request, answer))
        return await answer

    async def replace_weights(self, parameters: Mapping[str, Array], version: int) -> None:
        """Takes effect between two batches. Raises ValueError when names or shapes are not the policy's."""
        mine = self._policy.parameters
        if set(parameters) != set(mine):
            raise ValueError(f"the weights lack or add {sorted(set(parameters) ^ set(mine))[:3]}")
        for name, value in parameters.items():
            if value.shape != mine[name].shape:
                raise ValueError(f"{name} has shape {value.shape}, the policy's is {mine[name].shape}")
        new: Parameters = {name: value.astype(mine[name].dtype) for name, value in parameters.items()}
        await asyncio.get_running_loop().run_in_executor(self._thread, self._swap, new, version)

    async def logprobs(self, tokens: list[int], top: int) -> list[dict[int, float] | None]:
        """The likeliest `top` tokens and the actual one at each position but the first, with their logprobs."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._score, tokens, top)

    async def run(self) -> None:
        """Serve what waits, for ever."""
        loop = asyncio.get_running_loop()
        while True:
            batch = [await self._waiting.get()]
            await self._running.wait()
            await asyncio.sleep(GATHER_SECONDS)
            while not self._waiting.empty() and sum(request.n for request, _ in batch) < LARGEST_BATCH:
                batch.append(self._waiting.get_nowait())
            wanted = [(request, answer) for request, answer in batch if not answer.done()]
            if wanted:
                sampled = await loop.run_in_executor(self._thread, self._sample, [request for request, _ in wanted])
                for (_, answer), samples in zip(wanted, sampled, strict=True):
                    if not answer.done():
                        answer.set_result(samples)

    def _sample(self, requests: list[SamplingRequest]) -> list[Sampled]:
        started = time.perf_counter()
        version = self.weight_version
        samples = sample(self._policy, requests, self._end_token, self._turn_token, self._random)
        self.counts.requests += len(requests)
        self.counts.sequences += sum(map(len, samples))
        self.counts.tokens += sum(len(one.tokens) for group in samples for one in group)
        self.counts.batches += 1
        self.counts.busy_seconds += time.perf_counter() - started
        return [Sampled(group, version) for group in samples]

    def _swap(self, parameters: Parameters, version: int) -> None:
        self._policy.parameters = parameters
        self.weight_version = version

    def _score(self, tokens: list[int], top: int) -> list[dict[int, float] | None]:
        sequence = np.array([tokens])
        anchor = anchor_of(tokens, self._turn_token)
        positions = positions_of(len(tokens), anchor, self._policy.shape.reach)[None]
        logprobs = log_softmax(self._policy.forward(sequence, positions)[0])[0]
        scored: list[dict[int, float] | None] = [None]
        for place, token in enumerate(tokens[1:]):
            likeliest = np.argsort(-logprobs[place])[:top].tolist()
            scored.append({int(one): float(logprobs[place, one]) for one in dict.fromkeys([token, *likeliest])})
        return scored
