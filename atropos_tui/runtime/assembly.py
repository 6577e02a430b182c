"""The parts of a run, put together around one environment."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx

from atropos_tui.inference.run_servers import RunServers
from atropos_tui.ledger import EventStream
from atropos_tui.runtime.author_calls import AuthorCalls
from atropos_tui.runtime.author_threads import AuthorThreads
from atropos_tui.runtime.control import RunControl
from atropos_tui.runtime.delivery import Delivery
from atropos_tui.runtime.evaluation import Evaluations
from atropos_tui.runtime.flight import GroupNumbers
from atropos_tui.runtime.rollout import RolloutRunner
from atropos_tui.runtime.rollout_table import RolloutTable
from atropos_tui.runtime.run_report import RunReport
from atropos_tui.runtime.scheduling import Scheduler
from atropos_tui.runtime.step_checks import StepChecks
from atropos_tui.runtime.trainer_watch import TrainerWatch
from atropos_tui.runtime.wandb_run import WandbRun

if TYPE_CHECKING:
    from atropos_tui.runtime.base_env import BaseEnv
    from atropos_tui.runtime.sender import Sender

DELIVERY_SECONDS = 10.0


class Runtime:
    """Holds the parts, which find each other here. `sender` is there while the environment serves."""

    def __init__(self, env: BaseEnv) -> None:
        self.env = env
        self.stream = EventStream()
        self.run_id = uuid.uuid4().hex
        # Where the run can be watched, if anybody lets it be.
        self.control_url = ""
        self.outbox_path: Path | None = None
        self.highest_group_before = 0
        # The wire to the trajectory API; None is the network.
        self.transport: httpx.AsyncBaseTransport | None = None
        self.sender: Sender | None = None
        self.report = RunReport(self.stream)
        self.servers = RunServers(self.stream)
        self.calls = AuthorCalls(self.servers)
        self.threads = AuthorThreads()
        self.numbers = GroupNumbers()
        self.wandb = WandbRun()
        self.table = RolloutTable(env)
        self.rollouts = RolloutRunner(self)
        self.delivery = Delivery(self)
        self.evaluations = Evaluations(self)
        self.step_checks = StepChecks(self)
        self.trainer = TrainerWatch(self)
        self.scheduler = Scheduler(self)
        self.control = RunControl(self)

    def attach(
        self,
        stream: EventStream,
        outbox_path: Path | None,
        run_id: str,
        highest_group_before: int = 0,
        control_url: str = "",
    ) -> None:
        """Before the run begins: who watches, where finished groups are kept, and which numbers groups had before."""
        self.stream = self.servers.stream = stream
        self.report = RunReport(stream)
        self.outbox_path = outbox_path
        self.highest_group_before = highest_group_before
        self.run_id = run_id or self.run_id
        self.control_url = control_url

    @property
    def outbox_depth(self) -> int:
        return self.sender.depth if self.sender is not None else 0

    @property
    def desired_name(self) -> str:
        """What the trajectory API and W&B call the environment."""
        return self.env.config.wandb_name or self.env.name or type(self.env).__name__

    def take_registration(self, answer: dict[str, Any]) -> None:
        """The number and the name that the trajectory API gave, and where its trainer keeps checkpoints."""
        env = self.env
        env.env_id = int(answer["env_id"])
        env.wandb_prepend = answer["wandb_name"]
        env.checkpoint_dir = answer["checkpoint_dir"]
        env.checkpoint_interval = answer["checkpoint_interval"]
        if self.sender is not None:
            self.sender.set_registration(env.env_id)

    async def close(self, wandb_seconds: float) -> None:
        """Let go of files, connections and threads. Said twice, nothing happens."""
        await self.delivery.finish(DELIVERY_SECONDS)
        await self.wandb.finish(wandb_seconds)
        await self.env.server.close()
        await self.servers.close()
        self.delivery.close()
        if self.env.jsonl_writer is not None:
            self.env.jsonl_writer.close()
