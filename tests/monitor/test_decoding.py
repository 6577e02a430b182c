"""JSON becomes our dataclasses again, and what does not fit is refused."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from typing import Any, get_args, get_type_hints

import pytest

from atropos_tui.ledger.outcomes import Outcome
from atropos_tui.monitor.decoding import decoded
from atropos_tui.monitor.group_detail import GroupDetail, GroupPage
from atropos_tui.monitor.snapshot import RunSnapshot
from atropos_tui.monitor.wire import to_json
from tests.ui.recorded import group_detail, running


@dataclass(frozen=True, slots=True)
class Inner:
    at: float
    words: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Outer:
    name: str
    number: int = 0
    maybe: float | None = None
    flag: bool | None = None
    inner: Inner = field(default_factory=lambda: Inner(0.0))
    counts: dict[Outcome, dict[str, int]] = field(default_factory=dict)
    anything: dict[str, object] = field(default_factory=dict)


@pytest.mark.parametrize(
    "value",
    [
        Outer("a"),
        Outer("b", 3, 0.5, True, Inner(1.5, ("x", "y")), {Outcome.SKIPPED: {"empty": 2}}, {"deep": [{"list": None}]}),
        Outer("c", maybe=math.inf, inner=Inner(-math.inf)),
    ],
)
def test_what_was_written_reads_back(value: Outer) -> None:
    assert decoded(Outer, json.loads(to_json(value))) == value


def test_a_whole_snapshot_and_a_whole_group_read_back() -> None:
    snapshot = running()
    assert decoded(RunSnapshot, json.loads(to_json(snapshot))) == snapshot
    detail = group_detail(snapshot.skipped.recent[0])
    assert decoded(GroupDetail, json.loads(to_json(detail))) == detail


def test_nan_reads_back() -> None:
    assert math.isnan(decoded(Inner, json.loads(to_json(Inner(math.nan)))).at)


def test_missing_fields_have_defaults_and_unknown_ones_are_left_out() -> None:
    assert decoded(Outer, {"name": "a", "of a newer version": 1}) == Outer("a")


@pytest.mark.parametrize(
    "wrong",
    [
        None, [], 3, "text", {}, {"name": 1}, {"name": "a", "number": 1.5}, {"name": "a", "number": True},
        {"name": "a", "maybe": "much"}, {"name": "a", "inner": {"at": 1, "words": "abc"}}, {"name": "a", "flag": 1},
        {"name": "a", "counts": {"no outcome": {}}}, {"name": "a", "counts": 5}, {"name": "a", "inner": None},
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(wrong: Any) -> None:
    with pytest.raises(ValueError):
        decoded(Outer, wrong)


@pytest.mark.parametrize("kind", [RunSnapshot, GroupDetail, GroupPage])
def test_every_type_that_travels_can_be_decoded(kind: type[Any]) -> None:
    """A field of a type that the decoder does not know would only be noticed when it comes."""

    def visit(of: Any) -> None:
        for argument in get_args(of):
            visit(argument)
        if is_dataclass(of):
            assert isinstance(of, type)
            hints = get_type_hints(of)
            values = {name.name: None for name in fields(of) if name.name in hints}
            with pytest.raises(ValueError):
                decoded(of, values)
            for hint in hints.values():
                visit(hint)

    visit(kind)
    assert asdict(running())["seq"]
