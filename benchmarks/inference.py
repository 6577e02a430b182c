"""Inference clients side by side: ours and atroposlib's, on the same stub server with the same requests.

    python benchmarks/inference.py --upstream-python /path/to/venv-with-atroposlib/bin/python

Without `--upstream-python` only ours is measured. Requests per second and CPU per request are those of the client's
process; the stub runs in a process of its own and answers from memory.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, ClassVar

CHOICES = 8
HELLO = [{"role": "user", "content": "hello"}]


def chat_body() -> bytes:
    choice = {"finish_reason": "stop", "message": {"role": "assistant", "content": "hello " * 64}}
    return json.dumps(
        {
            "id": "x", "object": "chat.completion", "created": 1, "model": "m",
            "choices": [{"index": i, **choice} for i in range(CHOICES)],
            "usage": {"prompt_tokens": 8, "completion_tokens": 512, "total_tokens": 520},
        }
    ).encode()  # fmt: skip


def tokens_body(length: int) -> bytes:
    logprobs = [[[{str(10 + position % 100): -0.123456789}] for position in range(length)] for _ in range(CHOICES)]
    return json.dumps({"logprobs": logprobs, "finish_reasons": ["stop"] * CHOICES}).encode()


class StubProtocol(asyncio.Protocol):
    """Just enough HTTP. A request of one token is answered after 10 ms, others at once."""

    bodies: ClassVar[dict[str, bytes]] = {
        "chat": chat_body(),
        "short": tokens_body(64),
        "long": tokens_body(1024),
        "health": b"{}",
    }

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.received = b""

    def data_received(self, data: bytes) -> None:
        self.received += data
        while (end := self.received.find(b"\r\n\r\n")) >= 0:
            head = self.received[:end].lower()
            _, found, rest = head.partition(b"content-length:")
            length = int(rest.split(b"\r\n")[0]) if found else 0
            if len(self.received) < end + 4 + length:
                return
            body, self.received = self.received[end + 4 : end + 4 + length], self.received[end + 4 + length :]
            self.answer(head, body)

    def answer(self, head: bytes, body: bytes) -> None:
        max_tokens = json.loads(body).get("max_tokens") if body else None
        kind = "long" if max_tokens == 1024 else "short"
        if head.startswith(b"get"):
            kind = "health"
        elif b"/chat/completions" in head:
            kind = "chat"
        content = self.bodies[kind]
        lines = [
            b"HTTP/1.1 200 OK",
            b"content-type: application/json",
            b"content-length: %d" % len(content),
            b"",
            content,
        ]
        delay = 0.01 if max_tokens == 1 else 0.0
        asyncio.get_running_loop().call_later(delay, self.transport.write, b"\r\n".join(lines))


async def serve_stub() -> None:
    server = await asyncio.get_running_loop().create_server(StubProtocol, "127.0.0.1", 0, backlog=2048)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


def make_servers(side: str, server_type: str, url: str, tokenizer: str, slots: int) -> Any:
    if side == "upstream":
        from atroposlib.envs.server_handling.server_baseline import APIServerConfig
        from atroposlib.envs.server_handling.server_manager import ServerManager
    else:
        from atropos_tui.inference import APIServerConfig, ServerManager
    config = APIServerConfig(
        base_url=url, api_key="x", server_type=server_type, model_name="m", tokenizer_name=tokenizer,
        num_max_requests_at_once=slots,
    )  # fmt: skip
    return ServerManager([config])


async def measure(ask: Callable[[], Awaitable[Any]], requests: int, at_once: int) -> dict[str, float]:
    """Requests a second and microseconds of CPU a request, after a round that opens the connections."""
    turns = asyncio.Semaphore(at_once)

    async def one() -> None:
        async with turns:
            await ask()

    await asyncio.gather(*(one() for _ in range(at_once)))
    cpu, began = time.process_time(), time.perf_counter()
    await asyncio.gather(*(one() for _ in range(requests)))
    seconds = time.perf_counter() - began
    return {"per_second": requests / seconds, "cpu_us": 1e6 * (time.process_time() - cpu) / requests}


async def run_scenario(side: str, scenario: str, url: str, tokenizer: str) -> dict[str, float]:
    if scenario == "slots":
        servers = make_servers(side, "vllm", url, tokenizer, 4)
        ask = lambda: servers.tokens_and_logprobs_completion(prompt="a b", n=1, max_tokens=1)  # noqa: E731
        await ask()
        began = time.perf_counter()
        await asyncio.gather(*(ask() for _ in range(40)))
        return {"seconds": time.perf_counter() - began}
    kind, at_once = scenario.split("-")
    servers = make_servers(side, "openai" if kind == "chat" else "vllm", url, tokenizer, 2 * int(at_once))
    if kind == "chat":
        return await measure(lambda: servers.chat_completion(messages=HELLO, n=CHOICES), 1000, int(at_once))
    length = 1024 if kind == "long" else 64
    requests = 200 if kind == "long" else 1500
    return await measure(
        lambda: servers.tokens_and_logprobs_completion(prompt="a b", n=CHOICES, max_tokens=length),
        requests,
        int(at_once),
    )


SCENARIOS = {
    "chat-64": "chat, 8 choices, 64 at once",
    "short-64": "tokens, 8 x 64, 64 at once",
    "short-512": "tokens, 8 x 64, 512 at once",
    "long-16": "tokens, 8 x 1024, 16 at once",
    "slots": "40 requests of 10 ms on 4 slots",
}


def make_tokenizer(directory: Path) -> None:
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    core = Tokenizer(models.WordLevel({"a": 0, "b": 1, "[UNK]": 2}, unk_token="[UNK]"))
    core.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    PreTrainedTokenizerFast(tokenizer_object=core, unk_token="[UNK]").save_pretrained(directory)


def measured(python: str, side: str, scenario: str, url: str, tokenizer: str) -> dict[str, float]:
    command = [python, __file__, "--child", side, "--scenario", scenario, "--url", url, "--tokenizer", tokenizer]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{side} failed in {scenario}:\n{done.stderr[-2000:]}")
    result: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return result


def compare(upstream_python: str | None, as_json: bool) -> None:
    results: dict[str, dict[str, dict[str, float]]] = {}
    stub = subprocess.Popen([sys.executable, __file__, "--child", "stub"], stdout=subprocess.PIPE, text=True)
    try:
        assert stub.stdout is not None
        url = f"http://127.0.0.1:{int(stub.stdout.readline())}/v1"
        with tempfile.TemporaryDirectory() as directory:
            make_tokenizer(Path(directory))
            for scenario in SCENARIOS:
                results[scenario] = {"ours": measured(sys.executable, "ours", scenario, url, directory)}
                if upstream_python:
                    results[scenario]["upstream"] = measured(upstream_python, "upstream", scenario, url, directory)
    finally:
        stub.terminate()
        stub.wait(10)
    if as_json:
        print(json.dumps(results))
        return
    for scenario, sides in results.items():
        print(SCENARIOS[scenario])
        for side, figures in sides.items():
            print(f"  {side:9}", "  ".join(f"{name} {value:,.1f}" for name, value in figures.items()))
        if "upstream" in sides:
            print("  ratio    ", "  ".join(f"{n} {v / sides['upstream'][n]:.2f}" for n, v in sides["ours"].items()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--upstream-python", help="an interpreter that can import atroposlib")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of a table")
    parser.add_argument("--child", choices=["stub", "ours", "upstream"], help=argparse.SUPPRESS)
    parser.add_argument("--scenario", help=argparse.SUPPRESS)
    parser.add_argument("--url", help=argparse.SUPPRESS)
    parser.add_argument("--tokenizer", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child == "stub":
        asyncio.run(serve_stub())
    elif options.child:
        print(json.dumps(asyncio.run(run_scenario(options.child, options.scenario, options.url, options.tokenizer))))
    else:
        compare(options.upstream_python, options.json)


if __name__ == "__main__":
    main()
