"""Our trajectory API beside upstream's `run-api` (atroposlib 0.4.0): the same requests to both, in turns, in one run.

    python benchmarks/trajectory_api.py [--upstream PYTHON] [--groups 10000] [--turns 3] [--check] [--json]

`--upstream` is the Python of a virtual environment with atroposlib 0.4.0; the default is $ATROPOS_UPSTREAM_PYTHON, then
`.cache/upstream-venv/bin/python`. Only ratios mean much: absolute figures differ by machine and by the hour.
`--check` ends with status 1 when a budget of the design is missed.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import signal
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, product
from pathlib import Path
from typing import Any

SEQUENCES = 8
BATCH_SIZE = 64
ASKED = 2_000
REGISTRATION = {
    "wandb_group": "", "wandb_project": "", "batch_size": BATCH_SIZE, "max_token_len": 4096, "checkpoint_dir": "",
    "save_checkpoint_interval": 0, "starting_step": 0, "num_steps": 1_000_000,
}  # fmt: skip
ENVIRONMENT = {"max_token_length": 4096, "desired_name": "bench", "weight": 1.0, "group_size": SEQUENCES}


@dataclass(frozen=True)
class Subject:
    """A server to measure: how to start it on a port."""

    name: str
    command: Callable[[int], list[str]]


@dataclass(frozen=True)
class Budget:
    """One line of the result: a figure of each server, and what the ratio to upstream's must be."""

    what: str
    unit: str
    figures: dict[str, float]
    at_least: float
    higher_is_better: bool

    def ratio(self, subject: str) -> float:
        ours, upstream = self.figures[subject], self.figures["upstream"]
        return ours / upstream if self.higher_is_better else upstream / ours


class Connection:
    """A bare HTTP/1.1 connection: sends prepared bytes, reads one answer."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=120)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._file = self._socket.makefile("rb")

    def ask(self, request: bytes) -> bytes:
        """The answer's body as it came. Raises RuntimeError unless the status is 200."""
        self._socket.sendall(request)
        status = self._file.readline()
        headers = {}
        while (line := self._file.readline().strip()) != b"":
            name, _, value = line.partition(b":")
            headers[name.lower()] = value.strip()
        body = self._file.read(int(headers[b"content-length"]))
        if b" 200 " not in status:
            raise RuntimeError(f"{status!r}: {body[:300]!r}")
        return gzip.decompress(body) if headers.get(b"content-encoding") == b"gzip" else body

    def close(self) -> None:
        self._file.close()
        self._socket.close()


def request(method: str, path: str, body: bytes = b"", *, gzipped: bool = False) -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "host: localhost", "accept-encoding: gzip, deflate"]
    if body:
        lines += ["content-type: application/json", f"content-length: {len(body)}"]
    if gzipped:
        lines.append("content-encoding: gzip")
    return ("\r\n".join(lines) + "\r\n\r\n").encode() + body


def group(tokens: int, *, seed: int = 0) -> bytes:
    """A group like a vLLM environment sends: a quarter prompt, float32 logprobs, as json.dumps writes it."""
    rng = random.Random(seed)

    def float32(value: float) -> float:
        return float(struct.unpack("f", struct.pack("f", value))[0])

    prompt = tokens // 4
    rows = [[rng.randrange(32_000) for _ in range(tokens)] for _ in range(SEQUENCES)]
    logprobs = [[1.0] * prompt + [float32(-3 * rng.random()) for _ in range(tokens - prompt)] for _ in rows]
    masks = [[-100] * prompt + row[prompt:] for row in rows]
    data = {
        "tokens": rows, "masks": masks, "scores": [rng.random() for _ in rows], "inference_logprobs": logprobs,
         "advantages": None, "ref_logprobs": None, "messages": None, "overrides": None,
        "generation_params": {"temperature": 1.0}, "group_overrides": None, "images": None, "env_id": 0,
    }  # fmt: skip
    return json.dumps(data).encode()


@contextmanager
def running(subject: Subject) -> Iterator[tuple[int, int]]:
    """The server's port and process id, once it answers and a trainer and an environment have registered."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    process = subprocess.Popen(subject.command(port), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        connection = _connection_when_up(port, process)
        connection.ask(request("POST", "/register", json.dumps(REGISTRATION).encode()))
        connection.ask(request("GET", "/batch"))
        connection.ask(request("POST", "/register-env", json.dumps(ENVIRONMENT).encode()))
        connection.close()
        yield port, process.pid
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=30)


def _connection_when_up(port: int, process: subprocess.Popen[bytes]) -> Connection:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        try:
            return Connection(port)
        except ConnectionRefusedError:
            time.sleep(0.05)
    raise RuntimeError("the server does not answer")


def post_rate(port: int, body: bytes, count: int, connections: int, *, gzipped: bool = False) -> float:
    """Groups a second over several connections, each of which waits for every answer."""
    prepared = request("POST", "/scored_data", gzip.compress(body) if gzipped else body, gzipped=gzipped)

    def send() -> None:
        connection = Connection(port)
        for _ in range(count // connections):
            connection.ask(prepared)
        connection.close()

    senders = [threading.Thread(target=send) for _ in range(connections)]
    begin = time.perf_counter()
    for sender in senders:
        sender.start()
    for sender in senders:
        sender.join()
    return count / (time.perf_counter() - begin)


def resident_bytes(pid: int) -> int:
    """The process's resident memory when it has come to rest."""
    stat, before, deadline = Path(f"/proc/{pid}/stat"), "", time.monotonic() + 60
    while time.monotonic() < deadline:
        now = " ".join(stat.read_text().split()[13:15])
        if now == before:
            break
        before = now
        time.sleep(0.5)
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def seconds(connection: Connection, prepared: bytes) -> float:
    begin = time.perf_counter()
    connection.ask(prepared)
    return time.perf_counter() - begin


