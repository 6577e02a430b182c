"""The trajectory API tells where the runs that feed it can be watched, and the screen takes that as it is told."""

from __future__ import annotations

import asyncio
import http.server
import json
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from atropos_tui.errors import AtroposError
from atropos_tui.monitor.registered_runs import registered_runs
from atropos_tui.verbs.fleet import further_runs
from tests.end_to_end.marked_processes import wait_until
from tests.verbs.served_runs import ServedRuns
from tests.verbs.terminal import Terminal


def control_urls(api_url: str) -> list[str]:
    rows = httpx.get(f"{api_url}/inspect/environments", timeout=60).raise_for_status().json()["environments"]
    return [row["control_url"] for row in rows if row["connected"] and row["control_url"]]


def test_a_run_elsewhere_on_this_machine_is_found_attached_to_and_listed(
    runs: ServedRuns, trajectory_api: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_dir = runs.serve("elsewhere")
    socket = runs.worker(run_dir)["socket"]
    url = f"unix:{socket}"
    wait_until(lambda: url in control_urls(trajectory_api))
    assert "running" in runs.run("attach", url, "--once")
    assert socket not in asyncio.run(further_runs(trajectory_api, []))

    monkeypatch.setenv("ATROPOS_TUI_RUNS", str(tmp_path / "another root"))
    assert socket in asyncio.run(further_runs(trajectory_api, []))
    environment = runs.environment | {"ATROPOS_TUI_RUNS": str(tmp_path / "another root")}
    fleet = Terminal(runs.command("fleet", "--api", trajectory_api), environment)
    try:
        fleet.wait_for("1 alive", "elsewhere", "running")
        fleet.press("\r")
        fleet.wait_for("Rollout queue", "● running")
    finally:
        fleet.end()


def test_a_socket_that_is_not_here_is_told_as_such(runs: ServedRuns) -> None:
    runs.run("attach", "unix:/nowhere/control.sock", status=2)


class _Api(http.server.BaseHTTPRequestHandler):
    """Answers as it is told to, by path."""

    status = 200
    body: object = None
    asked: str | None = None

    def do_GET(self) -> None:
        type(self).asked = self.headers.get("Authorization")
        self.send_response(self.status)
        body = json.dumps(self.body).encode()
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *told: object) -> None:
        del told


@pytest.fixture
def api() -> Iterator[tuple[type[_Api], str]]:
    class Api(_Api):
        pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Api)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield Api, f"127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def row(control_url: str | None, *, connected: bool = True) -> dict[str, object]:
    return {"control_url": control_url, "connected": connected}


def test_only_what_is_connected_and_can_be_reached_is_taken(api: tuple[type[_Api], str]) -> None:
    served, address = api
    urls = ["http://node4:7777", "unix:/nowhere/control.sock", "somewhere", None]
    served.body = {"environments": [*map(row, urls), row("http://node5:7777", connected=False)]}
    assert asyncio.run(registered_runs(f"http://any:sesame@{address}/")) == ["http://node4:7777"]
    assert served.asked == "Bearer sesame"
    assert asyncio.run(further_runs(f"http://{address}", ["http://node1:1"])) == ["http://node4:7777"]
    assert asyncio.run(further_runs(f"http://{address}", ["http://node4:7777"])) == []


@pytest.mark.parametrize(
    ("status", "body", "words"),
    [(404, {}, "HTTP 404; it must be one of ours"), (200, {"status": "up"}, "tells no environments")],
)
def test_another_server_is_told_as_such_and_no_token_is_shown(
    api: tuple[type[_Api], str], status: int, body: object, words: str
) -> None:
    served, address = api
    served.status, served.body = status, body
    with pytest.raises(AtroposError) as refused:
        asyncio.run(registered_runs(f"http://any:sesame@{address}"))
    assert words in str(refused.value)
    assert "sesame" not in str(refused.value)


def test_nobody_there_is_told_as_such() -> None:
    with pytest.raises(AtroposError, match="does not answer"):
        asyncio.run(registered_runs("http://127.0.0.1:9"))
