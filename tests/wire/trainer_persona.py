"""A trainer as seen on the wire: registers, then polls `/batch`, as every trainer of the Atropos ecosystem does."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx

GROUP_KEYS = {
    "tokens", "masks", "scores", "advantages", "ref_logprobs", "messages", "generation_params", "inference_logprobs",
    "overrides", "group_overrides", "images", "env_id", "distill_token_ids", "distill_logprobs",
}  # fmt: skip


class TrainerPersona:
    """Speaks only what `example_trainer` and its kin speak: `GET /info`, `POST /register`, `GET /batch`."""

    def __init__(self, api_url: str, *, batch_size: int, max_token_len: int = 64) -> None:
        self._http = httpx.AsyncClient(base_url=api_url, timeout=60.0, trust_env=False)
        self._batch_size = batch_size
        self._max_token_len = max_token_len

    async def close(self) -> None:
        await self._http.aclose()

    async def register(self) -> None:
        """Wait until the API answers, as trainers do, then register."""
        for _ in range(200):
            try:
                (await self._http.get("/info")).raise_for_status()
                break
            except httpx.TransportError:
                await asyncio.sleep(0.1)
        answer = await self._http.post(
            "/register",
            json={
                "wandb_group": "test", "wandb_project": "test", "batch_size": self._batch_size,
                "max_token_len": self._max_token_len, "checkpoint_dir": "checkpoints", "save_checkpoint_interval": 0,
                "starting_step": 0, "num_steps": 1000,
            },
        )  # fmt: skip
        answer.raise_for_status()
        assert "uuid" in answer.json()

    async def batch(self, *, within: float = 60.0) -> list[dict[str, Any]]:
        """The next batch; polls like a trainer until there is one. Raises TimeoutError."""
        async with asyncio.timeout(within):
            while True:
                answer = await self._http.get("/batch")
                answer.raise_for_status()
                batch: list[dict[str, Any]] | None = answer.json()["batch"]
                if batch:
                    return batch
                await asyncio.sleep(0.1)


def assert_trainable(group: dict[str, Any]) -> None:
    """What trainers rely on: all keys, equal lengths, sampled ids where trained, and 1.0 exactly where masked."""
    assert set(group) >= GROUP_KEYS
    assert len(group["tokens"]) == len(group["masks"]) == len(group["scores"]) == len(group["inference_logprobs"])
    for tokens, masks, logprobs in zip(group["tokens"], group["masks"], group["inference_logprobs"], strict=True):
        assert len(tokens) == len(masks) == len(logprobs)
        assert any(mask != -100 for mask in masks)
        for token, mask, logprob in zip(tokens, masks, logprobs, strict=True):
            assert mask in (-100, token)
            assert (logprob == 1.0) == (mask == -100)
            assert mask == -100 or logprob <= 0