def measure_posts(subjects: list[Subject], turns: int) -> Iterator[Budget]:
    """Each server gets so many turns in each case; the best counts, as other load on the machine only slows.

    Each time it is a new process, so that none pays for what an earlier case left behind.
    """
    short, long = group(256), group(4096)
    cases: list[tuple[str, Callable[[int], float]]] = [
        ("POST 8×256, 1 connection", lambda port: post_rate(port, short, 2000, 1)),
        ("POST 8×256, 8 connections", lambda port: post_rate(port, short, 2000, 8)),
        ("POST 8×256 gzip, 8 connections", lambda port: post_rate(port, short, 2000, 8, gzipped=True)),
        ("POST 8×4096, 1 connection", lambda port: post_rate(port, long, 100, 1)),
        ("POST 8×4096 gzip, 4 connections", lambda port: post_rate(port, long, 100, 4, gzipped=True)),
    ]
    rates: dict[str, dict[str, list[float]]] = {what: {subject.name: [] for subject in subjects} for what, _ in cases}
    for (what, measure), _, subject in product(cases, range(turns), subjects):
        with running(subject) as (port, _pid):
            rates[what][subject.name].append(measure(port))
    for what, of_subject in rates.items():
        yield Budget(what, "groups/s", {name: max(found) for name, found in of_subject.items()}, 5, True)


def measure_queue(subjects: list[Subject], groups: int) -> Iterator[Budget]:
    """Fill each server's queue, then look at what it costs."""
    body = group(256)
    memory, first, following, status_ratio = {}, {}, {}, {}
    for subject in subjects:
        with running(subject) as (port, pid):
            connection = Connection(port)
            ask_status = request("GET", "/status-env", b'{"env_id": 0}')
            status_empty = statistics.median(seconds(connection, ask_status) for _ in range(ASKED))
            empty = resident_bytes(pid)
            post_rate(port, body, groups, 1)
            memory[subject.name] = (resident_bytes(pid) - empty) / groups / 1024
            connection.close()
            connection = Connection(port)
            status_full = statistics.median(seconds(connection, ask_status) for _ in range(ASKED))
            status_ratio[subject.name] = status_full / status_empty
            take = request("GET", "/batch")
            first[subject.name] = seconds(connection, take) * 1000
            following[subject.name] = statistics.median(seconds(connection, take) for _ in range(20)) * 1000
            connection.close()
    yield Budget(f"first /batch, {groups:,} groups queued", "ms", first, 50, False)
    yield Budget("following /batch, 64×256 tokens", "ms", following, 10, False)
    yield Budget("memory per queued group, 8×256", "KiB", memory, 5, False)
    yield Budget(f"/status-env with {groups:,} queued / empty", "×", status_ratio, 0, False)


def subjects_of(upstream_python: str, directory: Path) -> list[Subject]:
    ours = [sys.executable, "-m", "atropos_tui.trajectory_api", "--port"]
    run_api = str(Path(upstream_python).with_name("run-api"))
    journals = iter(range(1_000_000))
    return [
        Subject("upstream", lambda port: [run_api, "--host", "127.0.0.1", "--port", str(port)]),
        Subject("ours", lambda port: [*ours, str(port)]),
        Subject(
            "ours, journal", lambda port: [*ours, str(port), "--journal", str(directory / f"{next(journals)}.journal")]
        ),
    ]


def report(results: Iterable[Budget], as_json: bool) -> bool:
    """Print each line when it is there; whether every budget was met."""
    met = True
    rows: list[dict[str, Any]] = []
    for result in results:
        row: dict[str, Any] = {"what": result.what, "unit": result.unit, "budget": result.at_least, **result.figures}
        for name in result.figures:
            if name != "upstream":
                row[f"ratio {name}"] = result.ratio(name)
                within = result.figures[name] <= 1.2 if result.unit == "×" else result.ratio(name) >= result.at_least
                met = met and within
        rows.append(row)
        figures = "  ".join(f"{name} {figure:>9,.2f}" for name, figure in result.figures.items())
        ratios = "  ".join(f"{value:.1f}×" for key, value in row.items() if key.startswith("ratio"))
        wanted = "(budget ≤ 1.2)" if result.unit == "×" else f"{ratios} (budget {result.at_least}×)"
        if not as_json:
            print(f"{result.what:<45} {figures} {result.unit:<9} {wanted}", flush=True)
    if as_json:
        print(json.dumps({"rows": rows, "met": met}, indent=2))
    return met


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = os.environ.get("ATROPOS_UPSTREAM_PYTHON", ".cache/upstream-venv/bin/python")
    parser.add_argument("--upstream", default=default, metavar="PYTHON")
    parser.add_argument("--groups", type=int, default=10_000, help="how many to queue (default: %(default)s)")
    parser.add_argument("--turns", type=int, default=3, help="of each server at each POST case (default: %(default)s)")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    if not Path(arguments.upstream).with_name("run-api").exists():
        parser.error(f"no run-api beside {arguments.upstream}; install atroposlib 0.4.0 there or give --upstream")
    with tempfile.TemporaryDirectory() as directory:
        subjects = subjects_of(arguments.upstream, Path(directory))
        results = chain(measure_posts(subjects, arguments.turns), measure_queue(subjects, arguments.groups))
        met = report(results, arguments.json)
    return 1 if arguments.check and not met else 0


if __name__ == "__main__":
    sys.exit(main())
