"""What tests of serving share: a tokenizer made on the spot, a scripted environment, a trajectory API at command."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from atropos_tui.http_server import HttpServer, bind_tcp, url_of
from atropos_tui.ledger import EventStream, GroupContent
from atropos_tui.ledger.events import EventBase
from atropos_tui.runtime.base_env import BaseEnv
from atropos_tui.runtime.config import BaseEnvConfig
from tests.ports import hold_port, port_of

PATIENCE = 60.0


def make_tokenizer(directory: Path) -> Path:
    """A character tokenizer with a chat template, in a directory that AutoTokenizer loads."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    characters = [chr(code) for code in range(32, 127)] + ["\n", "<unk>", "<eos>"]
    vocabulary = {character: number for number, character in enumerate(characters)}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    tokenizer.decoder = decoders.Fuse()
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token="<eos>",
        unk_token="<unk>",
        chat_template="{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}",
    ).save_pretrained(directory)
    return directory


class RecordedEvents:
    """A sink that keeps everything."""

    def __init__(self) -> None:
        self.events: list[EventBase] = []
        self.contents: list[GroupContent] = []

    def publish(self, event: EventBase) -> None:
        self.events.append(event)

    def keep(self, content: GroupContent) -> None:
        self.contents.append(content)

    def of(self, kind: str) -> list[Any]:
        return [event for event in self.events if getattr(event, "kind", "") == kind]

    def states(self) -> list[str]:
        return [event.state.value for event in self.of("state_changed")]


async def until(condition: Callable[[], object], what: str = "", patience: float = PATIENCE) -> None:
    """Wait for a condition, with a bound."""
    deadline = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain for {what or condition}"
        await asyncio.sleep(0.005)


def good_group(size: int = 4, length: int = 6, **more: Any) -> dict[str, Any]:
    """A group that every check lets pass."""
    tokens = [list(range(1, length + 1)) for _ in range(size)]
    return {
        "tokens": tokens,
        "masks": [[-100, *sequence[1:]] for sequence in tokens],
        "scores": [float(index) for index in range(size)],
        **more,
    }


class ScriptedEnv(BaseEnv):
    """Items are numbers; `script` makes the result of one. Counts what the runtime calls."""

    name = "scripted"

    def __init__(self, config: BaseEnvConfig, server_configs: Any, slurm: bool = False, testing: bool = False):
        super().__init__(config, server_configs, slurm, testing)
        self.iter = 0
        self.items: Iterator[Any] | None = None
        self.script: Callable[[Any], Awaitable[Any]] = self.good
        self.collected: list[Any] = []
        self.cleanups = 0
        self.evaluations: list[int] = []
        self.evaluation: Callable[[], Awaitable[Any]] | None = None

    async def good(self, item: Any) -> Any:
        return good_group(self.config.group_size), []

    async def get_next_item(self) -> Any:
        self.iter += 1
        return self.iter if self.items is None else next(self.items, None)

    async def collect_trajectories(self, item: Any) -> Any:
        self.collected.append(item)
        return await self.script(item)

    async def evaluate(self, *args: Any, **kwargs: Any) -> Any:
        self.evaluations.append(self.curr_step)
        return await self.evaluation() if self.evaluation is not None else {"eval/accuracy": 0.5}

    async def cleanup(self) -> None:
        self.cleanups += 1


