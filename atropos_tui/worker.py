"""The worker process: the environment on the main thread, the monitor on another.

    python -m atropos_tui.worker --run-dir DIR [--run-id ID] [--read-only] -- FILE[:CLASS] --env.FIELD VALUE …

It serves the control API on `DIR/control.sock` from its first moment until it is told to stop, so that a run that
finished or crashed can still be looked at. Exit status: 0 the run ended in order, 1 it crashed or had to be abandoned,
2 wrong use (one line on stderr and on the ready pipe).
"""

from __future__ import annotations

import argparse
import asyncio
import concurrent.futures
import contextlib
import faulthandler
import gc
import logging
import logging.handlers
import os
import platform
import signal
import socket
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from atropos_tui.arguments import byte_count
from atropos_tui.child import announce_ready
from atropos_tui.errors import AtroposError, UsageError
from atropos_tui.ledger import EventStream, GroupContent, Sink
from atropos_tui.ledger.events import EventBase, RunEnded, RunStarted, StateChanged
from atropos_tui.ledger.outcomes import RunState
from atropos_tui.monitor.alert_command import AlertCommand
from atropos_tui.monitor.alert_settings import load_alert_settings
from atropos_tui.monitor.discovery import WorkerFile, find_run, write_worker_file
from atropos_tui.monitor.ending import GRACE_SECONDS, Ending, SignalPipe
from atropos_tui.monitor.group_store import MemoryGroupStore
from atropos_tui.monitor.monitor_thread import MonitorThread
from atropos_tui.monitor.remote_access import open_to_others
from atropos_tui.monitor.run_file.place import RUN_FILE
from atropos_tui.monitor.run_file.recorder import DEFAULT_SIZE_LIMIT, Recorder
from atropos_tui.monitor.run_file.resume import Begun, begun_in
from atropos_tui.monitor.run_file.writer import RecordLevel
from atropos_tui.monitor.run_view import RunView
from atropos_tui.monitor.unix_socket import remove_socket, socket_path_for, url_of_socket
from atropos_tui.runtime.failures import describe, traceback_text
from atropos_tui.runtime.logging_events import LogEventHandler
from atropos_tui.user_config import CONFIG_FILE, config_directory

if TYPE_CHECKING:
    from atropos_tui.runtime.base_env import BaseEnv

# Logprobs come as tens of thousands of small objects a group, with no cycle among them. At Python's own pace (700) the
# collector looks through the whole process again and again meanwhile: two thirds of the CPU of 8 × 4,096 tokens.
NEW_OBJECTS_BEFORE_COLLECTING = 100_000
# How long a thread may compute while others wait for the interpreter, in seconds. With Python's 5 ms, an environment
# that computes all the time holds the sender, which needs the interpreter a dozen times a group, to 100 a second.
LONGEST_TURN = 0.0005
# How long an operator's command waits for a loop that the author's code holds, before it is left to be taken later.
ANSWER_SECONDS = 1.0
# Who pauses the run, where the request does not tell.
_NOBODY_SAID = "an operator"
LOG_BYTES = 20 << 20
LOG_FILES = 3
# What the record of a run that is given up may take to be written.
ABANDONED_RECORD_SECONDS = 2.0
# These tell of every request at INFO.
_CHATTY_LOGGERS = ("httpx", "httpcore", "openai", "urllib3", "filelock")

logger = logging.getLogger(__name__)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(message, "see `python -m atropos_tui.worker --help`")


def _parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = _Parser(
        prog="python -m atropos_tui.worker",
        usage="%(prog)s --run-dir DIR [options] -- FILE[:CLASS] [--env.FIELD VALUE …]",
        description="Run one environment.",
        allow_abbrev=False,
    )
    parser.add_argument("--run-dir", type=Path, required=True, metavar="DIR", help="socket, log and outbox go here")
    parser.add_argument("--run-id", default="", metavar="ID", help="default: the name of the run directory")
    parser.add_argument("--ready-fd", type=int, metavar="N", help="a line of JSON goes here when the run begins")
    parser.add_argument("--lifeline-fd", type=int, metavar="N", help="end when the other end of this pipe closes")
    parser.add_argument("--read-only", action="store_true", help="refuse every command")
    parser.add_argument("--exit-when-done", action="store_true", help="don't stay to be looked at when the run is over")
    parser.add_argument(
        "--listen", metavar="HOST:PORT", help="answer over TCP too, to who has the token in DIR/token (default: don't)"
    )
    parser.add_argument(
        "--record",
        type=RecordLevel,
        choices=list(RecordLevel),
        default=RecordLevel.ALL,
        help="how much goes into the run file",
    )
    parser.add_argument(
        "--record-limit",
        type=byte_count,
        default=DEFAULT_SIZE_LIMIT,
        metavar="SIZE",
        help="the oldest contents make room when the run file gets larger, such as 500M or 20G (the default); 0: never",
    )
    parser.add_argument(
        "--grace", type=float, default=GRACE_SECONDS, metavar="SECONDS", help="what the run has to end in order"
    )
    split = argv.index("--") if "--" in argv else len(argv)
    options = parser.parse_args(argv[:split])
    if not argv[split + 1 :]:
        raise UsageError("no environment given", "end the command with -- FILE[:CLASS] and its flags")
    options.environment, *options.flags = argv[split + 1 :]
    return options


