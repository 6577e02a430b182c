"""One client at work: `python runs.py CLIENT CHECKOUT URL`, in an interpreter that has what the client imports.

Knows nothing of atropos_tui: to the client there is only a server.
"""

from __future__ import annotations

import importlib.util
import os
import random
import sys
import tempfile
import types
from pathlib import Path
from typing import Any

import requests

BATCH, GROUP, TOKENS = 8, 4, 40
PATIENCE = 60.0


def example_trainer(checkout: Path, url: str) -> str:
    """Its check, its registration, and its loop that drains all batches there are."""
    api, data = _example_trainer(checkout)
    assert api.check_atropos_api(url, timeout=5)
    api.register_trainer(_settings(url))
    send_groups(url, 4)
    batches = data.get_data(GROUP, TOKENS, url)[0]
    step = requests.get(f"{url}/status", timeout=10).json()["current_step"]
    assert len(batches) == step == 2, (len(batches), step)
    return f"{len(batches)} batches, step {step}"


def axolotl(checkout: Path, url: str) -> str:
    """Its loader, which asks for batches from its first moment, when no trainer has registered yet."""
    plugin = _load("plugin_datasets", next(checkout.rglob("plugin_atropos/datasets.py")))
    host, port = url.rsplit(":", 1)
    settings = types.SimpleNamespace(
        atropos_server_host=host, atropos_server_port=port, trl=types.SimpleNamespace(num_generations=GROUP),
        sequence_len=64, world_size=1, micro_batch_size=GROUP, gradient_accumulation_steps=1,
    )  # fmt: skip
    rows = plugin.get_dataset(settings, pad_token_id=0)
    register(url)
    send_groups(url, 2)
    row = next(iter(rows))
    return f"a row with {', '.join(sorted(row))}"


def verl(checkout: Path, url: str) -> str:
    """Its registration, its polling, and the batch it gets."""
    from recipe.atropos.atropos_client import AtroposClient

    client = AtroposClient(url)
    client.register_trainer(BATCH, 65, 10, tempfile.gettempdir())
    assert client.get_batch() is None
    send_groups(url, 2)
    batch = client.poll_batch(timeout=PATIENCE, poll_interval=0.1)
    sequences = sum(len(group["tokens"]) for group in batch)
    assert sequences == BATCH
    return f"{len(batch)} groups, {sequences} sequences"


def register(url: str) -> None:
    body = {
        "wandb_group": "g", "wandb_project": "p", "batch_size": BATCH, "max_token_len": 64, "checkpoint_dir": "x",
        "save_checkpoint_interval": 0, "starting_step": 0, "num_steps": 10,
    }  # fmt: skip
    requests.post(f"{url}/register", json=body, timeout=10).raise_for_status()


def send_groups(url: str, groups: int) -> None:
    for number in range(1, groups + 1):
        requests.post(f"{url}/scored_data", json=_group(number), timeout=10).raise_for_status()


def _group(number: int) -> dict[str, Any]:
    chance = random.Random(number)
    prompt = [number] * 5
    answers = [[chance.randrange(100) for _ in range(TOKENS - len(prompt))] for _ in range(GROUP)]
    return {
        "tokens": [prompt + answer for answer in answers],
        "masks": [[-100] * len(prompt) + answer for answer in answers],
        "scores": [chance.random() for _ in answers],
        "inference_logprobs": [[1.0] * len(prompt) + [-chance.random() for _ in answer] for answer in answers],
    }


def _example_trainer(checkout: Path) -> tuple[Any, Any]:
    """Its two modules that speak to the API. Its package would bring the management of vLLM along."""
    folder = next(path.parent for path in checkout.rglob("example_trainer/api.py"))
    package = types.ModuleType("example_trainer")
    package.__path__ = [str(folder)]
    sys.modules["example_trainer"] = package
    return _load("example_trainer.api", folder / "api.py"), _load("example_trainer.data", folder / "data.py")


def _settings(url: str) -> Any:
    return types.SimpleNamespace(
        atropos_url=url, training_steps=10, checkpoint_interval=0, wandb_group=None, wandb_project=None,
        batch_size=BATCH, gradient_accumulation_steps=1, seq_len=64, save_path="x",
    )  # fmt: skip


def _load(name: str, path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    run = {"example_trainer": example_trainer, "axolotl": axolotl, "verl": verl}[sys.argv[1]]
    print(run(Path(sys.argv[2]), sys.argv[3]), flush=True)
    os._exit(0)  # the loader's thread polls for ever
