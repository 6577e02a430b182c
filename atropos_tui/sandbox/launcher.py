"""The way into the sandbox, run as a script of its own before any untrusted code. Linux only, standard library only.

There are three processes above the program, so that it can end none that matters. The launcher stays outside and says
who the user is inside. The builder enters new namespaces and gives them a file system. The first process of the new
PID namespace waits for the program; when it ends, however that comes, the kernel ends everything in the namespace.
Each ends with the one above it, so killing the launcher's process group ends all.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any, NoReturn

from limits import SandboxLimits  # type: ignore[import-not-found]  # a neighbour of this script

CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWIPC = 0x00020000, 0x04000000, 0x08000000
CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET = 0x10000000, 0x20000000, 0x40000000
MS_RDONLY, MS_NOSUID, MS_REMOUNT, MS_BIND, MS_MOVE = 0x1, 0x2, 0x20, 0x1000, 0x2000
MS_REC, MS_PRIVATE = 0x4000, 0x40000
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_NO_NEW_PRIVS = 1, 4, 38

SYSTEM_DIRECTORIES = ("usr", "bin", "lib", "lib32", "lib64", "nix")
DEVICES = ("null", "zero", "full", "random", "urandom")
PRIVATE_DIRECTORY = "/tmp"
# Where the new root is put together. Nothing of what goes into it comes from there, on any Linux.
ROOT = Path("/sys")
# Who the program is where root starts it: limits on processes do not hold for root.
NOBODY = 65534

RUN = "import sys; exec(compile(sys.stdin.read(), 'program.py', 'exec'))"
ENVIRONMENT = {"HOME": PRIVATE_DIRECTORY, "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}

_libc = ctypes.CDLL(None, use_errno=True)


def main() -> NoReturn:
    """Run the program on stdin. Writes `started` or what went wrong to the status descriptor."""
    asked = json.loads(sys.argv[1])
    status_fd = int(asked["status_fd"])
    limits = SandboxLimits(**asked["limits"])
    os.set_inheritable(status_fd, False)  # nothing that the program could write to
    contained(launch if asked["isolated"] else run_unisolated, limits, status_fd)


def launch(limits: SandboxLimits, status_fd: int) -> int:
    """The launcher: map the user, then wait for the builder."""
    entered_read, entered_write = os.pipe()
    mapped_read, mapped_write = os.pipe()
    builder = os.fork()
    if builder == 0:
        os.close(entered_read)
        os.close(mapped_write)
        contained(build, limits, status_fd, entered_write, mapped_read)
    os.close(entered_write)
    os.close(mapped_read)
    if os.read(entered_read, 1):
        map_user(builder)
        os.write(mapped_write, b".")
    return wait_for(builder)


def contained(process: Any, limits: SandboxLimits, status_fd: int, *descriptors: int) -> NoReturn:
    """The life of a process: end with the one above, tell what goes wrong."""
    code = 1
    try:
        if sys.platform == "linux":
            call("prctl", PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        code = process(limits, status_fd, *descriptors)
    except OSError as error:
        what = "no namespaces may be made" if error.filename == "unshare" else f"{error.filename} failed"
        os.write(status_fd, f"{what} ({error.strerror})".encode())
    except AttributeError as error:  # a system call that this system does not have
        os.write(status_fd, str(error).encode())
    finally:
        os._exit(code)


def build(limits: SandboxLimits, status_fd: int, entered_fd: int, mapped_fd: int) -> int:
    """The builder: new namespaces, a root directory with nothing but the system's libraries and Python in it."""
    call("unshare", CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS)
    os.write(entered_fd, b".")
    if not os.read(mapped_fd, 1):
        return 1
    make_root(limits)
    first = os.fork()
    if first == 0:
        contained(be_first, limits, status_fd)
    return wait_for(first)


def be_first(limits: SandboxLimits, status_fd: int) -> int:
    """The first process of the PID namespace: start the program, adopt what it leaves behind, end when it ends."""
    os.setsid()
    call("prctl", PR_SET_DUMPABLE, 0, 0, 0, 0)  # so that the program, which may have our user, cannot trace us
    program = os.fork()
    if program == 0:
        contained(become_program, limits, status_fd)
    return wait_for(program)


