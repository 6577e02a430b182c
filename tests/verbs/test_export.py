"""`export`: the record as files that other programs read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from atropos_tui.cli import main
from atropos_tui.monitor.recorded.scored_groups import read_group
from tests.run_file.recorded_run import RecordedRun, rollouts


@pytest.fixture
def run_file(tmp_path: Path) -> Path:
    run = RecordedRun(tmp_path / "run.db")
    run.delivered(score=0.5, text="good", tokens=6)
    run.skipped(score=-3.0, text="bad")
    run.failed()
    run.close()
    return run.path


def export(capsys: pytest.CaptureFixture[str], *argv: object) -> list[dict[str, Any]]:
    assert main(["export", *map(str, argv)]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_jsonl_reads_back_as_the_same_groups(run_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (written,) = export(capsys, run_file, "--format", "jsonl", "--outcome", "delivered")
    again = read_group(json.dumps(written).encode(), 1).rollouts
    for read, was in zip(again, rollouts(0.5, text="good", tokens=6), strict=True):
        assert (read.score, list(read.tokens), list(read.masks)) == (was.score, list(was.tokens), list(was.masks))
        assert (list(read.logprobs), list(read.messages)) == (list(was.logprobs), list(was.messages))


@pytest.mark.parametrize(
    ("filters", "groups"),
    [
        ((), 2), (("--outcome", "skipped"), 1), (("--search", "good"), 1), (("--score-from", "0"), 1),
        (("--score-to", "-5"), 0), (("--step-from", "3", "--step-to", "3"), 2), (("--step-to", "2"), 0),
        (("--reason", "identical_scores"), 1),
    ],
)  # fmt: skip
def test_filters_choose_groups(
    run_file: Path, filters: tuple[str, ...], groups: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert len(export(capsys, run_file, "--format", "jsonl", *filters)) == groups


def test_sft_takes_the_best_sequences_above_zero(run_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = export(capsys, run_file, "--format", "sft", "--most-per-group", "1")
    assert [(row["score"], row["messages"][1]["content"]) for row in rows] == [(1.5, "good 1")]
    every = export(capsys, run_file, "--format", "sft", "--allow-negative-scores")
    assert [row["score"] for row in every] == [1.5, 0.5, -2.0, -3.0]


def test_dpo_pairs_a_good_sequence_with_a_worse_one(run_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (pair,) = export(capsys, run_file, "--format", "dpo")
    assert (pair["score"], pair["pos"][1]["content"], pair["neg"][1]["content"]) == (1.5, "good 1", "good 0")
    assert export(capsys, run_file, "--format", "dpo", "--score-margin", "1.5") == []


def test_html_is_one_page(run_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.html"
    assert main(["export", str(run_file), "--format", "html", "-o", str(page)]) == 0
    assert "good 1" in page.read_text()
    assert main(["export", str(run_file), "--format", "html", "-o", str(page)]) == 2
    assert "there already" in capsys.readouterr().err


def test_sequences_without_messages_want_a_tokenizer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = tmp_path / "groups.jsonl"
    lines.write_text(json.dumps({"tokens": [[65, 66], [65, 67]], "masks": [[65, 66]] * 2, "scores": [1.0, 0.0]}) + "\n")
    assert main(["export", str(lines), "--format", "sft"]) == 2
    assert "--tokenizer" in capsys.readouterr().err
    tokenizer = tmp_path / "tokenizer"
    from tests.inference.small_tokenizer import small_tokenizer

    small_tokenizer().save_pretrained(tokenizer)
    (row,) = export(capsys, lines, "--format", "sft", "--tokenizer", tokenizer)
    text = small_tokenizer()
    assert row == {"prefix": text.decode([65]), "completion": text.decode([66]), "score": 1.0}


def test_what_is_no_record_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", str(tmp_path / "nothing"), "--format", "jsonl"]) == 2
    assert "nothing" in capsys.readouterr().err