class Worker:
    """One run, from its first import to its last word."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self._env: BaseEnv | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._orphaned = False
        self._ending = Ending(self._stop_run, self._abandon, options.grace)
        self._signals = SignalPipe()
        self._run_dir: Path = options.run_dir.absolute()
        run_file = self._run_dir / RUN_FILE
        begun = begun_in(run_file) if options.record != RecordLevel.NONE else Begun()
        self._highest_group_before = begun.highest_group
        self._recorder = (
            Recorder(run_file, options.record, options.record_limit, ended_before=begun.groups)
            if options.record != RecordLevel.NONE
            else None
        )
        alerts = load_alert_settings(config_directory() / CONFIG_FILE)
        self._view = RunView(MemoryGroupStore(ended_before=begun.groups), recorder=self._recorder, alerts=alerts)
        self._sink = _EndNotingSink(self._view.collector)
        self._first_seq = begun.events + 1
        self._stream = EventStream(self._sink, first_seq=self._first_seq)
        self._socket_path = socket_path_for(self._run_dir)
        self._file = WorkerFile(
            run_id=options.run_id or self._run_dir.name,
            pid=os.getpid(),
            started_at=time.time(),
            socket=str(self._socket_path),
            environment=Path(options.environment).stem,
            file=options.environment,
            host=socket.gethostname(),
        )
        readers = {self._signals.read_fd: self._read_signals}
        if options.lifeline_fd is not None:
            readers[options.lifeline_fd] = self._read_lifeline
        self._monitor = MonitorThread(
            self._view,
            RunCommands(self),
            self._socket_path,
            decode=self._token_pieces,
            read_only=options.read_only,
            readers=readers,
            alert_command=AlertCommand(alerts, self._run_dir) if alerts.command else None,
        )

    def run(self) -> int:
        """The exit status. Raises UsageError when the run cannot begin."""
        for descriptor in (self._options.ready_fd, self._options.lifeline_fd):
            if descriptor is not None:
                os.set_inheritable(descriptor, False)
        gc.set_threshold(NEW_OBJECTS_BEFORE_COLLECTING)
        sys.setswitchinterval(LONGEST_TURN)
        self._signals.install()
        try:
            self._run_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._start_logging()
        except OSError as error:
            raise UsageError(
                f"cannot write to {self._run_dir}: {error.strerror}", "choose another --run-dir"
            ) from error
        self._refuse_to_be_the_second()
        remote = open_to_others(self._options.listen, self._run_dir) if self._options.listen else None
        if remote is not None:
            self._file = replace(self._file, url=remote.url)
        self._monitor.bind()
        # Whoever finds this file finds the socket too, and who finds the socket need not wait for what takes longer.
        write_worker_file(self._run_dir, self._file)
        self._monitor.start(remote)
        if self._recorder is not None:
            self._recorder.start(self._first_seq, self._file.pid, self._file.started_at)
        try:
            status = self._run_environment()
        except UsageError:
            self._close("it could not begin")
            raise
        if not self._options.exit_when_done:
            self._ending.asked.wait()
        self._close("it ended without a word")
        return status

    def _refuse_to_be_the_second(self) -> None:
        """The socket shows it too, but where its path would be too long each worker has one in a place of its own."""
        run = find_run(self._run_dir)
        if run is not None and run.alive:
            raise UsageError(f"another worker runs at {run.worker.socket}", "attach to it, or choose another --run-dir")

    # -- the run

    def _run_environment(self) -> int:
        self._stream.publish(
            StateChanged, state=RunState.STARTING, waiting_for=f"the import of {self._options.environment}"
        )
        try:
            self._env = self._make_environment()
        except UsageError:
            raise
        except BaseException as error:  # noqa: BLE001  the constructor is the author's code, and may even call sys.exit
            self._say_ready()
            return self._crashed(error)
        self._say_ready()
        try:
            asyncio.run(self._serve(self._env))
        except BaseException as error:  # noqa: BLE001  so is all that runs on the loop
            return self._crashed(error)
        return 0

    def _make_environment(self) -> BaseEnv:
        # These imports take a second or more, and the socket answers in the meantime.
        from atropos_tui.compat.module_path import enable
        from atropos_tui.runtime.command_line import parse_settings
        from atropos_tui.runtime.loading import load_environment
        from atropos_tui.runtime.masking import plain_values
        from atropos_tui.runtime.setting_rows import changed_since, setting_rows

        enable()
        environment = load_environment(self._options.environment)
        settings = parse_settings(environment, self._options.flags)
        given = setting_rows(settings)
        env = settings.build(environment)
        # A worker that is started again in its directory is the same environment to the trajectory API.
        env.attach(
            self._stream, self._outbox_path(env), run_id=f"{self._file.host}:{self._run_dir}",
            highest_group_before=self._highest_group_before,
            control_url=self._file.url or url_of_socket(self._socket_path),
        )  # fmt: skip
        self._write_config(settings.as_yaml())
        self._file = replace(self._file, environment=environment.__name__)
        write_worker_file(self._run_dir, self._file)
        self._stream.publish(
            RunStarted,
            run_id=self._file.run_id,
            environment=self._file.environment,
            file=self._file.file,
            pid=self._file.pid,
            group_size=env.config.group_size,
            total_steps=env.config.total_steps,
            max_token_length=env.config.max_token_length,
            tokenizer_name=env.config.tokenizer_name,
            config=plain_values(env.config),
            settings=changed_since(given, env.config),
            versions={"atropos-tui": version("atropos-tui"), "python": platform.python_version()},
        )
        return env

    def _write_config(self, text: str) -> None:
        """A file that `--config` reads back; the run can do without."""
        try:
            (self._run_dir / "config.yaml").write_text(text, encoding="utf-8")
        except OSError as error:
            logger.warning("the merged configuration is not written: %s", error)

    def _outbox_path(self, env: BaseEnv) -> Path | None:
        from atropos_tui.runtime.config import AUTO_OUTBOX

        named = env.config.outbox_path
        if named == AUTO_OUTBOX:
            return self._run_dir / "outbox.db"
        return Path(named).expanduser() if named is not None else None

    async def _serve(self, env: BaseEnv) -> None:
        self._loop = asyncio.get_running_loop()
        self._view.loop_watch.start(self._loop)
        if self._ending.asked.is_set():
            env.control.stop()
        try:
            await env.env_manager()
        finally:
            self._view.loop_watch.stop()
            self._loop = None
            self._ending.run_is_over(expect_exit=self._options.exit_when_done)

    def _crashed(self, error: BaseException) -> int:
        """Tell why, unless the runtime has; a wrong configuration that shows late is wrong use all the same."""
        logger.error("the run crashed: %s", describe(error), exc_info=error)
        if self._sink.end is None:
            self._stream.publish(RunEnded, state=RunState.CRASHED, why=describe(error), traceback=traceback_text(error))
        self._ending.run_is_over(expect_exit=self._options.exit_when_done)
        return 2 if isinstance(error, UsageError) else 1

    def _say_ready(self) -> None:
        # Whoever started us may have gone meanwhile; the lifeline decides what that means.
        with contextlib.suppress(BrokenPipeError):
            announce_ready(self._options.ready_fd, socket=str(self._socket_path), run_id=self._file.run_id)

    def _token_pieces(self, ids: Sequence[int]) -> list[str]:
        return self._env.token_pieces(ids) if self._env is not None else []

    # -- commands

    def command(self, name: str, *arguments: object) -> concurrent.futures.Future[None]:
        """Call a method of the run's control on its own loop. Raises AtroposError while there is no such loop.

        The future is done when the loop has come to it; its exception is the run's refusal.
        """
        loop, env = self._loop, self._env
        if loop is None or env is None:
            if self._sink.end is not None:
                raise AtroposError("the run has ended", "start it again to command it")
            raise AtroposError("the run has not begun yet", "try again in a moment")
        taken: concurrent.futures.Future[None] = concurrent.futures.Future()
        loop.call_soon_threadsafe(_give, getattr(env.control, name), arguments, taken)
        return taken

    def ask_to_end(self, why: str) -> None:
        self._ending.ask(why)

    # -- the end

    def _read_signals(self) -> bool:
        for received in self._signals.received():
            self._ending.ask(received.name)
        return True

    def _read_lifeline(self) -> bool:
        if os.read(self._options.lifeline_fd, 1024):
            return True
        self._orphaned = True
        self._ending.ask("the process that started this one is gone", hurry=True)
        return False

    def _stop_run(self, why: str) -> None:
        loop, env = self._loop, self._env
        if loop is not None and env is not None:
            # A loop that closes in this moment has nothing left to stop.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(env.control.stop, why)

    def _close(self, why: str) -> None:
        self._ending.run_is_over(expect_exit=True)
        # Whoever sees the socket go must find the reason in the file.
        self._note_end(why)
        self._monitor.close()

    def _abandon(self) -> NoReturn:
        """End without the main thread, which doesn't come back from the author's code.

        Takes no lock that code could hold; so it doesn't log either.
        """
        words = "the environment's code did not let the run end in time: it was abandoned"
        with contextlib.suppress(OSError):
            with self._log_path.open("a", encoding="utf-8") as log:
                log.write(words + "\n")
            if self._recorder is not None:
                self._recorder.close(ABANDONED_RECORD_SECONDS)
            self._note_end(words)
            remove_socket(self._socket_path)
        self.end_session()
        os._exit(1)

    def _note_end(self, why: str) -> None:
        end = self._sink.end
        write_worker_file(
            self._run_dir,
            replace(
                self._file,
                ended_at=time.time(),
                end_state=str(end.state if end else RunState.CRASHED),
                why=end.why if end else why,
            ),
        )

    def end_session(self) -> None:
        """End what the environment has started and left behind; at all costs where nobody is there to see to it."""
        if os.getsid(0) == os.getpid():
            # This process is in the session too, and takes note of a SIGTERM without ending by it.
            os.killpg(0, signal.SIGKILL if self._orphaned else signal.SIGTERM)

    # -- the log

    @property
    def _log_path(self) -> Path:
        return self._run_dir / "worker.log"

    def _start_logging(self) -> None:
        log = logging.handlers.RotatingFileHandler(
            self._log_path, maxBytes=LOG_BYTES, backupCount=LOG_FILES - 1, encoding="utf-8"
        )
        faulthandler.enable(self._log_path.open("a"))
        log.setFormatter(logging.Formatter("%(asctime)s %(levelname)-8s %(name)s: %(message)s"))
        logging.basicConfig(level=logging.INFO, handlers=[log, LogEventHandler(self._stream)], force=True)
        logging.captureWarnings(True)
        for name in _CHATTY_LOGGERS:
            logging.getLogger(name).setLevel(logging.WARNING)


def _give(command: Callable[..., None], arguments: tuple[object, ...], taken: concurrent.futures.Future[None]) -> None:
    try:
        command(*arguments)
    except AtroposError as refusal:
        logger.warning("%s refused: %s", command.__name__, refusal)
        taken.set_exception(refusal)
    else:
        taken.set_result(None)


class RunCommands:
    """What the control API may ask of a worker. Called on the monitor's loop."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker

    def pause(self, by: str) -> None:
        self._worker.command("pause", by or _NOBODY_SAID)

    def pause_now(self, by: str) -> None:
        self._worker.command("pause_now", by or _NOBODY_SAID)

    def resume(self) -> None:
        self._worker.command("resume")

    def step_group(self) -> None:
        self._worker.command("step_group")

    async def cancel_group(self, group_id: int) -> bool:
        return await self._taken(self._worker.command("cancel_group", group_id))

    async def requeue_group(self, group_id: int) -> bool:
        return await self._taken(self._worker.command("requeue_group", group_id))

    async def evaluate(self) -> bool:
        return await self._taken(self._worker.command("evaluate"))

    def stop(self) -> None:
        self._worker.ask_to_end("stopped by the operator")

    async def _taken(self, command: concurrent.futures.Future[None]) -> bool:
        """Whether the run has come to the command. Raises its refusal."""
        answer = asyncio.wrap_future(command)
        # An answer that comes too late for this call is in the log, if it is a refusal.
        answer.add_done_callback(lambda late: late.cancelled() or late.exception())
        await asyncio.wait({answer}, timeout=ANSWER_SECONDS)
        return answer.done() and answer.result() is None


class _EndNotingSink:
    """Hands everything on, and remembers how the run ended."""

    def __init__(self, sink: Sink) -> None:
        self.end: RunEnded | None = None
        self._sink = sink

    def publish(self, event: EventBase) -> None:
        if isinstance(event, RunEnded):
            self.end = event
        self._sink.publish(event)

    def keep(self, content: GroupContent) -> None:
        self._sink.keep(content)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one environment; returns the exit status."""
    ready_fd = None
    try:
        options = _parse(list(sys.argv[1:] if argv is None else argv))
        ready_fd = options.ready_fd
        worker = Worker(options)
        status = worker.run()
    except UsageError as error:
        with contextlib.suppress(BrokenPipeError):
            announce_ready(ready_fd, error=str(error))
        sys.stderr.write(f"atropos-tui worker: {error}\n")
        return 2
    worker.end_session()
    return status


if __name__ == "__main__":
    sys.exit(main())
