"""Sampling for many requests: what arrives within a few milliseconds is sampled as one batch, in a thread."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

import numpy as np

from atropos_tui.pocket.characters import Characters
from atropos_tui.pocket.layers import Array
from atropos_tui.pocket.policy import Parameters, Policy
from atropos_tui.pocket.sampling import Sample, SamplingRequest, prompt_logprobs, sample

GATHER_SECONDS = 0.003
LARGEST_BATCH = 256


@dataclass(frozen=True, slots=True)
class Weights:
    """A policy and the number of the trainer's step that made it. Never changed, only replaced as a whole."""

    policy: Policy
    version: int


@dataclass(frozen=True, slots=True)
class _Job:
    request: SamplingRequest
    result: asyncio.Future[tuple[list[Sample], int]]


class Engine:
    """All methods belong to the event loop; only the arithmetic runs in a thread."""

    def __init__(self, policy: Policy, characters: Characters, seed: int) -> None:
        self.characters = characters
        self.weights = Weights(policy, 0)
        self.sequences_sampled = 0
        self.tokens_sampled = 0
        self._random = np.random.default_rng(seed)
        self._jobs: asyncio.Queue[_Job] = asyncio.Queue()
        self._resumed = asyncio.Event()
        self._resumed.set()

    @property
    def reach(self) -> int:
        return self.weights.policy.shape.reach

    @property
    def is_paused(self) -> bool:
        return not self._resumed.is_set()

    @property
    def waiting(self) -> int:
        """Requests that no batch has taken yet."""
        return self._jobs.qsize()

    def pause(self) -> None:
        """Let the batch that runs end, and keep requests waiting until `resume`."""
        self._resumed.clear()

    def resume(self) -> None:
        self._resumed.set()

    def replace_weights(self, parameters: Parameters, version: int) -> None:
        """From the next batch on; the one that runs ends with the weights it began with."""
        self.weights = Weights(Policy(self.weights.policy.shape, parameters), version)

    async def sample(self, request: SamplingRequest) -> tuple[list[Sample], int]:
        """The samples of a request, and the version of the weights that made them all."""
        job = _Job(request, asyncio.get_running_loop().create_future())
        self._jobs.put_nowait(job)
        return await job.result

    async def prompt_logprobs(self, prompt: Sequence[int]) -> Array:
        """Logprobs (T - 1, V) of every token at each place of a prompt but the first."""
        return await asyncio.to_thread(prompt_logprobs, self.weights.policy, prompt, self.characters.turn)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Requests are answered while this context is open."""
        task = asyncio.create_task(self._answer_batches(), name="pocket engine")
        try:
            yield
        finally:
            task.cancel()

    async def _answer_batches(self) -> None:
        while True:
            jobs = await self._next_jobs()
            weights = self.weights
            try:
                answers = await asyncio.to_thread(self._sample, weights.policy, [job.request for job in jobs])
            except Exception as error:  # noqa: BLE001  a batch that fails is its requests' failure, not the server's
                for job in jobs:
                    if not job.result.done():
                        job.result.set_exception(error)
                continue
            for job, samples in zip(jobs, answers, strict=True):
                self.sequences_sampled += len(samples)
                self.tokens_sampled += sum(len(one.tokens) for one in samples)
                if not job.result.done():
                    job.result.set_result((samples, weights.version))

    async def _next_jobs(self) -> list[_Job]:
        jobs = [await self._jobs.get()]
        await asyncio.sleep(GATHER_SECONDS)
        await self._resumed.wait()
        while not self._jobs.empty() and sum(job.request.n for job in jobs) < LARGEST_BATCH:
            jobs.append(self._jobs.get_nowait())
        return jobs

    def _sample(self, policy: Policy, requests: Sequence[SamplingRequest]) -> list[list[Sample]]:
        return sample(policy, requests, self.characters.end, self.characters.turn, self._random)
