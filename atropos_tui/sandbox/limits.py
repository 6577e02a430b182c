"""What a program in the sandbox may use. Imports the standard library only: the launcher reads it too."""

from __future__ import annotations

import resource
from dataclasses import dataclass

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class SandboxLimits:
    """Bounds of one program. Those of CPU time, memory, files and descriptors hold for each of its processes.

    `wall_seconds` is the time until it is ended; `output_bytes` what it may write to stdout and stderr, each;
    `disk_bytes` the size of its directory, which is in memory.
    """

    wall_seconds: float = 10.0
    cpu_seconds: int = 5
    memory_bytes: int = 512 * MIB
    file_bytes: int = 16 * MIB
    disk_bytes: int = 32 * MIB
    open_files: int = 64
    processes: int = 16
    output_bytes: int = 64 * 1024

    def apply(self, others: int = 0) -> None:
        """Bind this process and all it starts. They cannot be raised again.

        `others` are the processes that our user has anyway: the kernel counts them too, unless we are in a namespace.
        """
        # A second more before SIGKILL, so that the SIGXCPU that comes first says what it was.
        resource.setrlimit(resource.RLIMIT_CPU, (self.cpu_seconds, self.cpu_seconds + 1))
        for kind, most in (
            (resource.RLIMIT_AS, self.memory_bytes),
            (resource.RLIMIT_FSIZE, self.file_bytes),
            (resource.RLIMIT_NOFILE, self.open_files),
            (resource.RLIMIT_NPROC, self.processes + others),
            (resource.RLIMIT_CORE, 0),
        ):
            resource.setrlimit(kind, (most, most))
