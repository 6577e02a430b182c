"""What each path of upstream's wire does (see wire.py for bodies and answers)."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from atropos_tui.trajectory_api import wire
from atropos_tui.trajectory_api.http import TEXT, Answer, Request, Settle, json_answer
from atropos_tui.trajectory_api.inflating import inflate
from atropos_tui.trajectory_api.intake import GroupReader, Intake
from atropos_tui.trajectory_api.request_errors import BadBodyError, RequestError, UnknownEnvironmentError, problem
from atropos_tui.trajectory_api.run import TrainingRun
from atropos_tui.trajectory_api.stored_json import KeptJson, StoredJson, gzip_of

M = TypeVar("M", bound=BaseModel)

_RECEIVED = Answer(b'{"status":"received"}')
_NO_BATCH = Answer(b'{"batch":null}')
_NO_TRAINER = Answer(b'{"status":"error","message":"Trainer not registered. Call /register first.","batch":[]}')
_NO_EXAMPLE = Answer(
    b'{"tokens":[],"masks":[],"scores":[],"advantages":[],"ref_logprobs":[],"generation_params":[],'
    b'"inference_logprobs":[],"messages":[],"images":[]}'
)
# Whatever is not scored groups is read on the event loop, and small.
_LARGEST_SETTINGS = 1024 * 1024
_COMMA = StoredJson.plain(b",").in_plain_blocks()


class Endpoints:
    """The handlers; each takes a request and gives its answer. All may raise RequestError."""

    def __init__(
        self,
        run: TrainingRun,
        intake: Intake,
        workers: Executor,
        *,
        body_limit: int,
        registration: type[wire.Registration] = wire.Registration,
        read_one: GroupReader,
        read_list: GroupReader,
    ) -> None:
        self._run = run
        self._intake = intake
        self._workers = workers
        self._body_limit = body_limit
        self._registration = registration
        self._read_one = read_one
        self._read_list = read_list

    async def root(self, _: Request) -> Answer:
        return json_answer(wire.Message(message="AtroposLib API"))

    async def health(self, _: Request) -> Answer:
        return json_answer(wire.Health())

    async def register(self, request: Request) -> Answer:
        settings = self._model(request, self._registration)
        self._run.register(wire.Registration(**settings.model_dump()))
        return Answer(b'{"uuid":%d}' % uuid.uuid4().int)

    async def info(self, _: Request) -> Answer:
        settings = self._run.registration
        if settings is None:
            return json_answer(wire.Info(batch_size=-1, max_token_len=-1))
        return json_answer(wire.Info(batch_size=settings.batch_size, max_token_len=settings.max_token_len))

    async def wandb_info(self, _: Request) -> Answer:
        settings = self._run.registration
        if settings is None:
            return json_answer(wire.WandbInfo(group=None, project=None))
        return json_answer(wire.WandbInfo(group=settings.wandb_group, project=settings.wandb_project))

    async def status(self, _: Request) -> Answer:
        return json_answer(wire.Status(current_step=self._run.step, queue_size=len(self._run.queue)))

    async def batch(self, request: Request) -> Answer:
        if not self._run.has_trainer:
            return _NO_TRAINER
        batch = self._run.take_batch()
        if batch is None:
            return _NO_BATCH

        def settle(arrived: bool) -> None:
            if arrived:
                self._run.delivered(batch)
            else:
                self._run.put_back(batch)

        try:
            texts = [group.stored for group in batch]
            return await self._stored_answer(b'{"batch":[', texts, b"]}", request.accepts_gzip, settle)
        except BaseException:
            self._run.put_back(batch)
            raise

    async def latest_example(self, request: Request) -> Answer:
        if self._run.latest is None:
            return _NO_EXAMPLE
        return await self._stored_answer(b"", [self._run.latest], b"", request.accepts_gzip)

    async def reset_data(self, _: Request) -> Answer:
        self._run.reset()
        self._intake.forget()
        return Answer(b"Reset successful", media_type=TEXT)

    async def register_env(self, request: Request) -> Answer:
        return json_answer(self._run.register_environment(self._model(request, wire.RegisterEnv)))

    async def disconnect_env(self, request: Request) -> Answer:
        env_id = (self._model(request, wire.EnvIdentifier)).env_id
        try:
            self._run.disconnect(env_id)
        except UnknownEnvironmentError as error:
            return json_answer(wire.Disconnected(status="failure", error=str(error)))
        return json_answer(wire.Disconnected(status="success"), without_nulls=True)

    async def status_env(self, request: Request) -> Answer:
        """The id comes in a JSON body (upstream) or in the query."""
        if request.body:
            env_id = (self._model(request, wire.EnvIdentifier)).env_id
        else:
            env_id = valid(lambda: wire.EnvIdentifier.model_validate(request.query_values)).env_id
        return json_answer(self._run.environment_status(env_id))

    async def scored_data(self, request: Request) -> Answer:
        (answer,) = await self._intake.receive(request, self._read_one)
        return _RECEIVED if answer.status == "received" else json_answer(answer)

    async def scored_data_list(self, request: Request) -> Answer:
        answers = await self._intake.receive(request, self._read_list)
        buffered = [answer.buffer_size for answer in answers if answer.status == "buffered"]
        answer = wire.ListAccepted(
            groups_processed=len(answers),
            buffered=len(buffered) or None,
            last_buffer_size=buffered[-1] if buffered else None,
        )
        return json_answer(answer, without_nulls=True)

    async def _stored_answer(
        self, before: bytes, texts: Sequence[KeptJson], after: bytes, as_gzip: bool, settle: Settle | None = None
    ) -> Answer:
        """An answer of stored texts with commas between them, without inflating or deflating what need not be."""
        if not as_gzip:
            plain = await self._off_loop(_texts_of, texts)
            return Answer([before, b",".join(plain), after], settle=settle)
        deflated = [text for text in texts if isinstance(text, StoredJson) and text.deflated]
        if len(deflated) < len(texts):
            deflated = await self._off_loop(_deflated, texts)
        parts = [StoredJson.plain(before).in_plain_blocks()]
        for text in deflated:
            parts += (text, _COMMA)
        parts[-1] = StoredJson.plain(after).in_plain_blocks()
        headers = ((b"content-encoding", b"gzip"), (b"vary", b"Accept-Encoding"))
        return Answer(gzip_of(parts), headers=headers, settle=settle)

    async def _off_loop(self, work: Callable[..., Any], *arguments: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._workers, work, *arguments)

    def _model(self, request: Request, model: type[M]) -> M:
        limit = min(_LARGEST_SETTINGS, self._body_limit)
        text = inflate(request.body, limit) if request.is_gzipped else request.body
        if len(text) > limit:
            raise RequestError(413, f"the body is larger than the {limit:,} bytes that registrations may have")
        return valid(lambda: model.model_validate_json(text))


def valid(validate: Callable[[], M]) -> M:
    """The model, or a BadBodyError that names each field at fault."""
    try:
        return validate()
    except ValidationError as error:
        problems = [
            problem(entry["loc"], f"{'.'.join(map(str, entry['loc'])) or 'body'}: {entry['msg']}", entry["type"])
            for entry in error.errors(include_url=False, include_input=False)
        ]
        raise BadBodyError(problems) from error


def _deflated(texts: Sequence[KeptJson]) -> list[StoredJson]:
    return [text.deflate() for text in texts]


def _texts_of(texts: Sequence[KeptJson]) -> list[bytes]:
    return [text.text() for text in texts]
