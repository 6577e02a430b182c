"""`BaseEnv`: what an environment is. Authors subclass it; the parts beside this file do the work."""

from __future__ import annotations

import asyncio
import functools
import logging
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from atropos_tui.errors import UsageError
from atropos_tui.inference import APIServer, APIServerConfig, ReasoningConfig, ServerBaseline, ServerManager
from atropos_tui.ledger import EventStream
from atropos_tui.ledger.events import CheckpointSaved, MetricsLogged
from atropos_tui.runtime.assembly import Runtime
from atropos_tui.runtime.checkpoints import CheckpointFiles
from atropos_tui.runtime.collecting import collect_group
from atropos_tui.runtime.config import BaseEnvConfig, default_config
from atropos_tui.runtime.control import RunControl
from atropos_tui.runtime.data_cursor import USUAL_NAMES
from atropos_tui.runtime.entry_point import run_command_line
from atropos_tui.runtime.evaluating import evaluate
from atropos_tui.runtime.evaluation_files import evaluation_record, metrics_table, write_evaluation
from atropos_tui.runtime.jsonl import JsonlWriter
from atropos_tui.runtime.masking import plain_values
from atropos_tui.runtime.metrics import completion_length_metrics, finite_numbers, server_metrics, spread
from atropos_tui.runtime.processing import process
from atropos_tui.runtime.resuming import PLACE, place_of, restore_place
from atropos_tui.runtime.serving import serve
from atropos_tui.runtime.throttle import derived_batch_size
from atropos_tui.runtime.tokenizer import load_tokenizer, token_pieces
from atropos_tui.runtime.types import Groups, Item, ScoredDataGroup, ScoredDataItem
from atropos_tui.runtime.wandb_run import run_name

logger = logging.getLogger(__name__)

T = TypeVar("T")

TIMINGS_KEPT = 10_000


