"""`export`: the record as files that other programs read."""

from __future__ import annotations

import errno
import io
import json
import os
import re
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

from atropos_tui.cli import main
from atropos_tui.monitor.notes import Notes
from atropos_tui.monitor.notes_file import notes_beside
from atropos_tui.monitor.recorded.scored_groups import read_group
from atropos_tui.verbs import export as export_verb
from atropos_tui.verbs.export import FORMATS
from atropos_tui.verbs.parquet import parquet_schema
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


def exported_groups(kind: str, path: Path) -> int:
    """How many groups of the run an export has. SFT and DPO data have one of each here."""
    if kind == "html":
        return len(re.findall(r'id="group-\d+-item-0"', path.read_text()))
    if kind == "parquet":
        return len(set(pyarrow.parquet.read_table(path)["group_id"].to_pylist()))
    return len(path.read_text().splitlines())


def test_the_filter_of_the_screen_chooses_groups_and_knows_notes(
    run_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    notes = Notes(notes_beside(run_file))
    notes.bookmark(2, True)
    for terms, scores in (
        ("score<0", [[-3.0, -2.0]]), ("-score<0 outcome:delivered", [[0.5, 1.5]]), ("bookmarked", [[-3.0, -2.0]]),
        ('"good 1"', [[0.5, 1.5]]), ("note:nothing", []),
    ):  # fmt: skip
        assert [group["scores"] for group in export(capsys, run_file, "--format", "jsonl", "--filter", terms)] == scores
    assert main(["export", str(run_file), "--format", "jsonl", "--filter", "scroe<1"]) == 2
    assert "there is no field 'scroe'" in capsys.readouterr().err


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize(
    ("filters", "groups"),
    [
        ((), 2), (("--outcome", "skipped"), 1), (("--search", "good"), 1), (("--score-from", "0"), 1),
        (("--score-to", "-5"), 0), (("--step-from", "3", "--step-to", "3"), 2), (("--step-to", "2"), 0),
        (("--reason", "identical_scores"), 1),
    ],
)  # fmt: skip
def test_filters_choose_groups_in_every_format(
    run_file: Path, tmp_path: Path, kind: str, filters: tuple[str, ...], groups: int
) -> None:
    out = tmp_path / "out"
    one_each = ("--most-per-group", "1", "--allow-negative-scores")
    assert main(["export", str(run_file), "--format", kind, "-o", str(out), *one_each, *filters]) == 0
    assert exported_groups(kind, out) == groups


def test_parquet_has_a_row_for_each_rollout_as_it_was(run_file: Path, tmp_path: Path) -> None:
    out = tmp_path / "groups.parquet"
    assert main(["export", str(run_file), "--format", "parquet", "-o", str(out)]) == 0
    table = pyarrow.parquet.read_table(out)
    good, better, *skipped = table.to_pylist()
    assert table.schema.equals(parquet_schema())
    assert [row["outcome"] for row in skipped] == ["skipped", "skipped"]
    for number, (row, was) in enumerate(zip((good, better), rollouts(0.5, text="good", tokens=6), strict=True)):
        assert (row["group_id"], row["rollout"], row["score"], row["step"]) == (1, number, was.score, 3)
        assert (row["tokens"], row["masks"], row["logprobs"]) == (list(was.tokens), list(was.masks), list(was.logprobs))
        assert json.loads(row["messages"]) == list(was.messages)
        assert (row["parts"], row["finish_reason"], row["advantages"]) == ([("format", 0.5)], "stop", [])
        assert abs(row["ended_at"].timestamp() - time.time()) < 60


def test_parquet_without_pyarrow_names_the_extra_and_leaves_no_file(
    run_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    out = tmp_path / "groups.parquet"
    assert main(["export", str(run_file), "--format", "parquet", "-o", str(out)]) == 2
    assert "atropos-tui[parquet]" in capsys.readouterr().err
    assert not out.exists()


def test_parquet_reads_a_jsonl_too_and_goes_to_standard_output(tmp_path: Path, capsysbinary: Any) -> None:
    lines = tmp_path / "groups.jsonl"
    lines.write_text(json.dumps({"tokens": [[65], [66]], "masks": [[65], [66]], "scores": [1.0, 0.0]}) + "\n")
    assert main(["export", str(lines), "--format", "parquet"]) == 0
    table = pyarrow.parquet.read_table(io.BytesIO(capsysbinary.readouterr().out))
    assert table["tokens"].to_pylist() == [[65], [66]]


def test_a_file_that_could_not_be_written_whole_is_taken_away(
    run_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*arguments: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(export_verb, "_write_lines", full)
    assert main(["export", str(run_file), "--format", "jsonl", "-o", str(tmp_path / "out")]) == 1
    assert "No space left" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


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
