"""The managed-server proxy: the same tracking over HTTP, for programs elsewhere and through our own client."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from atropos_tui.errors import InferenceError
from atropos_tui.http_server import HttpServer, bind_tcp, url_of
from atropos_tui.inference import APIServerConfig, ServerManager, managed_server_proxy
from atropos_tui.inference.managed_server_proxy import create_app
from atropos_tui.inference.proxy_client import ProxyManagedServer
from tests.inference.fake_inference_server import FakeServer, Sample, status
from tests.inference.managing import HELLO, managing
from tests.inference.small_tokenizer import small_tokenizer

TOKENIZER = small_tokenizer()
CALL = '<tool_call>{"name": "look", "arguments": {}}</tool_call>'
TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}


def said(text: str) -> Sample:
    ids = [*TOKENIZER.encode(text), TOKENIZER.eos_token_id]
    return Sample(ids, [-0.5] * len(ids), text)


@asynccontextmanager
async def proxying(fake: FakeServer) -> AsyncIterator[tuple[httpx.AsyncClient, str]]:
    """A proxy on a real socket before a fake server: a client for it and its address."""
    async with fake, managing(fake) as servers:
        app = create_app(servers, TOKENIZER, "small")
        ready = asyncio.Event()
        server = HttpServer(app, on_ready=ready.set, handle_signals=False)
        listener = bind_tcp("127.0.0.1", 0)
        serving = asyncio.create_task(server.serve_on(listener))
        await ready.wait()
        try:
            async with httpx.AsyncClient(base_url=url_of(listener), timeout=60) as http:
                yield http, url_of(listener)
        finally:
            server.should_exit = True
            await serving
            await app.state.sessions.close()
            listener.close()


async def test_a_session_chats_and_has_aligned_nodes_until_it_is_deleted() -> None:
    fake = FakeServer("vllm", [said("hello"), said("the")])
    async with proxying(fake) as (http, _):
        session = (await http.post("/sessions/create", json={})).json()
        assert session["base_url"] == fake.url
        assert (session["model_name"], session["tool_parser"]) == ("small", "hermes")
        path = f"/{session['uuid']}/v1/chat/completions"
        first = (await http.post(path, json={"messages": HELLO})).json()
        assert first["choices"] == [
            {"index": 0, "message": {"role": "assistant", "content": "hello"}, "finish_reason": "stop"}
        ]
        messages = [*HELLO, first["choices"][0]["message"], {"role": "user", "content": "more"}]
        await http.post(path, json={"messages": messages, "max_tokens": 7, "stop": ["x"], "top_p": 0.5})
        assert fake.requests[-1][1] | {"max_tokens": 7, "stop": ["x"], "top_p": 0.5} == fake.requests[-1][1]
        (node,) = (await http.get(f"/{session['uuid']}/nodes")).json()["nodes"]
        assert len(node["tokens"]) == len(node["masked_tokens"]) == len(node["logprobs"])
        assert [token for token in node["masked_tokens"] if token != -100] == said("hello").tokens + said("the").tokens
        listed = (await http.get("/sessions")).json()["sessions"]
        assert [(row["uuid"], row["num_nodes"]) for row in listed] == [(session["uuid"], 1)]
        assert (await http.delete(f"/{session['uuid']}")).json() == {"status": "deleted", "uuid": session["uuid"]}
        assert (await http.get(f"/{session['uuid']}/nodes")).status_code == 404


async def test_it_tells_of_itself_and_its_servers() -> None:
    fake = FakeServer("vllm")
    async with proxying(fake) as (http, _):
        health = (await http.get("/health")).json()
        assert health == {"status": "ok", "model": "small", "sessions": 0, "servers": 1, "healthy_servers": 1}
        assert (await http.get("/v1/models")).json()["data"][0]["id"] == "small"
        (row,) = (await http.get("/servers")).json()["servers"]
        assert row == {"index": 0, "base_url": fake.url, "healthy": True, "model_name": "m", "server_type": "vllm"}


async def test_errors_are_in_openais_form() -> None:
    fake = FakeServer("vllm")
    async with proxying(fake) as (http, _):
        uuid = (await http.post("/sessions/create", json={})).json()["uuid"]
        fake.faults.append(status(400, {"error": {"message": "too long"}}))
        failed = await http.post(f"/{uuid}/v1/chat/completions", json={"messages": HELLO})
        empty = await http.post(f"/{uuid}/v1/chat/completions", json={"messages": []})
        unknown = await http.post("/nobody/v1/chat/completions", json={"messages": HELLO})
        elsewhere = await http.post("/sessions/create", json={"base_url": "http://elsewhere/v1"})
        no_parser = await http.post("/sessions/create", json={"tool_parser": "klingon"})
    replies = (failed, empty, unknown, elsewhere, no_parser)
    assert [reply.status_code for reply in replies] == [500, 400, 404, 404, 400]
    assert "too long" in failed.json()["error"]["message"]
    assert "choose one of: hermes" in no_parser.json()["error"]["message"]
    for reply in replies:
        assert set(reply.json()["error"]) == {"message", "type", "code"}


async def test_a_prompt_can_be_rendered_without_sampling() -> None:
    fake = FakeServer("vllm")
    async with proxying(fake) as (http, _):
        uuid = (await http.post("/sessions/create", json={})).json()["uuid"]
        rendered = (await http.post(f"/{uuid}/v1/chat/completions/render", json={"messages": HELLO})).json()
        assert fake.requests == []
        await http.post(f"/{uuid}/v1/chat/completions", json={"messages": HELLO})
        assert fake.requests[-1][1]["prompt"]["prompt_token_ids"] == rendered["token_ids"]
    text = TOKENIZER.apply_chat_template(HELLO, tokenize=False, add_generation_prompt=True)
    ids = TOKENIZER.encode(text)
    assert rendered == {"prompt_text": text, "token_ids": ids, "num_tokens": len(ids)}


async def test_sessions_that_nobody_uses_end(monkeypatch: pytest.MonkeyPatch) -> None:
    async with proxying(FakeServer("vllm")) as (http, _):
        await http.post("/sessions/create", json={})
        monkeypatch.setattr(managed_server_proxy, "SESSION_TTL", -1.0)
        await http.post("/sessions/create", json={})
        assert len((await http.get("/sessions")).json()["sessions"]) == 1


async def test_other_servers_are_for_new_sessions() -> None:
    old = FakeServer("vllm", [said("old")])
    async with FakeServer("vllm", [said("new")]) as new, proxying(old) as (http, _):
        before = (await http.post("/sessions/create", json={})).json()["uuid"]
        setup = {"model_name": "m2", "servers": [{"base_url": new.url}]}
        assert (await http.post("/setup", json=setup)).json() == {"status": "ok", "servers": 1, "model_name": "m2"}
        after = (await http.post("/sessions/create", json={})).json()["uuid"]
        answers = [
            (await http.post(f"/{uuid}/v1/chat/completions", json={"messages": HELLO})).json()["choices"][0]
            for uuid in (before, after)
        ]
        assert [answer["message"]["content"] for answer in answers] == ["old", "new"]
        await http.delete(f"/{before}")


async def test_a_manager_with_a_proxy_gives_managed_servers_that_live_there() -> None:
    fake = FakeServer("vllm", [said("I look. " + CALL), said("done")])
    async with proxying(fake) as (http, url):
        servers = ServerManager([APIServerConfig(base_url=fake.url, server_type="vllm")], proxy_url=url)
        async with servers.managed_server(TOKENIZER, base_url=fake.url) as managed:
            assert isinstance(managed, ProxyManagedServer)
            assert managed.get_url() == f"{url}/{managed.session_uuid}/v1"
            answer = await managed.chat_completion(messages=HELLO, tools=[TOOL], max_tokens=9)
            (choice,) = answer.choices
            (node,) = managed.get_state()["nodes"]
            assert choice.message.tool_calls[0]["function"]["name"] == "look"
            assert choice.finish_reason == "tool_calls"
            assert node.tokens[-1] == TOKENIZER.eos_token_id
            assert fake.requests[-1][1]["max_tokens"] == 9
        assert (await http.get("/sessions")).json()["sessions"] == []


async def test_a_proxy_that_is_none_is_an_error_that_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    async with FakeServer("vllm") as fake:
        monkeypatch.setenv("ATROPOS_PROXY_URL", fake.root)
        servers = ServerManager([APIServerConfig(base_url=fake.url)])
        assert servers.use_proxy
        with pytest.raises(InferenceError, match="404"):
            async with servers.managed_server() as managed:
                raise AssertionError(managed)


def test_the_servers_of_a_file_are_of_type_vllm_unless_they_say_otherwise() -> None:
    rows: list[dict[str, Any]] = [{"base_url": "http://a/v1"}, {"base_url": "http://b/v1", "server_type": "sglang"}]
    configs = managed_server_proxy.server_configs(rows, "m", "t")
    assert [(c.server_type, c.model_name, c.tokenizer_name) for c in configs] == [
        ("vllm", "m", "t"),
        ("sglang", "m", "t"),
    ]
