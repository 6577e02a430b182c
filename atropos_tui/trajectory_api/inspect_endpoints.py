"""What the paths for operators do: they look and take nothing."""

from __future__ import annotations

from pydantic import BaseModel, Field

from atropos_tui.trajectory_api.endpoints import valid
from atropos_tui.trajectory_api.explanations import why
from atropos_tui.trajectory_api.http import Answer, Request, json_answer
from atropos_tui.trajectory_api.inspection import (
    Inspection,
    inspect,
    view_batches,
    view_buffers,
    view_environments,
    view_groups,
    view_queue,
)
from atropos_tui.trajectory_api.journal import Journal
from atropos_tui.trajectory_api.metrics import MEDIA_TYPE, metrics_text
from atropos_tui.trajectory_api.run import GROUPS_REMEMBERED, TrainingRun


class GroupsQuery(BaseModel):
    limit: int = Field(50, ge=1, le=GROUPS_REMEMBERED)


class InspectEndpoints:
    """The handlers; each takes a request and gives its answer."""

    def __init__(self, run: TrainingRun, journal: Journal | None) -> None:
        self._run = run
        self._journal = journal

    async def everything(self, _: Request) -> Answer:
        return json_answer(self._inspection())

    async def environments(self, _: Request) -> Answer:
        return json_answer(view_environments(self._run))

    async def queue(self, _: Request) -> Answer:
        return json_answer(view_queue(self._run.queue))

    async def batches(self, _: Request) -> Answer:
        return json_answer(view_batches(self._run))

    async def buffers(self, _: Request) -> Answer:
        return json_answer(view_buffers(self._run))

    async def groups(self, request: Request) -> Answer:
        query = valid(lambda: GroupsQuery.model_validate(request.query_values))
        return json_answer(view_groups(self._run, query.limit))

    async def why(self, _: Request) -> Answer:
        return json_answer(why(self._run))

    async def metrics(self, _: Request) -> Answer:
        return Answer(metrics_text(self._inspection(), self._run.counters).encode(), media_type=MEDIA_TYPE)

    def _inspection(self) -> Inspection:
        if self._journal is None:
            return inspect(self._run, None, "")
        return inspect(self._run, str(self._journal.path), self._journal.trouble)
