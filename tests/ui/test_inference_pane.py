"""The servers of a run, of which some come later: those that its environment makes itself."""

from __future__ import annotations

from dataclasses import replace

from atropos_tui.monitor.snapshot import InferenceSection, RunSnapshot
from atropos_tui.ui.panes.inference import InferencePane
from tests.ui.conftest import MakeApp, until
from tests.ui.recorded import RecordedSource, running
from tests.ui.screen_steps import SIZE, known, painted


def with_judge(healthy: bool | None) -> RunSnapshot:
    """A run in full swing whose only server of its own is well; a judge has joined it."""
    base = running()
    own = base.inference.servers[0]
    judge = replace(
        own, server=1, url="http://judge:9005/v1", server_type="openai", model_name="judge", healthy=healthy,
        detail="" if healthy is None else "refuses connections", auxiliary=True,
    )  # fmt: skip
    return replace(base, seq=base.seq + 1, inference=InferenceSection((own, judge)), versions={})


async def test_a_server_that_joins_late_has_a_row_of_its_own_that_says_whose_it_is(make_app: MakeApp) -> None:
    alone = replace(running(), inference=InferenceSection(running().inference.servers[:1]))
    source = RecordedSource(alone)
    async with make_app(source=source).run_test(size=SIZE) as pilot:
        await known(pilot)
        await pilot.press("5", "z")
        pane = pilot.app.screen.query_one(InferencePane)
        await until(pilot, lambda: "1 of 1 server healthy" in painted(pane))
        await pilot.press("j")  # there is no second row yet
        source.play(with_judge(None))
        await until(pilot, lambda: "http://judge:9005/v1" in painted(pane))
        assert "the environment's own" not in painted(pane), "the cursor is still on the first"
        await pilot.press("j")
        await until(pilot, lambda: "openai · http://judge:9005/v1 · the environment's own" in painted(pane))
        source.play(replace(with_judge(False), seq=6_000))
        await until(pilot, lambda: "refuses connections" in painted(pane))
        assert "1 of 2 servers healthy" in painted(pane)
