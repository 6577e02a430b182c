"""Evaluations of many metrics: all are there to be read, beginning with the one in the chart."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from textual.pilot import Pilot

from atropos_tui.monitor.snapshot import EvalRow, EvalsSection
from atropos_tui.ui.evals import EvalsPane
from tests.ui.conftest import MakeApp, until
from tests.ui.recorded import NOW, running
from tests.ui.screen_steps import SIZE, known, painted

METRICS = {f"eval/benchmark_{number:02d}/accuracy": number / 100 for number in range(20)}
EVALUATED = replace(running(), evals=EvalsSection(rows=(EvalRow(step=40, at=NOW - 5, seconds=3.0, metrics=METRICS),)))


async def opened(pilot: Pilot[Any]) -> EvalsPane:
    app = await known(pilot)
    await pilot.press("e")
    await until(pilot, lambda: app.screen.query(EvalsPane))
    return app.screen.query_one(EvalsPane)


async def test_where_there_is_room_all_metrics_of_an_evaluation_are_told(make_app: MakeApp) -> None:
    async with make_app(EVALUATED).run_test(size=SIZE) as pilot:
        picture = painted(await opened(pilot))
        details = picture[picture.rindex("eval/benchmark_00/accuracy ") :]
        for name, value in METRICS.items():
            assert name in picture
            assert f"{value:.6g}" in details


async def test_where_there_is_not_the_metric_in_the_chart_comes_first_and_the_rest_is_counted(
    make_app: MakeApp,
) -> None:
    async with make_app(EVALUATED).run_test(size=(80, 24)) as pilot:
        pane = await opened(pilot)
        assert "more metrics" in painted(pane)
        assert "benchmark_17/accuracy" not in painted(pane)
        await pilot.press("left", "left", "left")
        assert pane.metric == "eval/benchmark_17/accuracy"
        chart, head, first = (line for line in painted(pane).splitlines() if "benchmark_17" in line)
        assert "18 of 20 metrics" in chart
        assert head.index(" benchmark_17/") < head.index(" benchmark_18/")  # without what all names begin with
        assert "0.17" in first


@pytest.mark.parametrize("size", [(40, 10), (60, 15), (300, 80)])
async def test_at_any_size_it_can_be_drawn(make_app: MakeApp, size: tuple[int, int]) -> None:
    async with make_app(EVALUATED).run_test(size=size) as pilot:
        assert "Evaluations" in painted(await opened(pilot))
