"""What the trainer is doing, as the trajectory API tells it: the settings at the start, then the progress."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import TYPE_CHECKING, Any

from atropos_tui.errors import UsageError
from atropos_tui.ledger.events import RunConfigured
from atropos_tui.runtime.backoff import Backoff
from atropos_tui.runtime.failures import describe
from atropos_tui.runtime.masking import shown_url
from atropos_tui.runtime.throttle import TrainerQueue, queue_limit
from atropos_tui.runtime.trajectory_client import TrajectoryApiError, TrajectoryClient, UnknownEnvironment

if TYPE_CHECKING:
    from atropos_tui.runtime.assembly import Runtime

logger = logging.getLogger(__name__)

STATUS_SECONDS = 0.5
STATUS_SECONDS_IF_WANTED = 0.05
UNCHANGED_BEFORE_IDLE = 10
TRAINER_SECONDS = 0.5
ERRORS_BEFORE_REGISTERING = 20


class TrainerWatch:
    """Registers the environment, follows the trainer's status, and registers again when the API has forgotten it."""

    def __init__(self, runtime: Runtime) -> None:
        self.client: TrajectoryClient | None = None
        self._runtime = runtime
        self._env = runtime.env
        self._status: dict[str, Any] = {}
        self._arrived_before_status = 0
        self._unchanged = 0
        self._wanted = asyncio.Event()
        self._registering = asyncio.Lock()
        self._registrations = 0
        self._gone = False

    # -- numbers

    @property
    def step(self) -> int:
        """The trainer's newest step. An environment's `curr_step` follows it only when its checks of a step are done,
        which may send groups themselves."""
        return int(self._status.get("current_step", self._env.curr_step))

    def queue(self) -> TrainerQueue:
        """The newest sizes of the trainer's queue, and how many finished groups they may not include."""
        status = self._status
        return TrainerQueue(
            batch_size=self._env.config.batch_size,
            queue_size=int(status.get("queue_size", 0)),
            self_queue_size=int(status.get("self_queue_size", 0)),
            max_group_size=int(status.get("max_group_size", 1)),
            unallocated_fraction=float(status.get("unallocated_fraction", 1.0)),
            unseen=max(0, self._runtime.delivery.submitted - self._arrived_before_status),
        )

    # -- asking

    async def ask_until_there(self, what: str, ask: Any, *arguments: Any) -> dict[str, Any]:
        """The answer of one request, however long the trajectory API is away. The run says what it waits for.

        Raises UsageError when the request is refused in a way that waiting cannot mend, and the run has never been
        registered. One that was goes on waiting: what it has in flight and in the outbox is worth it, and the server
        that refuses may not be the one that comes back.
        """
        backoff = Backoff(first=0.1, ceiling=2.0)
        while True:
            try:
                answer: dict[str, Any] = await ask(*arguments)
            except TrajectoryApiError as error:
                if error.final and self._env.env_id is None:
                    raise UsageError(
                        f"the trajectory API at {self._address} refuses: {error.fault}",
                        "mend what it names, or set --env.rollout_server_url (with a token: http://any:TOKEN@host)",
                    ) from error
                self._wait_for(f"the trajectory API at {self._address} ({error.fault})")
                logger.info("%s: %s", what, error)
                await asyncio.sleep(backoff.next_wait())
            else:
                return answer

    async def register(self) -> dict[str, Any]:
        """Register until the API agrees; it does not before there is a trainer."""
        env = self._env
        wanted: dict[str, Any] = {
            "max_token_length": env.config.max_token_length,
            "desired_name": self._runtime.desired_name,
            "weight": env.config.inference_weight,
            "min_batch_allocation": env.config.min_batch_allocation,
            "group_size": env.config.group_size,
            # Ours: the same run gets its former number from a trajectory API that still knows it.
            "run_id": self._runtime.run_id,
        }
        if self._runtime.control_url:
            # Ours too, for `/inspect`.
            wanted["control_url"] = self._runtime.control_url
        while True:
            answer = await self.ask_until_there("registration", self._api.register, wanted)
            if answer.get("status") == "success":
                self._wait_for("")
                return answer
            await self._wait_for_trainer(answer["status"])

    async def wandb_project(self) -> dict[str, Any]:
        """Group and project at W&B, as soon as the trainer has told them."""
        while True:
            answer = await self.ask_until_there("W&B project", self._api.wandb_info)
            if answer.get("project") is not None:
                self._wait_for("")
                return answer
            await self._wait_for_trainer("no trainer is registered")

    async def trainer_settings(self) -> dict[str, Any]:
        """Batch size and longest sequence, as soon as the trainer has told them."""
        while True:
            answer = await self.ask_until_there("trainer's settings", self._api.info)
            if self._env.config.batch_size != -1 or answer.get("batch_size", -1) != -1:
                self._wait_for("")
                return answer
            await self._wait_for_trainer("no trainer is registered")

    async def status(self) -> dict[str, Any]:
        """The trainer's status now. Raises TrajectoryApiError."""
        if self._env.env_id is None:
            raise UnknownEnvironment("the environment is not registered")
        submitted, waiting = self._runtime.delivery.submitted, self._runtime.outbox_depth
        status = await self._api.status(self._env.env_id)
        self._unchanged = self._unchanged + 1 if status == self._status else 0
        self._status = status
        self._arrived_before_status = submitted - waiting
        if self._runtime.sender is not None:
            self._runtime.sender.set_trainer_step(int(status["current_step"]))
        return status

    # -- following

    def want_status(self) -> None:
        """Groups are held back by these numbers: ask for newer ones soon, unless they have stood still for a while."""
        if self._unchanged < UNCHANGED_BEFORE_IDLE:
            self._wanted.set()

    async def follow(self) -> None:
        """Keep the status fresh for ever, and do what a new step of the trainer asks for."""
        errors = 0
        while True:
            self._wanted.clear()
            try:
                if self._gone:
                    await self.register_again()
                await self._env.get_status()
                errors = 0
                self._wait_for("")
                self._tell()
                await self._env.env_step_checks()
                self._stop_when_enough()
            except UnknownEnvironment:
                await self.register_again()
            except TrajectoryApiError as error:
                errors += 1
                self._wait_for(f"the trajectory API at {self._address} ({error.fault})")
                if error.gone:
                    self._lose_registration()
                elif error.answered and errors % ERRORS_BEFORE_REGISTERING == 0:
                    # atroposlib's server answers 500 for an environment it has forgotten.
                    await self.register_again()
            except Exception as error:
                logger.error("checks of a step: %s", describe(error), exc_info=error)
            self._runtime.scheduler.wake()
            await self._pause()

    def stop_if_late(self) -> None:
        """End a run that has registered when the trainer had its `total_steps` already, before it makes anything."""
        step, total = self._env.curr_step, self._env.config.total_steps
        if step >= total:
            why = f"the trajectory API at {self._address} is at step {step} already, total_steps is {total}"
            self._runtime.scheduler.stop(f"{why}; raise it, or GET /reset_data there and register the trainer again")

    def _stop_when_enough(self) -> None:
        """The run ends when the trainer has its `total_steps`, or will have more with what this run has queued for it.

        Upstream counts the whole queue. But what others have queued, or an earlier run, may be enough for all steps
        before this run has begun, and while it owes them a share of each batch they are none without it.
        """
        if self._runtime.scheduler.stopping:
            return
        config = self._env.config
        own = min(int(self._status.get("self_queue_size", self.queue().queue_size)), self._arrived_before_status)
        step = self._env.curr_step
        if step < config.total_steps and step + own * config.group_size // config.batch_size <= config.total_steps:
            return
        self._runtime.scheduler.stop(f"the trainer has its {config.total_steps} steps")

    async def _pause(self) -> None:
        await asyncio.sleep(STATUS_SECONDS_IF_WANTED)
        # Not wait_for, which before Python 3.12 may swallow a cancellation.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(STATUS_SECONDS - STATUS_SECONDS_IF_WANTED):
                await self._wanted.wait()

    async def register_again(self) -> None:
        """The API was restarted: its steps and sizes are new, our place in the data is not."""
        known = self._registrations
        async with self._registering:
            if self._registrations != known:
                return
            logger.warning("the trajectory API was restarted; registering again")
            self._runtime.take_registration(await self.register())
            self._registrations += 1
            self._gone = False
            self.tell_configured()

    def _lose_registration(self) -> None:
        """Our number may be another environment's at the server that comes back: send nothing under it."""
        self._gone = True
        if self._runtime.sender is not None:
            self._runtime.sender.set_registration(None)

    # -- telling

    def tell_configured(self) -> None:
        config = self._env.config
        self._runtime.stream.publish(
            RunConfigured,
            api_url=self._address,
            env_id=self._env.env_id,
            starting_step=self._env.curr_step,
            total_steps=config.total_steps,
            batch_size=config.batch_size,
            max_token_len=self._env.max_token_len,
        )

    def _tell(self) -> None:
        queue = self.queue()
        self._runtime.report.trainer(
            step=int(self._status.get("current_step", 0)),
            batch_size=queue.batch_size,
            queue_size=queue.queue_size,
            queue_limit=queue_limit(self._env.config, queue.unallocated_fraction),
            self_queue_size=queue.self_queue_size,
            env_weight=float(self._status.get("env_weight", 1.0)),
            unallocated_fraction=queue.unallocated_fraction,
        )

    async def _wait_for_trainer(self, told: str) -> None:
        self._wait_for(f"the trainer; the trajectory API at {self._address} says: {told}")
        await asyncio.sleep(TRAINER_SECONDS)

    def _wait_for(self, what: str) -> None:
        self._runtime.scheduler.note_waiting(what)

    @property
    def _address(self) -> str:
        """Of the trajectory API, as it may be shown."""
        return shown_url(self._env.config.rollout_server_url)

    @property
    def _api(self) -> TrajectoryClient:
        if self.client is None:
            raise UsageError("the trajectory API is only asked while the environment serves", "await env.env_manager()")
        return self.client
