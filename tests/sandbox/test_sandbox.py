"""The sandbox holds: programs try to get out of it, to use up the machine, and to leave something behind."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shutil
import socket
import subprocess
import sys
import textwrap
import time
import uuid
from pathlib import Path
from typing import Any

import pytest

from atropos_tui.sandbox import Sandbox, SandboxError, SandboxLimits, SandboxResult
from tests.sandbox.processes import command_line, marked_processes

LIMITS = SandboxLimits(wall_seconds=60.0, cpu_seconds=10, memory_bytes=256 * 2**20, output_bytes=10_000)


def why_not_isolated() -> str:
    try:
        asyncio.run(Sandbox().check())
    except SandboxError as error:
        return error.fault
    return ""


WHY_NOT = why_not_isolated()
needs_isolation = pytest.mark.skipif(bool(WHY_NOT), reason=f"this system cannot isolate programs: {WHY_NOT}")


async def run(program: str, **limits: Any) -> SandboxResult:
    settings = {name: getattr(LIMITS, name) for name in LIMITS.__slots__} | limits
    return await Sandbox(SandboxLimits(**settings)).run(textwrap.dedent(program))


@pytest.fixture
def listener() -> Any:
    """A socket of this machine that a program must not reach."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        yield listening


@needs_isolation
async def test_a_program_says_what_it_says_and_ends_as_it_ends() -> None:
    result = await run("import sys; print(6 * 7); print('oh', file=sys.stderr); sys.exit(3)")
    assert (result.stdout, result.stderr, result.exit_status, result.cut) == ("42\n", "oh\n", 3, "")
    assert result.ending == "it ended with status 3"
    assert (await run("x = 1")).ending == ""


@needs_isolation
async def test_programs_run_beside_each_other_and_see_nothing_of_each_other() -> None:
    program = "open('f', 'x').write('x'); import os, time; time.sleep(0.3); print(os.listdir('.'))"
    results = await asyncio.gather(*(run(program) for _ in range(4)))
    assert [result.stdout for result in results] == ["['f']\n"] * 4


@needs_isolation
async def test_a_fork_bomb_ends_with_its_sandbox() -> None:
    mark = uuid.uuid4().hex
    program = f"""
        import os, sys, time
        if os.fork() == 0:
            os.execv(sys.executable, [sys.executable, '-c', 'import time; time.sleep(600)', '{mark}'])
        forked = 0
        while forked < 10_000:
            try:
                if os.fork() == 0:
                    time.sleep(600)
                forked += 1
            except BlockingIOError:
                break
        print(forked)
    """
    result = await run(program, processes=16)
    assert 1 <= int(result.stdout) <= 16
    assert not marked_processes(mark)


@needs_isolation
async def test_a_fork_bomb_that_never_ends_is_ended_by_the_clock() -> None:
    mark = uuid.uuid4().hex
    program = f"""
        import os, sys
        for _ in range(4):
            if os.fork() == 0:
                os.setsid()
                os.execv(sys.executable, [sys.executable, '-c', 'while True: pass', '{mark}'])
        while True:
            pass
    """
    result = await run(program, wall_seconds=2.0)
    assert result.cut == "time"
    assert result.seconds < 60
    assert not marked_processes(mark)


@needs_isolation
async def test_what_a_program_leaves_running_ends_with_it() -> None:
    mark = uuid.uuid4().hex
    program = f"""
        import os, sys
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                for descriptor in range(3):
                    os.close(descriptor)
                os.execv(sys.executable, [sys.executable, '-c', 'import time; time.sleep(600)', '{mark}'])
            os._exit(0)
        os.wait()
        print("gone")
    """
    result = await run(program)
    assert result.stdout == "gone\n"
    assert not marked_processes(mark)


@needs_isolation
async def test_a_memory_bomb_gets_no_more_than_its_limit() -> None:
    result = await run(
        """
        blocks = []
        try:
            while True:
                blocks.append(bytearray(2**20))
        except MemoryError:
            count = len(blocks)
            blocks.clear()
            print(count)
        """
    )
    assert 50 < int(result.stdout) <= 256


@needs_isolation
@pytest.mark.parametrize("stream", ["stdout", "stderr"])
async def test_endless_output_is_cut(stream: str) -> None:
    result = await run(f"import sys\nwhile True: sys.{stream}.write('x' * 1000)")
    assert result.cut == "output"
    assert result.ending == "it wrote too much"
    assert len(getattr(result, stream)) == LIMITS.output_bytes


