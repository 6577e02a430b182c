"""Running a program in the sandbox, and reading what it says without being flooded."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import signal
import sys
import tempfile
import time
from asyncio.subprocess import PIPE
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import orjson

from atropos_tui.errors import AtroposError
from atropos_tui.sandbox.limits import SandboxLimits

LAUNCHER = Path(__file__).with_name("launcher.py")
CHUNK = 64 * 1024
GRACE_SECONDS = 5.0

# Why a program was ended; empty when it ended of itself, or by a limit of the kernel's.
Cut = Literal["", "time", "output"]


class SandboxError(AtroposError):
    """The sandbox could not run a program at all; nothing is known of the program."""


@dataclass(frozen=True, slots=True)
class SandboxResult:
    """What became of one program. `exit_status` is 0, its own, or 128 plus the number of the signal that ended it."""

    exit_status: int
    stdout: str
    stderr: str
    cut: Cut
    seconds: float

    @property
    def ending(self) -> str:
        """In words; empty when the program ended well."""
        if self.cut == "time":
            return f"it did not end within {self.seconds:.1f} s"
        if self.cut == "output":
            return "it wrote too much"
        if self.exit_status > 128:
            return f"it was killed by {_signal_name(self.exit_status - 128)}"
        return f"it ended with status {self.exit_status}" if self.exit_status else ""


class Sandbox:
    """Runs programs one by one or beside each other, each in a sandbox of its own.

    A program has no network, sees no process and no file but Python, the system's libraries and an empty directory, and
    nothing of it is left when it ends. With `isolated=False` it has limits and an empty directory only, and can read
    and reach whatever its user can: for code that is trusted, or where the whole machine is the sandbox.
    """

    def __init__(self, limits: SandboxLimits | None = None, *, isolated: bool = True) -> None:
        self.limits = limits or SandboxLimits()
        self.isolated = isolated

    async def check(self) -> None:
        """Run an empty program. Raises SandboxError, saying why, when this system has no sandbox to run it in."""
        await self.run("")

    async def run(self, program: str) -> SandboxResult:
        """Run the text of a Python program to its end. Raises SandboxError when there is no sandbox to run it in."""
        with self._directory() as directory:
            status_read, status_write = os.pipe()
            try:
                process = await self._start(directory, status_write)
            finally:
                os.close(status_write)
            try:
                result = await self._follow(process, program)
                told = os.read(status_read, CHUNK).decode()
            finally:
                os.close(status_read)
        if told != "started":
            raise SandboxError(
                told or result.stderr.strip().rpartition("\n")[2] or "the program was not started in time"
            )
        return result

    def _directory(self) -> contextlib.AbstractContextManager[str]:
        """Where a program begins; an isolated one has a directory of its own in its namespace."""
        if self.isolated:
            return contextlib.nullcontext("/")
        return tempfile.TemporaryDirectory(prefix="sandbox-", ignore_cleanup_errors=True)

    async def _start(self, directory: str, status_fd: int) -> asyncio.subprocess.Process:
        asked = {"status_fd": status_fd, "isolated": self.isolated, "limits": asdict(self.limits)}
        return await asyncio.create_subprocess_exec(
            base_python(), "-B", "-E", "-s", "-S", str(LAUNCHER), orjson.dumps(asked).decode(),
            stdin=PIPE, stdout=PIPE, stderr=PIPE, pass_fds=[status_fd], cwd=directory, start_new_session=True, env={},
        )  # fmt: skip

    async def _follow(self, process: asyncio.subprocess.Process, program: str) -> SandboxResult:
        """Feed the program in and read what it says, until it ends or is ended."""
        started = time.monotonic()
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        said, complained = (Output(self.limits.output_bytes) for _ in range(2))
        talk = asyncio.gather(
            _write(process.stdin, program.encode(errors="replace")),
            said.read(process.stdout),
            complained.read(process.stderr),
            process.wait(),
        )
        flooded = [asyncio.create_task(output.full.wait()) for output in (said, complained)]
        waited_for: set[asyncio.Future[Any]] = {talk, *flooded}
        try:
            await asyncio.wait(waited_for, timeout=self.limits.wall_seconds, return_when=asyncio.FIRST_COMPLETED)
            cut: Cut = "output" if any(task.done() for task in flooded) else "" if talk.done() else "time"
        finally:
            _kill(process)
            for task in flooded:
                task.cancel()
            # What is dead has closed its ends of the pipes; only what escaped from no isolation has not.
            await asyncio.wait({talk}, timeout=GRACE_SECONDS)
            talk.cancel()
        exit_status = process.returncode if process.returncode is not None else -signal.SIGKILL
        return SandboxResult(
            exit_status=exit_status if exit_status >= 0 else 128 - exit_status,
            stdout=said.text,
            stderr=complained.text,
            cut=cut,
            seconds=time.monotonic() - started,
        )


@functools.cache
def base_python() -> str:
    """The interpreter itself, past any virtual environment: a sandbox has none of its packages."""
    return os.path.realpath(sys.executable)


class Output:
    """What a program wrote to one stream, up to a limit; the rest is read too, and dropped."""

    def __init__(self, most: int) -> None:
        self.full = asyncio.Event()
        self._most = most
        self._kept = bytearray()

    async def read(self, stream: asyncio.StreamReader) -> None:
        while chunk := await stream.read(CHUNK):
            self._kept += chunk[: self._most - len(self._kept)]
            if len(self._kept) >= self._most:
                self.full.set()

    @property
    def text(self) -> str:
        return self._kept.decode(errors="replace")


async def _write(stream: asyncio.StreamWriter, data: bytes) -> None:
    with contextlib.suppress(ConnectionError):  # the program ended before it was read
        stream.write(data)
        await stream.drain()
        stream.close()


def _kill(process: asyncio.subprocess.Process) -> None:
    """End the whole group. Its leader may be gone: while others are left the number stays theirs."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def _signal_name(number: int) -> str:
    return signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"