class BaseEnv(ABC):
    """An environment: it takes items, makes rollouts of them, scores these and hands the groups to the trainer.

    A subclass has `get_next_item`, `evaluate`, usually `setup`, and one of `collect_trajectory` (one rollout) and
    `collect_trajectories` (a whole group). Names and meaning are those of atroposlib 0.4.0.
    """

    name: ClassVar[str | None] = None
    env_config_cls: ClassVar[type[BaseEnvConfig]] = BaseEnvConfig
    server_cls: ClassVar[type[APIServer]] = APIServer  # type: ignore[type-abstract]
    # Attributes that say where `get_next_item` is in the data, which checkpoints keep: indexes and other plain values,
    # `random.Random` and numpy's generators, and datasets or loaders with `state_dict`. An author whose names are
    # others writes `cursor_attributes = ("row", "rng")`.
    cursor_attributes: ClassVar[tuple[str, ...]] = USUAL_NAMES

    def __init__(
        self,
        config: BaseEnvConfig,
        server_configs: ServerBaseline | Sequence[APIServerConfig],
        slurm: bool = False,
        testing: bool = False,
    ) -> None:
        """Raises UsageError when the tokenizer cannot be loaded."""
        self.config = config
        self.server = ServerManager(
            server_configs,
            server_class=self.server_cls,
            slurm=slurm,
            testing=testing,
            reasoning_config=ReasoningConfig.from_env_config(config),
        )
        self.server_configs = [server.config for server in self.server.servers]
        self.tokenizer: Any = load_tokenizer(config.tokenizer_name)
        self._set_public_state()
        self.jsonl_writer: JsonlWriter | None = None
        if config.data_path_to_save_groups is not None:
            self.jsonl_writer = JsonlWriter(config.data_path_to_save_groups)
            config.data_path_to_save_groups = str(self.jsonl_writer.path)
        self._runtime = Runtime(self)
        self.control: RunControl = self._runtime.control

    def _set_public_state(self) -> None:
        """What environments read and replace."""
        self.env_id: int | None = None
        self.curr_step = 0
        self.max_token_len = -1
        self.max_num_workers = self._configured_workers()
        self.status_dict: dict[str, Any] = {}
        self.workers: set[asyncio.Task[Any]] = set()
        self.eval_workers: set[asyncio.Task[Any]] = set()
        self.eval_runner: asyncio.Task[Any] | None = None
        self.backlog: list[Item] = []
        self.running_items: dict[str, dict[str, Any]] = {}
        self.last_completed_item: Item = None
        self.items_sent_this_step = 0
        self.rollouts_for_wandb: list[Any] = []
        self.completion_lengths: list[int] = []
        self.task_duration: deque[float] = deque(maxlen=TIMINGS_KEPT)
        self.succeeded_task_duration: deque[float] = deque(maxlen=TIMINGS_KEPT)
        self.failed_task_duration: deque[float] = deque(maxlen=TIMINGS_KEPT)
        self.task_successful: deque[int] = deque(maxlen=TIMINGS_KEPT)
        self.mainloop_timings: deque[float] = deque(maxlen=TIMINGS_KEPT)
        self.workers_added_list: deque[int] = deque(maxlen=TIMINGS_KEPT)
        self.wandb_project: str | None = None
        self.wandb_group: str | None = None
        self.wandb_prepend: str | None = None
        self.checkpoint_dir = ""
        self.checkpoint_interval = -1
        self.process_mode = False
        self.n_groups_to_process = self.config.total_steps
        self.group_size_to_process = self.config.group_size

    # -- what an environment is made of

    @classmethod
    def config_init(cls) -> tuple[BaseEnvConfig, ServerBaseline | Sequence[APIServerConfig]]:
        """The default configuration of the environment and of its inference servers."""
        return default_config(cls), ServerBaseline()

    async def setup(self) -> None:  # noqa: B027  not every environment needs one
        """Called once at the start: load data, prepare what `get_next_item` needs."""

    @abstractmethod
    async def get_next_item(self) -> Item:
        """The next item to make rollouts of; None if there is none now."""

    @abstractmethod
    async def evaluate(self, *args: Any, **kwargs: Any) -> Any:
        """Called whenever the trainer crosses a multiple of `steps_per_eval`. A returned mapping of metrics is kept."""

    async def collect_trajectory(self, item: Item) -> tuple[ScoredDataItem | Any | None, list[Item]]:
        """One rollout of an item with its score, and further items to do next."""
        raise NotImplementedError(f"{type(self).__name__} has neither collect_trajectory nor collect_trajectories")

    async def collect_trajectories(self, item: Item) -> tuple[Groups | Any, list[Item]]:
        """A group of rollouts of an item, or several, and further items to do next. None: the item is given up."""
        return await collect_group(self.collect_trajectory, item, self.config.group_size)

    async def postprocess_histories(self, trajectories: Any) -> Groups:
        """Make scored groups of what `collect_trajectories` returned. None: the item is given up."""
        groups: Groups = trajectories
        return groups

    async def cleanup(self) -> None:  # noqa: B027  not every environment needs one
        """Called after every attempt at an item, whatever became of it."""

    async def in_thread(self, function: Callable[..., T], *arguments: Any, **keywords: Any) -> T:
        """The result of a function that blocks, such as a reward: `score = await self.in_thread(run_tests, answer)`.

        The event loop goes on meanwhile, and many such calls run beside each other. Pure Python computes no faster for
        it; when the rollout times out, the function runs on unseen.
        """
        return await self._runtime.threads.run(function, *arguments, **keywords)

    # -- serving

    async def env_manager(self) -> None:
        """Serve: make rollouts for the trainer until it has its steps or `control.stop()` is called."""
        await serve(self._runtime)

    async def setup_wandb(self) -> None:
        """Begin a run at W&B under the trainer's project, if `use_wandb`."""
        if not self.config.use_wandb:
            return
        told = await self._runtime.trainer.wandb_project()
        self.wandb_group, self.wandb_project = told["group"], told["project"]
        self._runtime.wandb.start(
            name=run_name(self._runtime.desired_name),
            project=self.wandb_project,
            group=self.wandb_group,
            config=plain_values(self.config),
        )

    async def register_env(self) -> None:
        """Register at the trajectory API, however long that or the trainer takes to come; load a checkpoint if any."""
        answer = await self._runtime.trainer.register()
        self._runtime.take_registration(answer)
        self.curr_step = int(answer["starting_step"])
        if self.config.total_steps == -1:
            self.config.total_steps = int(answer["num_steps"])
            if self.config.total_steps == -1:
                raise UsageError(
                    "neither the config nor the trainer tells the number of steps", "set --env.total_steps"
                )
        if self.curr_step > 0:
            self.load_checkpoint()

    async def get_server_info(self) -> None:
        """Take batch size and longest sequence from the trainer."""
        told = await self._runtime.trainer.trainer_settings()
        if told.get("batch_size", -1) != -1:
            self.config.batch_size = told["batch_size"]
        if told.get("max_token_len", -1) != -1:
            self.max_token_len = told["max_token_len"]
        if self.config.group_size > self.config.batch_size:
            raise UsageError(
                f"group_size {self.config.group_size} is above the trainer's batch size {self.config.batch_size}",
                "lower --env.group_size, or raise the trainer's batch size",
            )

    async def get_status(self) -> None:
        """Ask for the trainer's status and follow it."""
        self.status_dict = await self._runtime.trainer.status()
        self.max_num_workers = self._configured_workers()
        await self.server.update_weight(float(self.status_dict.get("env_weight", 1.0)))

    async def env_step_checks(self) -> None:
        """Evaluate, save a checkpoint and log when the trainer has made steps."""
        await self._runtime.step_checks.check()

    async def add_train_workers(self) -> None:
        """Start groups until the limit is reached or items run out."""
        before = len(self.workers)
        await self._runtime.scheduler.launch_up_to_limit()
        self.workers_added_list.append(len(self.workers) - before)

    async def handle_env(self, item_uuid: str) -> Any:
        """One attempt at the item that runs under this key, from rollouts to sending. Returns the groups, or None."""
        return await self._runtime.rollouts.run(self.running_items[item_uuid]["flight"])

    async def handle_send_to_api(
        self,
        scored_data: Groups,
        item: Item = None,
        do_send_to_api: bool = True,
        abort_on_any_max_length_exceeded: bool = True,
    ) -> None:
        """Check one group or several and send each that is fit; what becomes of each is one outcome in the ledger."""
        await self._runtime.delivery.handle(
            scored_data, item, send=do_send_to_api, abort_on_too_long=abort_on_any_max_length_exceeded
        )

    @property
    def derived_batch_size(self) -> int:
        """The sequences of a batch that this environment may fill; -1 while the trainer has told nothing."""
        return derived_batch_size(self.config, float(self.status_dict.get("unallocated_fraction", 1.0)))

    def _configured_workers(self) -> int:
        workers = self.config.max_num_workers
        return workers if workers != -1 else self.config.max_num_workers_per_node * len(self.server.servers)

    # -- checkpoints

    def save_checkpoint(self, step: int, data: Mapping[str, Any] | None = None) -> None:
        """Write the author's `data` and the place in the data. Overrides pass their data to `super()`."""
        path = self._checkpoints().write(step, {**(data or {}), PLACE: place_of(self)})
        self._runtime.stream.publish(CheckpointSaved, step=step, path=str(path))

    def load_checkpoint(self) -> None:
        """Set the attributes that the newest checkpoint not above `curr_step` has."""
        found = self._checkpoints().newest(self.curr_step)
        if found is None:
            logger.warning("no checkpoint for step %d; the data starts from its beginning", self.curr_step)
            return
        path, data = found
        logger.info("going on from checkpoint %s", path)
        restore_place(self, data.pop(PLACE, {}))
        for name, value in data.items():
            setattr(self, name, value)

    def _checkpoints(self) -> CheckpointFiles:
        return CheckpointFiles(self.checkpoint_dir, self.wandb_prepend or self._runtime.desired_name)

    # -- metrics

    async def wandb_log(self, wandb_metrics: dict[str, Any] | None = None) -> None:
        """Log metrics. Overrides fill the mapping and await `super().wandb_log(wandb_metrics)`."""
        metrics = wandb_metrics if wandb_metrics is not None else {}
        metrics.update(completion_length_metrics(self.completion_lengths, self.max_token_len))
        metrics = await self.create_rollout_table(metrics)
        metrics = self.perf_stats(metrics)
        self.rollouts_for_wandb = []
        self.completion_lengths = []
        told_by_servers = await server_metrics(self.server.servers)
        numbers = finite_numbers({**metrics, **told_by_servers})
        self._runtime.stream.publish(MetricsLogged, step=self.curr_step, metrics=numbers)
        if self.config.use_wandb:
            prefix = f"{self.wandb_prepend}_" if self.wandb_prepend is not None else ""
            own = {f"{prefix}{name}": value for name, value in metrics.items()}
            self._runtime.wandb.log({**own, **told_by_servers}, self.curr_step)

    def perf_stats(self, metrics_dict: dict[str, Any]) -> dict[str, Any]:
        """Add durations and what became of groups since the last call."""
        for name in ("task_duration", "succeeded_task_duration", "failed_task_duration", "mainloop_timings"):
            metrics_dict.update(spread(f"train_perf/{name}", getattr(self, name)))
            getattr(self, name).clear()
        metrics_dict.update(spread("train_perf/workers_added_per_attempt", self.workers_added_list))
        self.workers_added_list.clear()
        metrics_dict.update(self._runtime.step_checks.outcomes())
        return metrics_dict

    async def create_rollout_table(self, wandb_metrics: dict[str, Any]) -> dict[str, Any]:
        """Add the table of `rollouts_for_wandb`, whose rows are pairs of text and score."""
        if self.config.use_wandb and self.rollouts_for_wandb:
            import wandb

            table = wandb.Table(columns=["text", "score"])
            for group in self.rollouts_for_wandb:
                for row in group:
                    table.add_data(row[0], row[1])
            wandb_metrics["train/rollouts"] = table
        return wandb_metrics

    async def add_rollouts_for_wandb(self, scored_data: ScoredDataGroup | Any, item: Item = None) -> None:
        """Keep some rollouts of a group that was sent, for the table."""
        if self.config.use_wandb:
            self._runtime.table.add(scored_data)

    async def evaluate_log(
        self,
        metrics: dict[str, Any],
        task_name: str | None = None,
        model_name: str | None = None,
        start_time: float | None = None,
        end_time: float | None = None,
        generation_parameters: dict[str, Any] | None = None,
        samples: Sequence[Mapping[str, Any]] | None = None,
        verbose: bool = True,
    ) -> None:
        """Show the results of an evaluation and write them to `data_dir_to_save_evals`, each to a file of its own."""
        self._runtime.evaluations.note(metrics)
        now = time.time()
        seconds = (end_time if end_time is not None else now) - (start_time if start_time is not None else now)
        task_name = task_name or f"{self.name or type(self).__name__}_eval"
        if verbose:
            logger.info("%s", metrics_table(task_name, metrics, seconds))
        if self.config.data_dir_to_save_evals is None:
            logger.info("data_dir_to_save_evals is not set: the results of the evaluation are not written")
            return
        if model_name is None:
            model_name = getattr(self.config, "model_name", None)
        if model_name is None and self.server.servers:
            model_name = self.server.servers[0].config.model_name
        record = evaluation_record(
            metrics,
            task_name=task_name,
            model_name=model_name,
            seconds=seconds,
            generation_parameters={"max_new_tokens": self.config.max_token_length, **(generation_parameters or {})},
        )
        path = await asyncio.to_thread(write_evaluation, self.config.data_dir_to_save_evals, record, samples)
        logger.info("results of the evaluation: %s", path)

    # -- the other modes, and the command line

    async def process_manager(self) -> None:
        """Make `n_groups_to_process` groups, write them to the file of groups and a page beside it; send nothing."""
        await process(self._runtime)

    async def evaluate_manager(self) -> dict[str, float]:
        """Set up and evaluate once. Returns the metrics that are numbers; raises AtroposError when it fails."""
        return await evaluate(self._runtime)

    @classmethod
    def cli(cls) -> Any:
        """`serve`, `process` or `evaluate` from the command line. In a running event loop, returns a coroutine."""
        return run_command_line(cls)

    @functools.cached_property
    def client(self) -> Any:
        """OpenAI's own client of the first inference server, for environments that speak to it past `self.server`."""
        import openai

        config = self.server_configs[0]
        # OpenAI's client wants a key even where the server wants none.
        return openai.AsyncOpenAI(api_key=config.api_key or "none", base_url=config.base_url, timeout=config.timeout)

    # -- for those who watch

    def attach(
        self,
        stream: EventStream,
        outbox_path: Path | None = None,
        run_id: str = "",
        highest_group_before: int = 0,
        control_url: str = "",
    ) -> None:
        """Publish to this stream, and keep finished groups in this file until they are delivered (None: in memory).

        A trajectory API of ours gives a `run_id` that it knows its former number back, and tells who looks at it the
        `control_url` at which the run can be watched (empty: nowhere). Groups are numbered from above
        `highest_group_before`, and above those that ever were in the file.
        """
        self._runtime.attach(stream, outbox_path, run_id, highest_group_before, control_url)
        self.server.attach(stream)

    def token_pieces(self, ids: Sequence[int]) -> list[str]:
        """The text of each token. May be called from another thread."""
        return token_pieces(self.tokenizer, ids)