@needs_isolation
async def test_an_endless_loop_is_ended_by_its_processor_time() -> None:
    result = await run("while True: pass", cpu_seconds=1)
    assert result.cut == ""
    assert result.ending == "it was killed by SIGXCPU"


@needs_isolation
async def test_a_program_that_only_waits_is_ended_by_the_clock() -> None:
    result = await run("import time; time.sleep(600)", wall_seconds=1.0)
    assert result.cut == "time"
    assert re.fullmatch(r"it did not end within \d+\.\d s", result.ending)
    assert result.seconds >= 1.0


@needs_isolation
async def test_files_and_the_directory_have_a_size() -> None:
    result = await run(
        """
        try:
            open('big', 'wb').write(bytes(3 * 2**20))
        except OSError as error:
            print(error.strerror)
        written = 0
        try:
            while True:
                open(f'part{written}', 'wb').write(bytes(2**20))
                written += 1
        except OSError as error:
            print(error.strerror)
        print(written)
        """,
        file_bytes=2 * 2**20,
        disk_bytes=8 * 2**20,
    )
    too_large, full, written = result.stdout.splitlines()
    assert (too_large, full) == ("File too large", "No space left on device")
    assert 1 <= int(written) < 8


@needs_isolation
async def test_nothing_of_the_home_directory_or_of_the_environment_can_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "hunter2")
    secret = tmp_path / "secret"
    secret.write_text("hunter2")
    hidden = [
        str(secret),
        str(Path.home() / ".bashrc"),
        "/etc/passwd",
        "/proc/self/environ",
        "/proc/1/environ",
        __file__,
    ]
    program = f"""
        import os
        for path in {hidden!r}:
            try:
                open(path).read()
                print('read', path)
            except OSError:
                pass
        print(sorted(os.listdir('/')), os.listdir('.'), 'hunter2' in str(os.environ))
    """
    result = await run(program)
    (seen,) = result.stdout.splitlines()
    assert "'proc'" not in seen
    assert seen.endswith("[] False")


@needs_isolation
async def test_nothing_can_be_written_but_its_own_directory() -> None:
    result = await run(
        """
        import os, sys
        for path in ('/usr/x', '/usr/bin/python3', sys.base_prefix + '/x', os.__file__, '/dev/x', '/x'):
            try:
                open(path, 'a').write('x')
                print('wrote', path)
            except OSError:
                pass
        open('own', 'w').write('x')
        """
    )
    # The root itself is in memory and the program's own where it is not root; nothing of it is of this machine.
    assert set(result.stdout.split("\n")) <= {"", "wrote /x", "wrote /dev/x"}
    assert result.ending == ""
    assert "x" not in os.listdir("/")


@needs_isolation
async def test_there_is_no_network_not_even_to_this_machine(listener: Any) -> None:
    host, port = listener.getsockname()
    program = f"""
        import socket
        for address in (('{host}', {port}), ('8.8.8.8', 53)):
            try:
                socket.create_connection(address, timeout=2)
                print('connected')
            except OSError:
                pass
        try:
            abstract = socket.socket(socket.AF_UNIX)
            abstract.connect(chr(0) + 'atropos')
            print('connected')
        except OSError:
            pass
        try:
            socket.getaddrinfo('example.com', 80)
            print('resolved')
        except OSError:
            print('nothing')
    """
    with socket.socket(socket.AF_UNIX) as abstract:
        abstract.bind("\0atropos")
        abstract.listen()
        assert (await run(program)).stdout == "nothing\n"


@needs_isolation
async def test_no_process_above_can_be_killed_or_traced() -> None:
    """The program kills what it can name: its parent, its group, all, and the numbers of ours."""
    ours = [os.getpid(), os.getppid()]
    result = await run(
        f"""
        import ctypes, os, signal
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        libc = ctypes.CDLL(None, use_errno=True)
        print(libc.ptrace(16, ctypes.c_long(os.getppid()), None, None))
        for number in [os.getppid(), -1, 0, 1, *{ours!r}]:
            try:
                os.kill(number, signal.SIGTERM)
            except OSError:
                pass
        print('alive')
        os.kill(-1, signal.SIGKILL)
        os.kill(os.getppid(), signal.SIGKILL)
        os.killpg(0, signal.SIGKILL)
        """
    )
    assert result.stdout == "-1\nalive\n"
    os.kill(os.getppid(), 0)


