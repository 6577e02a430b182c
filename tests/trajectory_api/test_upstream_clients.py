"""The real clients of atroposlib 0.4.0 against our server: its environment, and its `atropos-sft-gen` command."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from atropos_tui.monitor.supervisor import ChildProcess
from atropos_tui.pocket.tokenizer import tokenizer_dir
from tests.trajectory_api.bodies import GROUP_KEYS, mark_of, registration
from tests.trajectory_api.test_batch_delivery import until

Run = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture
def run_upstream(upstream_python: str, tmp_path: Path) -> Iterator[Run]:
    """Runs a program of upstream's environment; what still runs ends with the test."""
    started: list[subprocess.Popen[bytes]] = []

    def run(program: str, *arguments: str) -> subprocess.Popen[bytes]:
        command = [str(Path(upstream_python).with_name(program)), *arguments]
        environment = os.environ | {"HF_HUB_OFFLINE": "1", "WANDB_MODE": "disabled"}
        with (tmp_path / f"{program}.log").open("ab") as log:
            started.append(subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=log, stderr=log))
        return started[-1]

    yield run
    for process in started:
        if process.poll() is None:
            process.kill()
        process.wait()


def environment_flags(url: str, total_steps: int) -> list[str]:
    script = str(Path(__file__).with_name("upstream_sender.py"))
    return [
        script, "serve", "--env.rollout_server_url", url, "--env.tokenizer_name", str(tokenizer_dir()),
        "--env.total_steps", str(total_steps), "--slurm", "false",
    ]  # fmt: skip


def test_upstreams_environment_serves_our_server_to_its_end(
    start_server: Callable[..., ChildProcess], run_upstream: Run
) -> None:
    url = str(start_server().ready["url"])
    with httpx.Client(base_url=url, trust_env=False, timeout=60) as trainer:
        trainer.post("/register", json=registration(batch_size=8, max_token_len=64))
        trainer.get("/batch")
        environment = run_upstream("python", *environment_flags(url, total_steps=5))
        marks: list[int] = []
        for step in range(1, 6):
            batch = until(lambda: trainer.get("/batch").json()["batch"], seconds=90)
            assert sum(len(received["tokens"]) for received in batch) == 8
            for received in batch:
                assert set(received) == GROUP_KEYS
                assert received["env_id"] == 0
                assert received["inference_logprobs"][0][3] == 1.0 > received["inference_logprobs"][0][4]
                assert received["messages"][0][1] == {"role": "assistant", "content": "yes"}
            marks += map(mark_of, batch)
            assert trainer.get("/status").json()["current_step"] == step
        assert len(marks) == len(set(marks)) == 10
        (row,) = trainer.get("/inspect/environments").json()["environments"]
        assert (row["wandb_name"], row["group_size"], row["delivered_groups"]) == ("sender_0", 4, 10)
        assert environment.wait(timeout=120) == 0


def test_upstreams_sft_command_gets_its_file_from_our_server(
    start_server: Callable[..., ChildProcess], run_upstream: Run, tmp_path: Path
) -> None:
    url = str(start_server().ready["url"])
    grabbing = run_upstream(
        "atropos-sft-gen", "sft.jsonl", "--api-url", url, "--group-size", "4", "--tasks-per-step", "2",
        "--tokenizer", str(tokenizer_dir()), "--save-messages", "--num-seqs-to-save", "12", "--max-token-len", "64",
    )  # fmt: skip
    with httpx.Client(base_url=url, timeout=60, trust_env=False) as looking:
        until(lambda: looking.get("/info").json()["batch_size"] == 8, seconds=90)
    run_upstream("python", *environment_flags(url, total_steps=1000))
    assert grabbing.wait(timeout=120) == 0
    lines = [json.loads(line) for line in (tmp_path / "sft.jsonl").read_text().splitlines()]
    assert len(lines) >= 12
    assert {line["messages"][1]["content"] for line in lines} == {"yes"}
    assert all(line["score"] > 0 for line in lines)
