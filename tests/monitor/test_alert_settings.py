"""The table `[alerts]` of the user's configuration: what it may hold, and what a wrong one says."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from atropos_tui.errors import UsageError
from atropos_tui.ledger.outcomes import RunState
from atropos_tui.monitor.alert_settings import AlertSettings, load_alert_settings
from atropos_tui.monitor.alerts import Evidence, Finding, findings
from atropos_tui.monitor.snapshot import (
    InferenceSection,
    LedgerSection,
    PartTakeover,
    RecordSection,
    ScoresSection,
    SendsSection,
    SkippedSection,
    TokenLooks,
    TrendPoint,
)

QUIET = Evidence(
    settings=AlertSettings(), state=RunState.RUNNING, now=1_000.0, quiet_for=0.0, headline="", loop_held_by="",
    throttle="", group_size=8, ledger=LedgerSection(), scores=ScoresSection(), skipped=SkippedSection(),
    sends=SendsSection(), inference=InferenceSection(), record=RecordSection(),
)  # fmt: skip


def found(evidence: Evidence) -> dict[str, Finding]:
    return {finding.name: finding for finding in findings(evidence)}


def written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


class TestFile:
    def test_without_a_file_the_defaults_hold(self, tmp_path: Path) -> None:
        assert load_alert_settings(tmp_path / "config.toml") == AlertSettings()

    def test_thresholds_bell_and_command_are_read(self, tmp_path: Path) -> None:
        path = written(
            tmp_path / "config.toml",
            "[alerts]\nno_progress = 30\nzero_advantage_groups = 5\nbell = true\ncommand = \"notify-send 'a b' c\"\n",
        )
        settings = load_alert_settings(path)
        assert (settings.no_progress, settings.zero_advantage_groups, settings.bell) == (30.0, 5, True)
        assert settings.command == ("notify-send", "a b", "c")

    def test_a_command_may_be_a_list_of_words(self, tmp_path: Path) -> None:
        path = written(tmp_path / "config.toml", '[alerts]\ncommand = ["mail", "-s", "$(whoami); rm"]\n')
        assert load_alert_settings(path).command == ("mail", "-s", "$(whoami); rm")

    @pytest.mark.parametrize(
        ("text", "complaint"),
        [
            ("[alerts]\nno_progres = 3\n", "there is no `alerts.no_progres`"),
            ("[alerts]\nno_progress = 0\n", "`alerts.no_progress`: Input should be greater than 0"),
            ("[alerts]\nlost_share = 2\n", "`alerts.lost_share`: Input should be less than or equal to 1"),
            ('[alerts]\ncommand = "mail \'x"\n', "No closing quotation"),
            ("[allerts]\n", "there is no table or key `allerts`"),
            ("[alerts\n", "cannot read"),
        ],
    )
    def test_a_wrong_file_is_named_with_the_key_and_the_fault(self, tmp_path: Path, text: str, complaint: str) -> None:
        with pytest.raises(UsageError) as error:
            load_alert_settings(written(tmp_path / "config.toml", text))
        assert complaint in str(error.value)
        assert "config.toml" in str(error.value)


class TestThresholds:
    def test_a_quiet_run_has_no_alert(self) -> None:
        assert found(QUIET) == {}

    def test_no_progress_counts_from_the_threshold_on(self) -> None:
        quick = replace(QUIET, settings=AlertSettings(no_progress=10), quiet_for=11.0, headline="waiting for the judge")
        assert found(quick)["no_progress"].text == "no progress for over 10 s: waiting for the judge"
        assert "no_progress" not in found(replace(quick, settings=AlertSettings(no_progress=12)))

    def test_zero_advantage_in_a_row(self) -> None:
        evidence = replace(QUIET, skipped=SkippedSection(in_a_row=5))
        assert "zero_advantage" not in found(evidence)
        assert "zero_advantage" in found(replace(evidence, settings=AlertSettings(zero_advantage_groups=5)))

    def test_a_full_queue_of_a_trainer_that_takes_nothing(self) -> None:
        sends = SendsSection(
            api_url="http://api", trainer_queue=36, trainer_queue_limit=36, trainer_step_at=870.0, batch_size=64
        )
        alert = found(replace(QUIET, sends=sends))["queue_full"]
        assert "no step for over 120 s" in alert.text
        assert "http://api/inspect/why" in alert.text
        assert not alert.severe
        assert "queue_full" not in found(replace(QUIET, sends=replace(sends, trainer_step_at=890.0)))
        assert "queue_full" not in found(replace(QUIET, sends=replace(sends, trainer_queue=35)))

    def test_a_full_queue_that_can_never_be_a_batch_says_what_to_change(self) -> None:
        sends = SendsSection(trainer_queue=4, trainer_queue_limit=4, trainer_step_at=1.0, batch_size=64)
        alert = found(replace(QUIET, sends=sends))["queue_full"]
        assert "32 sequences are no batch of 64, so /batch stays null: raise max_batches_offpolicy" in alert.text
        assert alert.severe

    def test_replies_that_grow_are_a_hint_and_replies_that_shrink_only_where_the_score_does_not_rise(self) -> None:
        def scores(lengths: tuple[float, ...], means: tuple[float, ...]) -> Evidence:
            points = tuple(
                TrendPoint(at=0.0, groups=64, mean=mean, low=mean, high=mean, completion_tokens=length)
                for length, mean in zip(lengths, means, strict=True)
            )
            return replace(QUIET, scores=ScoresSection(groups=192, trend=points))

        grown = found(scores((100.0, 200.0, 450.0), (0.2, 0.3, 0.4)))["length_drift"]
        assert "4.5 times as long as at the beginning (100 → 450 tokens)" in grown.text
        assert "0.20 to 0.40" in grown.text
        assert "length_drift" in found(scores((100.0, 50.0, 20.0), (0.2, 0.2, 0.1)))
        assert "length_drift" not in found(scores((100.0, 50.0, 20.0), (0.2, 0.5, 0.9)))
        assert "length_drift" not in found(scores((100.0, 110.0, 130.0), (0.2, 0.3, 0.4)))

    def test_looks_of_tokens_name_a_group_that_shows_it(self) -> None:
        looks = TokenLooks(
            rollouts=40, repetitive=8, repetitive_group=71, end_token=7, doubled_end=3, doubled_end_group=66,
            garbled=5, garbled_group=68,
        )  # fmt: skip
        alerts = found(replace(QUIET, scores=ScoresSection(looks=looks)))
        assert alerts["repetition"].group_id == 71
        assert "8 of the last 40 rollouts looked at" in alerts["repetition"].text
        assert alerts["doubled_end"].group_id == 66
        assert alerts["garbled"].group_id == 68
        assert "5 of the last 40 rollouts looked at are noise" in alerts["garbled"].text
        assert "end-of-turn token (7) stands twice in a row" in alerts["doubled_end"].text
        few = replace(QUIET, scores=ScoresSection(looks=replace(looks, rollouts=10)))
        assert found(few) == {}

    def test_a_part_that_takes_over_is_named_with_the_part_that_fell(self) -> None:
        takeover = PartTakeover("length", 0.97, 0.31, "letters", 0.2, 0.7, group_id=71)
        alert = found(replace(QUIET, scores=ScoresSection(takeover=takeover)))["part_share"]
        assert "`length` alone decides 97% of the score (31% at the beginning)" in alert.text
        assert "`letters` fell from 0.70 to 0.20" in alert.text
        assert alert.group_id == 71
        less = replace(QUIET, scores=ScoresSection(takeover=replace(takeover, share=0.8)))
        assert found(less) == {}
        wanted = replace(less, settings=AlertSettings(part_share=0.7))
        assert list(found(wanted)) == ["part_share"]

    def test_a_run_that_ended_has_no_alert(self) -> None:
        over = replace(QUIET, state=RunState.FINISHED, quiet_for=9_999.0, skipped=SkippedSection(in_a_row=99))
        assert found(over) == {}