@needs_isolation
async def test_a_program_has_no_descriptors_but_its_own_three() -> None:
    program = """
        import os
        for number in range(3, 64):
            try:
                os.write(number, b'a word about myself')
                print('wrote', number)
            except OSError:
                pass
    """
    assert (await run(program)).stdout == ""


@needs_isolation
async def test_limits_and_privileges_cannot_be_had_back() -> None:
    result = await run(
        """
        import ctypes, os, resource
        libc = ctypes.CDLL(None, use_errno=True)
        def tried(name, attempt):
            try:
                attempt()
                print('could', name)
            except (OSError, ValueError):
                pass
        def check(status):
            if status != 0:
                raise OSError(ctypes.get_errno())
        for kind in (resource.RLIMIT_AS, resource.RLIMIT_NPROC, resource.RLIMIT_CPU):
            tried('raise a limit', lambda: resource.setrlimit(kind, (resource.RLIM_INFINITY, resource.RLIM_INFINITY)))
        tried('become root', lambda: os.setuid(0))
        tried('mount', lambda: check(libc.mount(b'none', b'/tmp', b'tmpfs', 0, None)))
        tried('unmount', lambda: check(libc.umount2(b'/', 2)))
        tried('chroot', lambda: os.chroot('/'))
        print(os.getuid() != 0)
        """
    )
    assert result.stdout == "True\n"


@needs_isolation
async def test_a_cancelled_run_leaves_nothing(tmp_path: Path) -> None:
    mark = uuid.uuid4().hex
    program = (
        f"import os, sys; os.execv(sys.executable, [sys.executable, '-c', 'import time; time.sleep(600)', '{mark}'])"
    )
    running = asyncio.create_task(run(program, wall_seconds=60.0))
    await until_true(lambda: bool(marked_processes(mark)))
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running
    await until_true(lambda: not marked_processes(mark))


@needs_isolation
async def test_a_program_ends_with_its_owner_however_that_ends() -> None:
    mark = uuid.uuid4().hex
    program = (
        f"import os, sys; os.execv(sys.executable, [sys.executable, '-c', 'import time; time.sleep(600)', '{mark}'])"
    )
    owner = f"import asyncio; from atropos_tui.sandbox import Sandbox; asyncio.run(Sandbox().run({program!r}))"
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", owner)
    await until_true(lambda: bool(sleeping(mark)))
    process.kill()
    await process.wait()
    await until_true(lambda: not sleeping(mark))


async def test_without_isolation_the_limits_hold_all_the_same() -> None:
    """Nothing here needs namespaces."""
    settings = {name: getattr(LIMITS, name) for name in LIMITS.__slots__}
    trusting = Sandbox(SandboxLimits(**settings | {"wall_seconds": 60.0}), isolated=False)
    hasty = Sandbox(SandboxLimits(**settings | {"wall_seconds": 3.0}), isolated=False)
    await trusting.check()
    assert (await trusting.run("import os; print(os.listdir('.'))")).stdout == "[]\n"
    assert (await trusting.run("while True: print('x' * 1000)")).cut == "output"
    assert "MemoryError" in (await trusting.run("x = bytearray(2**30)")).stderr
    assert (await hasty.run("import os, time\nos.fork()\ntime.sleep(600)")).cut == "time"


def test_a_system_without_namespaces_is_told_of_and_nothing_is_run(tmp_path: Path) -> None:
    """In a namespace of its own that allows none below it; as things are where the system has none anyway."""
    written = tmp_path / "written"
    program = f"""
        import asyncio
        from atropos_tui.sandbox import Sandbox, SandboxError
        try:
            asyncio.run(Sandbox().run("open({str(written)!r}, 'w')"))
        except SandboxError as error:
            print("refused:", error)
    """
    command = [sys.executable, "-c", textwrap.dedent(program)]
    if not WHY_NOT:
        if shutil.which("unshare") is None:
            pytest.skip("there is no unshare(1) to take namespaces away with")
        forbid = 'echo 0 > /proc/sys/user/max_user_namespaces && exec "$@"'
        command = ["unshare", "--user", "--map-root-user", "sh", "-c", forbid, "sh", *command]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.startswith("refused: "), done.stderr
    assert WHY_NOT or done.stdout.startswith("refused: no namespaces may be made (")
    assert not written.exists()


def sleeping(mark: str) -> list[int]:
    """The marked processes but the owner, whose command line has the program's text in it."""
    return [pid for pid in marked_processes(mark) if "asyncio" not in command_line(pid)]


async def until_true(condition: Any, seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.02)
