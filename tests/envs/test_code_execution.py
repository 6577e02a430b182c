"""Code execution: groups of good, bad and hostile replies, each scored by what its tests say and by nothing else."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from atropos_tui.sandbox import Sandbox, SandboxError, SandboxLimits
from tests.envs.conftest import environment_module, serve_groups
from tests.envs.scripted_model import ScriptedModel
from tests.runtime.serving_parts import FakeTrajectoryApi

code_execution = environment_module("code_execution")
MakeEnv = Callable[..., Any]
DOUBLE = {"prompt": "Write `double(x)`.", "function": "double", "tests": [[[2], 4], [[-1], -2], [["ab"], "abab"]]}


def can_isolate() -> bool:
    try:
        asyncio.run(Sandbox().check())
    except SandboxError:
        return False
    return True


ISOLATED = can_isolate()  # where not, what is tested here holds without isolation as well


def block(code: str) -> str:
    return f"Here it is:\n```python\n{code}\n```"


RIGHT = block("def double(x):\n    return x + x")
WRONG = block("def double(x):\n    return 2 * abs(x) if isinstance(x, int) else x * 2")
REPLIES = [
    ("a right reply", RIGHT, 1.0),
    ("one that is right in two of three", WRONG, 0.1 + 0.9 * 2 / 3),
    ("no code", "def double(x): return x + x", 0.0),
    ("code that is none", block("def double(x) return"), 0.1),
    ("code that prints", block("print('hello')\ndef double(x):\n    print(x)\n    return x + x"), 1.0),
    ("code that ends the program", block("import sys\ndef double(x):\n    sys.exit(0)"), 0.1),
    ("code that hangs at the second", block("def double(x):\n    while x == -1: pass\n    return x + x"), 0.4),
    ("another name", block("def twice(x):\n    return x + x"), 0.1),
    ("a forged verdict", block("import os\nos.write(1, b'{}\\n5\\n' * 3)\nos._exit(0)"), 0.1),
    ("a deep forged verdict", block("import os\nos.write(1, b'[' * 60_000)\nos._exit(0)"), 0.1),
    ("a result that is no JSON", block("def double(x):\n    return object()"), 0.1),
]


@pytest.fixture
def judge() -> Callable[[str], Any]:
    """What a reply earns, in a sandbox that lets it compute for a second at most."""
    env = object.__new__(code_execution.CodeExecutionEnv)
    env.config = code_execution.CodeExecutionConfig(use_wandb=False)
    env.sandbox = Sandbox(SandboxLimits(wall_seconds=60.0, cpu_seconds=1), isolated=ISOLATED)
    env.free_sandboxes = asyncio.Semaphore(2)
    return lambda reply: env.judge(reply, code_execution.Task(**DOUBLE))


@pytest.mark.parametrize(("reply", "score"), [reply[1:] for reply in REPLIES], ids=[reply[0] for reply in REPLIES])
async def test_a_reply_earns_what_its_tests_say(judge: Callable[[str], Any], reply: str, score: float) -> None:
    parts, told = await judge(reply)
    assert sum(parts.values()) == pytest.approx(score)
    assert told


async def test_the_expected_results_are_not_in_the_sandbox(judge: Callable[[str], Any]) -> None:
    """Nothing that a reply can see has them: neither the program's text nor any object."""
    spy = (
        "import gc, inspect, sys\n"
        "def double(x):\n"
        "    frame, seen = sys._getframe(), []\n"
        "    while frame: seen.append(repr(frame.f_locals)); frame = frame.f_back\n"
        "    return 'abab' if 'abab' in ''.join(seen) else 'nothing'"
    )
    _, told = await judge(block(spy))
    assert told.count("gave 'nothing'") == 3


async def test_what_went_wrong_is_told(judge: Callable[[str], Any]) -> None:
    _, told = await judge(block("def double(x):\n    return x / 2"))
    first, _, third = told.splitlines()
    assert first == "test 1: gave 1.0, not 4"
    assert third.startswith("test 3: raised TypeError")
    _, told = await judge(block("import nowhere"))
    assert told.splitlines()[-1] == "ModuleNotFoundError: No module named 'nowhere'"


async def test_twenty_groups_are_scored_by_their_tests(
    make_env: MakeEnv, api: FakeTrajectoryApi, tokenizer: Any, tmp_path: Path
) -> None:
    tasks = tmp_path / "tasks.jsonl"
    tasks.write_text("".join(json.dumps({**DOUBLE, "prompt": f"Task {number}"}) + "\n" for number in range(20)))

    def replies(prompt: str, n: int) -> list[str]:
        number = int(prompt.rpartition("Task ")[2].split()[0])
        return [RIGHT] * n if number % 5 == 4 else [RIGHT, WRONG]

    async with ScriptedModel(tokenizer, replies) as model:
        env = make_env(
            code_execution.CodeExecutionEnv, model.url, group_size=2, tasks_file=tasks, isolated=ISOLATED,
            wall_seconds=30.0,
        )  # fmt: skip
        served = await serve_groups(env, api, 20)
    assert served.outcomes() == {"delivered": 16, "skipped identical_scores": 4}
    for content in served.delivered():
        right, wrong = content.rollouts
        assert (right.score, wrong.score) == pytest.approx((1.0, 0.7))
        assert wrong.parts == pytest.approx({"tests": 0.6, "format": 0.1})
        assert right.messages[-1]["name"] == "sandbox"
        assert "test 2: gave 2, not -2" in wrong.messages[-1]["content"]


async def test_a_sandbox_that_breaks_fails_the_group_and_is_no_score(
    make_env: MakeEnv, api: FakeTrajectoryApi, tokenizer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with ScriptedModel(tokenizer, lambda _, n: [RIGHT] * n) as model:
        env = make_env(code_execution.CodeExecutionEnv, model.url, group_size=2, isolated=ISOLATED)

        async def broken(program: str) -> Any:
            raise SandboxError("no memory for a sandbox")

        set_up = env.setup

        async def set_up_and_break() -> None:
            await set_up()
            monkeypatch.setattr(env.sandbox, "run", broken)

        env.setup = set_up_and_break
        served = await serve_groups(env, api, 3)
    assert served.outcomes() == {"failed env_error": 3}
    assert served.sent == []


def test_the_built_in_tasks_have_tests_that_tell_right_from_wrong() -> None:
    for task in code_execution.read_tasks(None):
        assert f"`{task['function']}(" in task["prompt"]
        assert len({json.dumps(result) for _, result in task["tests"]}) > 1


def test_where_nothing_can_be_isolated_it_refuses_to_start_and_says_what_to_do() -> None:
    program = (
        "import asyncio, sys\n"
        "from atropos_tui.runtime.loading import load_environment\n"
        f"kind = load_environment({code_execution.__file__!r})\n"
        "env = object.__new__(kind)\n"  # without a tokenizer, which takes seconds to load
        "env.config = kind.config_init()[0]\n"
        "try:\n"
        "    asyncio.run(env.setup())\n"
        "except Exception as error:\n"
        "    print(type(error).__name__, error)\n"
    )
    command = [sys.executable, "-c", program]
    if ISOLATED:
        if shutil.which("unshare") is None:
            pytest.skip("there is no unshare(1) to take namespaces away with")
        forbid = 'echo 0 > /proc/sys/user/max_user_namespaces && exec "$@"'
        command = ["unshare", "--user", "--map-root-user", "sh", "-c", forbid, "sh", *command]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env=dict(os.environ))
    assert done.stdout.startswith("UsageError untrusted code cannot be isolated here: "), done.stderr
    assert "--env.isolated false" in done.stdout
