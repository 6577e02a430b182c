"""Processes of ours: started with a ready pipe and a lifeline, ended with everything they started themselves."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from atropos_tui.errors import AtroposError, UsageError

POLL_SECONDS = 0.02
# A killed process is gone when the system has found time for that, however short its grace was.
BURIAL_SECONDS = 60.0


class StartError(AtroposError):
    """A process of ours ended, or stayed silent, before it was ready."""


def start_process(
    command: Sequence[str],
    arguments: Sequence[str] = (),
    *,
    log_path: Path,
    ready_timeout: float = 120.0,
    detached: bool = False,
    env: Mapping[str, str] | None = None,
) -> ChildProcess:
    """Start `command`, wait until it says that it is ready, and return it with what it said.

    `--ready-fd N` and, unless `detached`, `--lifeline-fd N` go between `command` and `arguments`. Its output is
    appended to `log_path`. The process is in a session of its own; without `detached` it ends when its owner does,
    however that comes. Raises UsageError with the line the process gave for its refusal, StartError when it died or
    said nothing.
    """
    child = launch(command, arguments, log_path=log_path, detached=detached, env=env)
    try:
        child.wait_ready(ready_timeout)
    except BaseException:
        child.terminate()
        raise
    return child


def launch(
    command: Sequence[str],
    arguments: Sequence[str] = (),
    *,
    log_path: Path,
    detached: bool = False,
    env: Mapping[str, str] | None = None,
    working_directory: Path | None = None,
) -> ChildProcess:
    """Like `start_process`, but returns at once; `ChildProcess.wait_ready` does the rest."""
    ready_read, ready_write = os.pipe()
    lifeline_read, lifeline_write = (None, None) if detached else os.pipe()
    inherited = [descriptor for descriptor in (ready_write, lifeline_read) if descriptor is not None]
    flags = ["--ready-fd", str(ready_write)]
    if lifeline_read is not None:
        flags += ["--lifeline-fd", str(lifeline_read)]
    try:
        with log_path.open("ab") as log:
            process = subprocess.Popen(
                [*command, *flags, *arguments],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env=None if env is None else dict(env), pass_fds=inherited, start_new_session=True,
                cwd=working_directory,
            )  # fmt: skip
    except BaseException:
        for descriptor in (ready_read, lifeline_write):
            if descriptor is not None:
                os.close(descriptor)
        raise
    finally:
        for descriptor in inherited:
            os.close(descriptor)
    return ChildProcess(process, log_path, ready_read, lifeline_write)


class ChildProcess:
    """A process that was started here. As a context manager it ends with the block.

    `ready` is what the process said when it was ready (`url`, `socket` …), empty before.
    """

    def __init__(
        self, process: subprocess.Popen[bytes], log_path: Path, ready_fd: int, lifeline_fd: int | None
    ) -> None:
        self.ready: Mapping[str, Any] = {}
        self.log_path = log_path
        self._process = process
        self._ready_fd = ready_fd
        self._lifeline_fd = lifeline_fd

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.terminate()

    @property
    def pid(self) -> int:
        return self._process.pid

    def wait_ready(self, timeout: float) -> Mapping[str, Any]:
        """What the process said when it was ready. Raises UsageError or StartError as `start_process` does."""
        if not self.ready:
            line = self._read_ready_line(time.monotonic() + timeout)
            if line is None:
                raise StartError(f"{self._name} was not ready after {timeout:g} s", self._see_log())
            if not line:
                raise StartError(f"{self._name} {self._how_it_ended()} before it was ready", self._see_log())
            said = json.loads(line)
            if "error" in said:
                raise UsageError(said["error"])
            self.ready = said
        return self.ready

    def poll(self) -> int | None:
        """The exit status, negative for a signal; None while the process runs.

        What the process had started and left behind is ended as soon as it is seen to be gone: before it is reaped,
        for until then its number cannot belong to anybody else.
        """
        if self._process.returncode is None and self._is_gone():
            self._kill_group()
            self._process.wait()
            self._close_pipes()
        return self._process.returncode

    def wait(self, timeout: float) -> int:
        """The exit status. Raises TimeoutError when the process still runs after `timeout` seconds."""
        deadline = time.monotonic() + timeout
        while (status := self.poll()) is None:
            if time.monotonic() >= deadline:
                raise TimeoutError(f"{self._name} still runs after {timeout:g} s")
            time.sleep(POLL_SECONDS)
        return status

    def terminate(self, grace: float = 10.0) -> int:
        """Ask the process to end, and end it with its whole group when it hasn't after `grace` seconds."""
        if self.poll() is None:
            os.kill(self.pid, signal.SIGTERM)
            try:
                return self.wait(grace)
            except TimeoutError:
                self._kill_group()
        return self.wait(BURIAL_SECONDS)

    def last_lines(self, count: int = 20) -> list[str]:
        """The end of the process's log."""
        with contextlib.suppress(FileNotFoundError), self.log_path.open("rb") as log:
            log.seek(max(0, log.seek(0, os.SEEK_END) - 64_000))
            return log.read().decode(errors="replace").splitlines()[-count:]
        return []

    @property
    def _name(self) -> str:
        """`atropos_tui.worker` of `python -m atropos_tui.worker …`, else the program."""
        arguments = [str(argument) for argument in self._process.args]  # type: ignore[union-attr]  # a list, see launch
        return arguments[arguments.index("-m") + 1] if "-m" in arguments[:-1] else Path(arguments[0]).name

    def _read_ready_line(self, deadline: float) -> bytes | None:
        """Empty when the process closed the pipe without a word, None when time is over."""
        said = b""
        poll = select.poll()
        poll.register(self._ready_fd, select.POLLIN | select.POLLHUP)
        while not said.endswith(b"\n"):
            left = deadline - time.monotonic()
            if left <= 0 or not poll.poll(left * 1000):
                return None
            if not (chunk := os.read(self._ready_fd, 4096)):
                return b""
            said += chunk
        return said

    def _how_it_ended(self) -> str:
        try:
            status = self.wait(timeout=2.0)
        except TimeoutError:
            return "closed its ready pipe"
        return f"was ended by {signal.Signals(-status).name}" if status < 0 else f"ended with exit status {status}"

    def _see_log(self) -> str:
        lines = [line for line in self.last_lines() if line.strip()]
        return f"{self.log_path} ends with: {lines[-1].strip()}" if lines else f"{self.log_path} is empty"

    def _is_gone(self) -> bool:
        try:
            return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        except ChildProcessError:
            return True

    def _kill_group(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)

    def _close_pipes(self) -> None:
        for descriptor in (self._ready_fd, self._lifeline_fd):
            if descriptor is not None:
                os.close(descriptor)
        self._ready_fd, self._lifeline_fd = -1, None
