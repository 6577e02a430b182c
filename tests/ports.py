"""Ports of loopback that stay a test's own while nobody listens on them."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager


def hold_port(port: int = 0) -> socket.socket:
    """A socket that is bound to the port, by default a free one, and does not listen.

    Connections are refused meanwhile, and the system gives the port to nobody else, neither to a server that asks for
    any nor to a client. Only who names it can listen on it, as all servers here do, with SO_REUSEADDR.
    """
    holding = socket.socket()
    holding.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    holding.bind(("127.0.0.1", port))
    return holding


@contextmanager
def held_port() -> Iterator[int]:
    with hold_port() as holding:
        yield port_of(holding)


def port_of(holding: socket.socket) -> int:
    port: int = holding.getsockname()[1]
    return port
