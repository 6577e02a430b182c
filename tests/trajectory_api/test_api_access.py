"""Who may use the server, and what the command line refuses."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from atropos_tui.errors import UsageError
from atropos_tui.monitor.supervisor import ChildProcess, start_process
from atropos_tui.trajectory_api.guard import is_loopback, read_token
from tests.trajectory_api.conftest import Api

TOKEN = "correct-horse"


@pytest.fixture
def guarded(make_api: Callable[..., Api]) -> Api:
    return make_api(token=TOKEN)


async def test_with_a_token_everything_but_health_wants_it(guarded: Api) -> None:
    assert (await guarded.get("/health")).json() == {"status": "ok"}
    paths = (await guarded.get("/openapi.json", headers={"authorization": f"Bearer {TOKEN}"})).json()["paths"]
    assert len(paths) > 20
    for path, operations in paths.items():
        for method in operations:
            if path != "/health":
                response = await guarded.request(method.upper(), path)
                assert response.status_code == 401, path
                assert response.headers["www-authenticate"] == "Bearer"
                assert "Authorization: Bearer" in response.json()["detail"]


@pytest.mark.parametrize("wrong", ["Bearer nonsense", "Bearer", f"Bearer {TOKEN}x", f"Token {TOKEN}", "Basic !", TOKEN])
async def test_a_wrong_token_resets_nothing(guarded: Api, wrong: str) -> None:
    assert (await guarded.get("/reset_data", headers={"authorization": wrong})).status_code == 401
    assert (await guarded.get("/reset_data", headers={"authorization": f"Bearer {TOKEN}"})).status_code == 200


async def test_clients_that_know_no_tokens_can_have_it_in_their_url(guarded: Api) -> None:
    assert (await guarded.get("/status", auth=("anybody", TOKEN))).status_code == 200
    assert (await guarded.get("/status", auth=("anybody", "nonsense"))).status_code == 401


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
async def test_web_pages_of_other_origins_can_neither_read_nor_take(api: Api, site: str) -> None:
    headers = {"sec-fetch-site": site, "origin": "http://evil.example"}
    response = await api.get("/batch", headers=headers)
    assert response.status_code == 403
    assert "access-control-allow-origin" not in response.headers


@pytest.mark.parametrize(
    ("host", "status"),
    [("localhost:8000", 200), ("127.0.0.1", 200), ("[::1]:8000", 200), ("evil.example:8000", 403), ("10.0.0.1", 403)],
)
async def test_a_browser_must_come_by_a_loopback_name(api: Api, host: str, status: int) -> None:
    response = await api.get("/docs", headers={"sec-fetch-site": "same-origin", "host": host})
    assert response.status_code == status
    assert "access-control-allow-origin" not in response.headers


async def test_a_page_of_a_name_that_was_made_to_lead_here_can_neither_read_nor_take(api: Api) -> None:
    """Browsers name no site in requests to such a name, as it is no safe one, but always languages."""
    headers = {"host": "evil.example:8000", "accept-language": "en-US,en;q=0.9"}
    assert (await api.get("/batch", headers=headers)).status_code == 403
    assert (await api.get("/reset_data", headers=headers)).status_code == 403
    assert (await api.get("/batch", headers={**headers, "host": "localhost:8000"})).status_code == 200


async def test_clients_that_are_no_browsers_may_come_by_a_forwarded_name(api: Api) -> None:
    assert (await api.get("/batch", headers={"host": "login.cluster.example:8000"})).status_code == 200


@pytest.mark.parametrize(
    ("host", "loopback"),
    [("127.0.0.1", True), ("localhost", True), ("::1", True), ("127.8.0.1", True), ("0.0.0.0", False), ("::", False),
     ("node7", False), ("10.0.0.1", False), ("", False)],
)  # fmt: skip
def test_loopback_addresses_are_known_as_such(host: str, loopback: bool) -> None:
    assert is_loopback(host) == loopback


def test_a_token_file_holds_one_token(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("abc\n")
    assert read_token(file) == "abc"
    for text, fault in (("", "exactly one"), ("a b", "exactly one"), ("a\nb\n", "exactly one"), ("ü", "ASCII")):
        file.write_text(text, encoding="utf-8")
        with pytest.raises(UsageError, match=fault):
            read_token(file)


def refusal(*flags: str) -> str:
    """What the command says on standard error when it refuses to start."""
    command = [sys.executable, "-m", "atropos_tui.trajectory_api", *flags]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 2
    assert ended.stdout == ""
    return ended.stderr


def test_bad_input_is_one_line_and_status_2(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        notes = tmp_path / "notes"
        notes.write_text("not a database, but long enough to be taken for the header of one" * 20)
        cases = [
            (("--port", port), "cannot listen on 127.0.0.1"),
            (("--host", "0.0.0.0", "--port", "0"), "give a --token-file"),
            (("--host", "0.0.0.0", "--token-file", str(tmp_path / "none")), "cannot read the token file"),
            (("--port", "0", "--journal", str(notes)), "cannot use the journal"),
            (("--port", "0", "--journal", "/proc/none/journal"), "cannot use the journal"),
            (("--port", "0", "--strict-upstream", "--journal", str(tmp_path / "j")), "keeps no journal"),
            (("--port", "0", "--journal", "/dev/null"), "no regular file"),
            (("--port", "0", "--max-body-mb", "0"), "lets nothing in"),
            (("--port", "0", "--environment-timeout", "nan"), "is no time"),
        ]
        for flags, says in cases:
            line = refusal(*flags)
            assert says in line
            assert line.count("\n") == 1


def test_a_wrong_flag_is_named_in_one_line() -> None:
    for flags in (("--nonsense",), ("--port", "x"), ("--port", "70000"), ("--journal", "a", "--no-journal")):
        (line,) = refusal(*flags).splitlines()
        assert flags[-1].removeprefix("--") in line


def test_whoever_started_it_is_told_why_it_did_not_start(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "atropos_tui.trajectory_api"]
    with pytest.raises(UsageError, match="give a --token-file"):
        start_process(command, ["--host", "0.0.0.0"], log_path=tmp_path / "api.log")


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_without_a_traceback(how: signal.Signals) -> None:
    command = [sys.executable, "-m", "atropos_tui.trajectory_api", "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        assert "trajectory API at http://127.0.0.1:" in server.stderr.readline()
        server.send_signal(how)
        assert server.wait(timeout=60) == 0
        assert server.stderr.read() == ""


def test_it_ends_with_its_owner() -> None:
    lifeline, held = os.pipe()
    command = [sys.executable, "-m", "atropos_tui.trajectory_api", "--port", "0", "--lifeline-fd", str(lifeline)]
    with subprocess.Popen(command, pass_fds=[lifeline], stderr=subprocess.PIPE) as server:
        assert server.stderr is not None
        assert b"trajectory API at http://127.0.0.1:" in server.stderr.readline()
        os.close(lifeline)
        assert server.poll() is None
        os.close(held)
        server.wait(timeout=60)


def test_a_token_of_a_file_is_asked_for_over_http(start_server: Callable[..., ChildProcess], tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(TOKEN)
    url = str(start_server("--token-file", str(file)).ready["url"])
    assert httpx.get(f"{url}/status", timeout=60).status_code == 401
    headers = {"authorization": f"Bearer {TOKEN}"}
    assert httpx.get(f"{url}/status", headers=headers, timeout=60).status_code == 200