class FakeTrajectoryApi:
    """The wire of the trajectory API, with a trainer that does what a test says. Runs in a thread of its own.

    `queue_size` None counts the groups that came, as if the trainer never took any.
    """

    def __init__(self, port: int = 0, **settings: Any) -> None:
        self.step = 0
        self.queue_size: int | None = 0
        self.trainer_ready = True
        self.project: str | None = "project"
        self.batch_size = 64
        self.max_token_len = 4096
        self.starting_step = 0
        self.checkpoint_dir = ""
        self.checkpoint_interval = -1
        self.num_steps = 1000
        self.registrations: list[dict[str, Any]] = []
        self.disconnected: list[int] = []
        self.groups: list[dict[str, Any]] = []
        self.status_times: list[float] = []
        self.status_error = 0
        self.registration_error = 0
        self.scored_error = 0
        self.refused_groups = 0
        self.first_env_id = 0
        self.forgotten = False
        self.more_status: dict[str, Any] = {}
        vars(self).update(settings)
        self._holding = hold_port(port)  # also after `stop`
        self.port = port_of(self._holding)
        self._listener = bind_tcp("127.0.0.1", self.port)
        self.url = url_of(self._listener)
        self._server: HttpServer | None = None
        self._thread: threading.Thread | None = None

    @property
    def status_calls(self) -> int:
        return len(self.status_times)

    def start(self) -> FakeTrajectoryApi:
        ready = threading.Event()
        self._server = HttpServer(self._app(), on_ready=ready.set, handle_signals=False, timeout_graceful_shutdown=1)
        self._thread = threading.Thread(target=self._server.run_on, args=(self._listener,), daemon=True)
        self._thread.start()
        assert ready.wait(PATIENCE)
        return self

    def stop(self) -> None:
        assert self._server is not None
        assert self._thread is not None
        self._server.should_exit = True
        self._thread.join(PATIENCE)
        self._listener.close()

    def _app(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/wandb_info", self._wandb_info),
                Route("/info", self._info),
                Route("/register-env", self._register, methods=["POST"]),
                Route("/disconnect-env", self._disconnect, methods=["POST"]),
                Route("/status-env", self._status),
                Route("/scored_data", self._scored, methods=["POST"]),
            ]
        )

    async def _wandb_info(self, request: Request) -> Response:
        return JSONResponse({"group": "group", "project": self.project})

    async def _info(self, request: Request) -> Response:
        return JSONResponse({"batch_size": self.batch_size, "max_token_len": self.max_token_len})

    async def _register(self, request: Request) -> Response:
        if self.registration_error:
            return JSONResponse({"detail": "group_size: must be even"}, self.registration_error)
        if not self.trainer_ready:
            return JSONResponse({"status": "wait for trainer to start"})
        self.registrations.append(await request.json())
        self.forgotten = False
        number = self.first_env_id + len(self.registrations) - 1
        return JSONResponse(
            {
                "status": "success",
                "env_id": number,
                "wandb_name": f"{self.registrations[-1]['desired_name']}_{number}",
                "checkpoint_dir": self.checkpoint_dir,
                "starting_step": self.starting_step,
                "checkpoint_interval": self.checkpoint_interval,
                "num_steps": self.num_steps,
            }
        )

    async def _disconnect(self, request: Request) -> Response:
        self.disconnected.append((await request.json())["env_id"])
        return JSONResponse({"status": "success"})

    async def _status(self, request: Request) -> Response:
        self.status_times.append(time.monotonic())
        if self.status_error:
            return Response("broken", self.status_error)
        if self.forgotten:
            return JSONResponse({"detail": "unknown environment"}, 404)
        queue_size = len(self.groups) if self.queue_size is None else self.queue_size
        return JSONResponse(
            {
                "current_step": self.step,
                "queue_size": queue_size,
                "unallocated_fraction": 1.0,
                "self_queue_size": queue_size,
                "max_group_size": 4,
                "env_weight": 1.0,
                **self.more_status,
            }
        )

    async def _scored(self, request: Request) -> Response:
        if self.scored_error:
            self.refused_groups += 1
            return Response("busy", self.scored_error)
        body = await request.body()
        if request.headers.get("content-encoding") == "gzip":
            import gzip

            body = gzip.decompress(body)
        self.groups.append(json.loads(body))
        return JSONResponse({"status": "received"})


@contextlib.asynccontextmanager
async def serving(env: BaseEnv) -> AsyncIterator[asyncio.Task[None]]:
    """The environment serves in the background; it is stopped at the end if it hasn't ended."""
    task = asyncio.create_task(env.env_manager())
    try:
        yield task
    finally:
        if not task.done():
            env.control.stop()
            env.control.stop()
        await asyncio.wait({task}, timeout=PATIENCE)
        assert task.done(), "the run did not end"
        await until(lambda: asyncio.all_tasks() == {asyncio.current_task()}, "tasks that the run left behind to end")


def watched(env: BaseEnv) -> RecordedEvents:
    """Attach a recording sink, and tell what it sees."""
    seen = RecordedEvents()
    env.attach(EventStream(seen))
    return seen
