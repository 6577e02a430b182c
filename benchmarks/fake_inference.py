"""An inference server that answers from memory, so that a benchmark measures its client: vLLM's `/generate` as upstream
serves it, with `n` completions of a fixed length after a fixed latency.

    python benchmarks/fake_inference.py --tokens 256 --latency-ms 0 [--port 0] [--choices 8]

The first completion of each answer ends with an even token id, the second with an odd one, and the rest at random, so
that an environment that scores by the last id never has a group of identical scores.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import random
import sys

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from atropos_tui.child import announce_ready, end_with_parent
from atropos_tui.http_server import HttpServer, bind_tcp, url_of

VOCABULARY = 32_000
ANSWERS = 16


def answer_body(choices: int, tokens: int, rng: random.Random) -> bytes:
    """`{"logprobs": [choice][position] = [{"<id>": logprob}], "finish_reasons": [word]}`"""
    completions = [[rng.randrange(VOCABULARY) for _ in range(tokens)] for _ in range(choices)]
    for parity, completion in zip((0, 1), completions, strict=False):
        completion[-1] = completion[-1] // 2 * 2 + parity
    logprobs = [[[{str(token): -3 * rng.random()}] for token in completion] for completion in completions]
    return json.dumps({"logprobs": logprobs, "finish_reasons": ["stop"] * choices}).encode()


def make_app(choices: int, tokens: int, latency: float) -> Starlette:
    """`latency` in seconds. Answers take turns, whatever the request says."""
    rng = random.Random(0)
    answers = itertools.cycle([answer_body(choices, tokens, rng) for _ in range(ANSWERS)])

    async def generate(request: Request) -> Response:
        await request.body()
        await asyncio.sleep(latency)
        return Response(next(answers), media_type="application/json")

    async def health(_: Request) -> Response:
        return Response()

    return Starlette(routes=[Route("/generate", generate, methods=["POST"]), Route("/health", health)])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one (default: %(default)s)")
    parser.add_argument("--choices", type=int, default=8)
    parser.add_argument("--tokens", type=int, default=256, help="of each completion (default: %(default)s)")
    parser.add_argument("--latency-ms", type=float, default=0.0)
    parser.add_argument("--ready-fd", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--lifeline-fd", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    listener = bind_tcp("127.0.0.1", options.port)
    url = url_of(listener)

    def on_ready() -> None:
        announce_ready(options.ready_fd, url=url)
        print(url, flush=True)

    end_with_parent(options.lifeline_fd)
    app = make_app(options.choices, options.tokens, options.latency_ms / 1000)
    HttpServer(app, on_ready=on_ready).run_on(listener)
    return 0


if __name__ == "__main__":
    sys.exit(main())
