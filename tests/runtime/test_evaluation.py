"""Evaluations come when the trainer crosses a multiple of steps; their results and their failures are visible."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from atropos_tui.errors import AtroposError
from atropos_tui.runtime.checkpoints import crosses
from atropos_tui.runtime.config import EvalHandlingEnum
from tests.runtime.serving_parts import FakeTrajectoryApi, ScriptedEnv, good_group, serving, until, watched

MakeEnv = Callable[..., ScriptedEnv]


@pytest.mark.parametrize(
    ("before", "after", "interval", "expected"),
    [
        (0, 1, 1, True), (0, 99, 100, False), (0, 100, 100, True), (50, 160, 100, True), (95, 105, 10, True),
        (100, 100, 100, False), (101, 199, 100, False), (5, 110, 100, True), (7, 3, 5, False),
        (0, 5, 0, False), (0, 5, -1, False),
    ],
)  # fmt: skip
def test_a_multiple_counts_when_it_is_reached_or_passed(before: int, after: int, interval: int, expected: bool):
    assert crosses(before, after, interval) is expected


async def test_an_evaluation_runs_when_a_jump_of_steps_passes_a_multiple(make_env: MakeEnv, api: FakeTrajectoryApi):
    env = make_env(steps_per_eval=100)
    seen = watched(env)
    async with serving(env):
        await until(lambda: env.status_dict)
        for step in (50, 160, 170, 205):
            api.step = step
            await until(lambda step=step: env.curr_step == step)
        await until(lambda: len(seen.of("eval_ended")) == 2)
    assert [event.step for event in seen.of("eval_started")] == [160, 205]
    assert seen.of("eval_ended")[0].metrics == {"eval/accuracy": 0.5}


async def evaluating(env: ScriptedEnv, api: FakeTrajectoryApi) -> asyncio.Event:
    """Have an evaluation begin that ends when the event is set."""
    end = asyncio.Event()

    async def wait_for_the_end() -> Any:
        await end.wait()

    env.evaluation = wait_for_the_end
    await until(lambda: len(env.workers) == 4)
    api.step = 10
    await until(lambda: env.evaluations)
    return end


class PatientEnv(ScriptedEnv):
    """Rollouts last until the gate is open."""

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        self.gate = asyncio.Event()
        self.script = self.patient

    async def patient(self, item: Any) -> Any:
        await self.gate.wait()
        return good_group(), []


async def test_stop_train_puts_items_back_and_takes_them_up_after_the_evaluation(
    make_env: MakeEnv, api: FakeTrajectoryApi
):
    env = make_env(PatientEnv, steps_per_eval=10, max_num_workers=4, eval_handling=EvalHandlingEnum.STOP_TRAIN)
    seen = watched(env)
    async with serving(env):
        end = await evaluating(env, api)
        await until(lambda: len(seen.of("group_requeued")) == 4)
        assert {event.reason for event in seen.of("group_requeued")} == {"eval_started"}
        await until(lambda: seen.states()[-1] == "evaluating")
        await until(lambda: seen.of("throttle_changed")[-1].reason == "eval")
        assert sorted(env.backlog) == [1, 2, 3, 4]
        end.set()
        await until(lambda: len(env.collected) == 8)
        assert sorted(env.collected[4:]) == [1, 2, 3, 4]
        assert seen.states()[-1] == "running"


async def test_limit_train_goes_on_with_a_share_of_the_workers(make_env: MakeEnv, api: FakeTrajectoryApi):
    env = make_env(PatientEnv, steps_per_eval=10, max_num_workers=4, eval_handling=EvalHandlingEnum.LIMIT_TRAIN)
    seen = watched(env)
    async with serving(env):
        end = await evaluating(env, api)
        assert len(env.workers) == 4
        env.gate.set()
        await until(lambda: len(env.collected) > 10)
        env.gate.clear()
        await until(lambda: len(env.workers) == 2 and seen.of("throttle_changed")[-1].reason == "eval")
        assert seen.of("throttle_changed")[-1].limit == 2
        end.set()
        await until(lambda: len(env.workers) == 4)
    assert not [event for event in seen.of("group_requeued") if event.reason == "eval_started"]


async def test_none_changes_nothing(make_env: MakeEnv, api: FakeTrajectoryApi):
    env = make_env(PatientEnv, steps_per_eval=10, max_num_workers=4, eval_handling=EvalHandlingEnum.NONE)
    seen = watched(env)
    async with serving(env):
        end = await evaluating(env, api)
        env.gate.set()
        await until(lambda: len(env.collected) > 10)
        assert "evaluating" not in seen.states()
        end.set()


async def test_an_evaluation_that_is_due_while_one_runs_is_left_out_with_a_warning(
    make_env: MakeEnv, api: FakeTrajectoryApi, caplog: pytest.LogCaptureFixture
):
    env = make_env(PatientEnv, steps_per_eval=10, max_num_workers=4)
    async with serving(env):
        end = await evaluating(env, api)
        api.step = 20
        await until(lambda: "left out" in caplog.text)
        end.set()
    assert env.evaluations == [10]


async def test_the_failure_of_an_evaluation_is_told(make_env: MakeEnv, api: FakeTrajectoryApi):
    env = make_env(steps_per_eval=1)
    seen = watched(env)

    async def fail() -> Any:
        raise RuntimeError("no eval data")

    env.evaluation = fail
    async with serving(env) as run:
        await until(lambda: env.status_dict)
        api.step = 1
        await until(lambda: seen.of("eval_ended"))
        assert not run.done()
    ended = seen.of("eval_ended")[0]
    assert ended.error == "RuntimeError: no eval data"
    assert "fail" in ended.traceback


async def test_a_paused_run_evaluates_when_it_is_resumed(make_env: MakeEnv, api: FakeTrajectoryApi):
    env = make_env(steps_per_eval=10)
    env.control.pause()
    async with serving(env):
        await until(lambda: env.status_dict)
        api.step = 10
        await until(lambda: env.curr_step == 10)
        assert not env.evaluations
        env.control.resume()
        await until(lambda: env.evaluations == [10])


async def test_an_operator_can_ask_for_an_evaluation(make_env: MakeEnv):
    env = make_env(steps_per_eval=0)
    seen = watched(env)
    async with serving(env):
        await until(lambda: env.collected)
        env.control.evaluate()
        await until(lambda: seen.of("eval_ended"))
        env.control.pause()
        await until(lambda: seen.states()[-1] == "paused")
        env.control.evaluate()
        await until(lambda: len(seen.of("eval_ended")) == 2)


async def test_an_evaluation_that_cannot_begin_now_is_refused_and_it_is_said_why(
    make_env: MakeEnv, api: FakeTrajectoryApi
):
    api.trainer_ready = False
    env = make_env()
    seen = watched(env)
    env.evaluation = asyncio.Event().wait
    async with serving(env):
        await until(lambda: env._runtime.scheduler.waiting_for.startswith("the trainer"))
        with pytest.raises(AtroposError, match="the run has not begun yet, it waits for the trainer"):
            env.control.evaluate()
        api.trainer_ready = True
        await until(lambda: seen.states()[-1] == "running")
        env.control.evaluate()
        await until(lambda: env.evaluations)
        with pytest.raises(AtroposError, match="an evaluation is running already"):
            env.control.evaluate()
        env.control.stop("enough")
        with pytest.raises(AtroposError, match="the run ends: enough"):
            env.control.evaluate()


async def test_a_run_ends_though_an_evaluation_hangs(
    make_env: MakeEnv, api: FakeTrajectoryApi, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("atropos_tui.runtime.serving.EVAL_SECONDS", 0.2)
    env = make_env(PatientEnv, steps_per_eval=10, max_num_workers=4)
    seen = watched(env)
    async with serving(env) as run:
        await evaluating(env, api)
        env.control.stop()
        await until(run.done)
        await run
    assert seen.of("eval_ended")[0].error == "cancelled, the run ended"
    assert seen.states()[-1] == "finished"


async def test_each_evaluation_has_a_file_of_its_own(make_env: MakeEnv, tmp_path: Path):
    env = make_env(data_dir_to_save_evals=str(tmp_path), max_token_length=77)
    for accuracy in (0.1, 0.2, 0.3):
        await env.evaluate_log(
            {"eval/accuracy": accuracy, "eval/note": "text"}, start_time=10.0, end_time=12.5,
            samples=[{"score": accuracy}], generation_parameters={"temperature": 0.0}, model_name="m",
        )  # fmt: skip
    names = ["metrics.json", "metrics_1.json", "metrics_2.json"]
    records = [json.loads((tmp_path / name).read_text()) for name in names]
    assert [record["results"]["all"]["eval/accuracy"] for record in records] == [0.1, 0.2, 0.3]
    assert records[0]["config_general"] == {
        "model_name": "m",
        "total_evaluation_time_seconds": "2.5",
        "generation_parameters": {"max_new_tokens": 77, "temperature": 0.0},
    }
    assert records[0]["results"]["atropos|scripted_eval|0"] == records[0]["results"]["all"]
    assert json.loads((tmp_path / "samples_2.jsonl").read_text()) == {"score": 0.3}


async def test_metrics_that_an_evaluation_logs_are_in_its_event(make_env: MakeEnv):
    env = make_env()
    seen = watched(env)

    async def log() -> Any:
        await env.evaluate_log({"eval/percent_correct": 0.25, "eval/words": "none"}, verbose=False)

    env.evaluation = log
    assert await env.evaluate_manager() == {"eval/percent_correct": 0.25}
    assert seen.of("eval_ended")[0].metrics == {"eval/percent_correct": 0.25}
