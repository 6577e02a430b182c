"""What `process` of the real atroposlib 0.4.0 writes opens here, group by group, and is exported."""

from __future__ import annotations

import json
import os
import subprocess
from contextlib import aclosing
from pathlib import Path

import pytest
from pyarrow.parquet import read_table

from atropos_tui.cli import main
from atropos_tui.ledger.outcomes import RunState
from atropos_tui.monitor.recorded.jsonl_run import JsonlRun
from atropos_tui.monitor.recorded.timeline import Stride
from atropos_tui.pocket.tokenizer import tokenizer_dir
from atropos_tui.verbs.decoding import LazyTokenizer


@pytest.fixture(params=[True, False], ids=["with messages", "without messages"])
def processed(request: pytest.FixtureRequest, upstream_python: str, tmp_path: Path) -> Path:
    """Three groups; the second has messages of its own, the others decoded texts or none."""
    path = tmp_path / "groups.jsonl"
    command = [
        upstream_python, str(Path(__file__).with_name("upstream_process.py")), "process",
        "--env.data_path_to_save_groups", str(path), "--env.include_messages", str(request.param).lower(),
        "--env.tokenizer_name", str(tokenizer_dir()), "--env.use_wandb", "false", "--slurm", "false",
    ]  # fmt: skip
    environment = os.environ | {"HF_HUB_OFFLINE": "1", "WANDB_MODE": "disabled"}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120)
    assert path.exists(), done.stdout + done.stderr
    return path


async def test_each_group_can_be_read(processed: Path) -> None:
    run = JsonlRun(processed, LazyTokenizer(lambda: str(tokenizer_dir())))
    async with aclosing(run.stream()) as snapshots:  # type: ignore[type-var]
        snapshot = await anext(snapshots)
    assert (snapshot.scores.groups, snapshot.ledger.balanced, snapshot.logs.rows) == (3, True, ())
    page = await run.groups()
    assert [row.scores for row in page.rows] == [(3.0, -3.0), (2.0, -2.0), (1.0, -1.0)]
    for row in page.rows:
        for rollout in (await run.group(row.group_id)).rollouts:
            assert "count" in "".join(rollout.pieces)
            assert len(rollout.pieces) == len(rollout.tokens) == len(rollout.masks)
    own = (await run.group(2)).rollouts[1].messages
    assert own[1] == {"role": "assistant", "content": "-2"}


async def test_it_is_stepped_through_group_by_group(processed: Path) -> None:
    run = JsonlRun(processed, LazyTokenizer(lambda: ""))
    async with aclosing(run.stream(hz=30.0)) as snapshots:  # type: ignore[type-var]
        assert (await anext(snapshots)).run.state is RunState.FINISHED
        for groups in (2, 1, 0):
            await run.move(Stride.EVENT, -1)
            snapshot = await anext(snapshots)
            assert (snapshot.sends.delivered, snapshot.run.state) == (groups, RunState.RUNNING)
            assert [row.group_id for row in (await run.groups()).rows] == list(range(groups, 0, -1))
        await run.move(Stride.EVENT, 1)
        assert (await anext(snapshots)).scores.high == 1.0


def test_it_is_exported(processed: Path, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    def export(kind: str) -> list[dict[str, object]]:
        assert main(["export", str(processed), "--format", kind, "--tokenizer", str(tokenizer_dir())]) == 0
        return [json.loads(line) for line in capsysbinary.readouterr().out.splitlines()]

    written = [json.loads(line) for line in processed.read_text().splitlines()]
    for ours, theirs in zip(export("jsonl"), written, strict=True):
        assert [ours[key] for key in ("tokens", "masks", "scores")] == [
            theirs[key] for key in ("tokens", "masks", "scores")
        ]
    assert [row["score"] for row in export("sft")] == [1.0, 2.0, 3.0]
    assert [row["score"] for row in export("dpo")] == [1.0, 2.0, 3.0]
    table = tmp_path / "groups.parquet"
    assert main(["export", str(processed), "--format", "parquet", "-o", str(table)]) == 0
    assert read_table(table)["tokens"].to_pylist() == [tokens for group in written for tokens in group["tokens"]]
    page = tmp_path / "page.html"
    assert main(["export", str(processed), "--format", "html", "-o", str(page)]) == 0
    assert "-2" in page.read_text()