def become_program(limits: SandboxLimits, status_fd: int) -> NoReturn:
    if os.getuid() == 0:
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
    call("prctl", PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    run_program(limits, status_fd)


def run_unisolated(limits: SandboxLimits, status_fd: int) -> NoReturn:
    others = 0
    for thread in Path("/proc").glob("[0-9]*/task/*"):
        with contextlib.suppress(FileNotFoundError):  # it ended meanwhile
            others += thread.stat().st_uid == os.getuid()
    run_program(limits, status_fd, others)


def run_program(limits: SandboxLimits, status_fd: int, others: int = 0) -> NoReturn:
    limits.apply(others)
    os.write(status_fd, b"started")
    os.execve(sys.executable, [sys.executable, "-I", "-B", "-c", RUN], ENVIRONMENT)


def map_user(builder: int) -> None:
    """Root stays root to build, and nobody is there for the program; anyone else stays who they are."""
    user, group = os.geteuid(), os.getegid()
    process = Path(f"/proc/{builder}")
    if user != 0:
        (process / "setgroups").write_text("deny")
    inside = {NOBODY} if user == 0 else set()
    for name, own in (("uid_map", user), ("gid_map", group)):
        (process / name).write_text("".join(f"{number} {number} 1\n" for number in sorted({own} | inside)))


def make_root(limits: SandboxLimits) -> None:
    os.umask(0o022)
    outside = set(mount_points())
    mount("none", "/", flags=MS_REC | MS_PRIVATE)
    mount("tmpfs", ROOT, "tmpfs", MS_NOSUID, f"size={limits.disk_bytes},nr_inodes=4096,mode=755")
    for name in SYSTEM_DIRECTORIES:
        source = Path("/") / name
        if source.is_symlink():
            (ROOT / name).symlink_to(source.readlink())
        elif source.is_dir():
            bind(source)
    python = Path(sys.base_prefix)
    if not python.is_relative_to("/usr"):
        bind(python)
    (ROOT / "dev").mkdir()
    for device in DEVICES:
        (ROOT / "dev" / device).touch()
        mount(f"/dev/{device}", ROOT / "dev" / device, flags=MS_BIND)
    for number, point in mount_points().items():
        if number not in outside and point != ROOT:
            make_read_only(point)
    private = ROOT / PRIVATE_DIRECTORY.lstrip("/")
    private.mkdir()
    private.chmod(0o1777)
    os.chdir(ROOT)
    mount(ROOT, "/", flags=MS_MOVE)
    os.chroot(".")
    os.chdir(PRIVATE_DIRECTORY)


def bind(directory: Path) -> None:
    target = ROOT / directory.relative_to("/")
    target.mkdir(parents=True, exist_ok=True)
    mount(directory, target, flags=MS_BIND | MS_REC)


def mount_points() -> dict[str, Path]:
    """What is mounted where, by the number of each mount."""
    with open("/proc/self/mountinfo", encoding="utf-8") as mounts:
        fields = [line.split() for line in mounts]
    return {number: Path(point.encode().decode("unicode_escape")) for number, _, _, _, point, *_ in fields}


def make_read_only(point: Path) -> None:
    """A flag that a mount has already must be named again, or the kernel refuses."""
    kept = os.statvfs(point).f_flag & (os.ST_NODEV | os.ST_NOEXEC | os.ST_NOATIME | os.ST_NODIRATIME)
    mount("none", point, flags=MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | kept)


def mount(source: Path | str, target: Path | str, kind: str = "", flags: int = 0, options: str = "") -> None:
    texts = (os.fsencode(source), os.fsencode(target), kind.encode() or None)
    call("mount", *texts, flags, options.encode() or None, about=str(target))


def call(name: str, *arguments: Any, about: str = "") -> None:
    """A system call. Raises OSError."""
    plain = [ctypes.c_ulong(argument) if isinstance(argument, int) else argument for argument in arguments]
    if getattr(_libc, name)(*plain) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), f"{name} {about}".rstrip())


def wait_for(child: int) -> int:
    """Wait until a child ends, reaping others on the way. Returns its exit status as shells tell it."""
    while True:
        pid, status = os.wait()
        if pid == child:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code


if __name__ == "__main__":
    main()
