"""Both halves against the real atroposlib 0.4.0: its trajectory API takes our groups, ours takes its environment's."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

from atropos_tui.monitor.supervisor import ChildProcess
from atropos_tui.pocket.tokenizer import tokenizer_dir
from atropos_tui.shipped import shipped_directory
from tests.wire.trainer_persona import TrainerPersona, assert_trainable

Start = Callable[..., ChildProcess]
StartUpstream = Callable[..., subprocess.Popen[bytes]]


async def test_upstreams_trajectory_api_takes_groups_of_our_runtime(
    start: Start, start_upstream: StartUpstream, free_port: int, tmp_path: Path
) -> None:
    start_upstream("-m", "atroposlib.cli.run_api", "--host", "127.0.0.1", "--port", str(free_port))
    policy = start("atropos_tui.pocket.server", "--port", "0")
    trainer = TrainerPersona(f"http://127.0.0.1:{free_port}", batch_size=32)
    await trainer.register()
    start(
        "atropos_tui.worker", "--run-dir", str(tmp_path), "--", str(shipped_directory("envs") / "reverse.py"),
        "--env.rollout_server_url", f"http://127.0.0.1:{free_port}", "--env.ensure_scores_are_not_same", "false",
        "--openai.base_url", f"{policy.ready['url']}/v1",
    )  # fmt: skip
    for _ in range(3):
        batch = await trainer.batch()
        assert sum(len(group["tokens"]) for group in batch) == 32
        for group in batch:
            assert_trainable(group)
    await trainer.close()


async def test_our_trajectory_api_takes_groups_of_upstreams_environment(
    start: Start, start_upstream: StartUpstream
) -> None:
    api = start("atropos_tui.trajectory_api", "--port", "0", "--no-journal")
    policy = start("atropos_tui.pocket.server", "--port", "0")
    trainer = TrainerPersona(str(api.ready["url"]), batch_size=8)
    await trainer.register()
    start_upstream(
        str(Path(__file__).with_name("upstream_reverse.py")), "serve",
        "--env.rollout_server_url", str(api.ready["url"]), "--env.tokenizer_name", str(tokenizer_dir()),
        "--openai.base_url", f"{policy.ready['url']}/v1", "--openai.model_name", str(tokenizer_dir()),
        "--slurm", "false",
    )  # fmt: skip
    for _ in range(3):
        batch = await trainer.batch()
        assert sum(len(group["tokens"]) for group in batch) == 8
        for group in batch:
            assert_trainable(group)
    await trainer.close()
