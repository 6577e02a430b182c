"""The unix socket of a worker: where it is, and who may connect (its owner only)."""

from __future__ import annotations

import contextlib
import os
import socket
import tempfile
from pathlib import Path

from atropos_tui.errors import UsageError

# The kernel takes 108 bytes on Linux and 104 on macOS, with the final zero.
_LONGEST_PATH = 100
UNIX_SCHEME = "unix:"
_SHORT_DIRECTORY = "atropos-tui-"


def socket_path_for(run_dir: Path) -> Path:
    """`control.sock` in the run directory, or in a short one of its own where that path would be too long to bind."""
    path = run_dir / "control.sock"
    if len(os.fsencode(path)) <= _LONGEST_PATH:
        return path
    return Path(tempfile.mkdtemp(prefix=_SHORT_DIRECTORY)) / "control.sock"


def url_of_socket(path: Path) -> str:
    """`unix:/absolute/path`: how a socket is named among URLs."""
    return f"{UNIX_SCHEME}{path.absolute()}"


def bind_unix(path: Path) -> socket.socket:
    """A listening socket for the owner only (0600). Raises UsageError when somebody already answers there."""
    if answers(path):
        raise UsageError(f"another worker runs at {path}", "attach to it, or choose another --run-dir")
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        # On Linux the file gets the mode of the socket, so that it is never open to others; elsewhere chmod follows.
        os.fchmod(listener.fileno(), 0o600)
        listener.bind(str(path))
        path.chmod(0o600)
        listener.listen(64)
    except OSError as error:
        listener.close()
        raise UsageError(f"cannot listen on {path}: {error.strerror or error}", "choose another --run-dir") from error
    return listener


def remove_socket(path: Path) -> None:
    """Take the socket away, and the directory that was made for it alone."""
    path.unlink(missing_ok=True)
    if path.parent.name.startswith(_SHORT_DIRECTORY):
        # A run directory that happens to have such a name has other files in it, and stays.
        with contextlib.suppress(OSError):
            path.parent.rmdir()


def answers(path: str | Path) -> bool:
    """Whether a process listens on this unix socket, however slowly; a file left by a dead one doesn't answer."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(str(path))
        except (TimeoutError, BlockingIOError):
            return True
        except OSError:
            return False
    return True
