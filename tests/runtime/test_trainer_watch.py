"""The run waits for the trajectory API and its trainer, says so, and finds its way back when they were away."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from atropos_tui.errors import ContractError, UsageError
from atropos_tui.ledger import EventStream
from atropos_tui.monitor.supervisor import start_process
from tests.runtime.serving_parts import (
    FakeTrajectoryApi,
    RecordedEvents,
    ScriptedEnv,
    serving,
    until,
    watched,
)

MakeEnv = Callable[..., ScriptedEnv]


def waits(seen: RecordedEvents) -> list[str]:
    return [event.waiting_for for event in seen.of("state_changed")]


async def test_a_run_waits_for_an_api_that_comes_later_and_names_its_address(make_env: MakeEnv, silent_port: int):
    port = silent_port
    env = make_env(rollout_server_url=f"http://127.0.0.1:{port}")
    seen = watched(env)
    async with serving(env):
        await until(lambda: any(f"127.0.0.1:{port}" in waiting for waiting in waits(seen)))
        assert seen.states()[-1] == "starting"
        late = FakeTrajectoryApi(port).start()
        try:
            await until(lambda: len(late.groups) >= 3)
            assert seen.states()[-1] == "running"
            assert waits(seen)[-1] == ""
            env.control.stop()
            await until(lambda: late.disconnected)
        finally:
            late.stop()


async def test_a_run_waits_for_the_trainer_and_registers_once(make_env: MakeEnv, api: FakeTrajectoryApi):
    api.trainer_ready = False
    env = make_env()
    seen = watched(env)
    async with serving(env):
        await until(lambda: any("trainer" in waiting for waiting in waits(seen)))
        assert not env.collected
        api.trainer_ready = True
        await until(lambda: len(api.groups) >= 3)
    assert len(api.registrations) == 1


@pytest.mark.parametrize("control_url", ["", "unix:/runs/reverse/control.sock"])
async def test_where_it_can_be_watched_is_told_if_it_can_be(
    make_env: MakeEnv, api: FakeTrajectoryApi, control_url: str
):
    env = make_env()
    env.attach(EventStream(RecordedEvents()), control_url=control_url)
    async with serving(env):
        await until(lambda: api.registrations)
    told = api.registrations[0]
    assert ("control_url" in told, told.get("control_url", "")) == (bool(control_url), control_url)


async def test_an_environment_without_a_name_registers_under_its_class(make_env: MakeEnv, api: FakeTrajectoryApi):
    class Nameless(ScriptedEnv):
        name = None

    env = make_env(Nameless)
    async with serving(env):
        await until(lambda: api.registrations)
    assert api.registrations[0]["desired_name"] == "Nameless"


async def test_a_lost_api_is_a_headline_and_the_run_registers_again_when_it_is_back(make_env: MakeEnv):
    first = FakeTrajectoryApi().start()
    env = make_env(rollout_server_url=first.url, max_batches_offpolicy=1)
    seen = watched(env)
    async with serving(env):
        await until(lambda: len(first.groups) >= 3)
        first.stop()
        await until(lambda: f"the trajectory API at {first.url}" in waits(seen)[-1])
        # What is finished meanwhile waits for the trajectory API, and no more than may.
        await until(lambda: any(event.reason == "off_policy_limit" for event in seen.of("throttle_changed")))
        assert seen.states()[-1] == "running"
        second = FakeTrajectoryApi(first.port, first_env_id=5).start()
        try:
            await until(lambda: len(second.groups) >= 10)
            assert {group["env_id"] for group in second.groups} == {5}
            assert waits(seen)[-1] == ""
            env.control.stop()
            await until(lambda: second.disconnected == [5])
        finally:
            second.stop()
    counts = env._runtime.stream.counts()
    assert counts.balanced
    assert counts.by_outcome["delivered"] == len(first.groups) + len(second.groups)


async def test_an_api_that_forgot_the_environment_gets_it_again(make_env: MakeEnv, api: FakeTrajectoryApi):
    env = make_env()
    async with serving(env):
        await until(lambda: len(api.groups) >= 3)
        api.forgotten = True
        await until(lambda: len(api.registrations) == 2)
        before = len(api.groups)
        await until(lambda: len(api.groups) > before + 3)
        assert env.env_id == 1
    assert len(api.registrations) == 2


async def test_an_api_that_answers_errors_is_waited_for(make_env: MakeEnv, api: FakeTrajectoryApi):
    env = make_env()
    seen = watched(env)
    async with serving(env) as run:
        await until(lambda: env.collected)
        api.status_error = 503
        await until(lambda: "HTTP 503" in waits(seen)[-1])
        api.status_error = 0
        await until(lambda: waits(seen)[-1] == "")
        assert not run.done()


async def test_what_the_trainer_says_is_told_when_it_changes(make_env: MakeEnv, api: FakeTrajectoryApi):
    env = make_env(max_batches_offpolicy=2)
    seen = watched(env)
    async with serving(env):
        await until(lambda: seen.of("trainer_status"))
        api.step = 3
        await until(lambda: seen.of("trainer_status")[-1].step == 3)
        calls = api.status_calls
        await until(lambda: api.status_calls > calls + 3)
    told = seen.of("trainer_status")
    assert [event.step for event in told] == [0, 3]
    assert told[-1].batch_size == 64
    assert told[-1].queue_limit == 32
    (configured,) = seen.of("run_configured")
    assert (configured.batch_size, configured.max_token_len) == (64, 4096)


async def test_a_group_that_cannot_fit_into_a_batch_ends_the_run_with_the_numbers(
    make_env: MakeEnv, api: FakeTrajectoryApi
):
    api.batch_size = 2
    env = make_env(group_size=4)
    seen = watched(env)
    with pytest.raises(UsageError, match=r"group_size 4 is above the trainer's batch size 2"):
        await env.env_manager()
    (ended,) = seen.of("run_ended")
    assert ended.state == "crashed"


@pytest.mark.parametrize("status", [400, 401, 403, 405, 422])
async def test_a_registration_that_is_refused_for_good_ends_the_run_with_the_servers_words(
    make_env: MakeEnv, api: FakeTrajectoryApi, status: int
):
    api.registration_error = status
    env = make_env()
    seen = watched(env)
    with pytest.raises(UsageError, match=rf"{api.url} refuses: POST /register-env: HTTP {status} .*must be even"):
        await env.env_manager()
    assert seen.of("run_ended")[0].state == "crashed"


@pytest.mark.parametrize("status", [404, 409, 429, 503])
async def test_a_registration_that_may_yet_be_taken_is_waited_for(
    make_env: MakeEnv, api: FakeTrajectoryApi, status: int
):
    api.registration_error = status
    env = make_env()
    seen = watched(env)
    async with serving(env):
        await until(lambda: any(f"HTTP {status}" in words for words in waits(seen)))
        api.registration_error = 0
        await until(lambda: len(api.groups) > 0)


async def test_a_run_that_was_registered_once_waits_whatever_a_restarted_api_says(
    make_env: MakeEnv, api: FakeTrajectoryApi
):
    env = make_env()
    seen = watched(env)
    async with serving(env):
        await until(lambda: len(api.groups) > 0)
        api.registration_error = 422
        api.forgotten = True
        await until(lambda: any("HTTP 422" in words for words in waits(seen)))
        api.registration_error = 0
        before = len(api.groups)
        await until(lambda: len(api.registrations) == 2 and len(api.groups) > before)


async def test_what_breaks_setup_ends_the_run_with_its_root_cause(make_env: MakeEnv):
    class Broken(ScriptedEnv):
        async def setup(self) -> None:
            raise FileNotFoundError("train.jsonl")

    env = make_env(Broken)
    seen = watched(env)
    with pytest.raises(FileNotFoundError):
        await env.env_manager()
    (ended,) = seen.of("run_ended")
    assert (ended.state, ended.why) == ("crashed", "FileNotFoundError: train.jsonl")
    assert "setup" in ended.traceback
    assert seen.states() == ["starting", "crashed"]


@pytest.mark.parametrize("leaked", [asyncio.CancelledError, SystemExit])
async def test_a_setup_that_leaks_an_end_is_a_crash_that_says_so(make_env: MakeEnv, leaked: type[BaseException]):
    class Leaking(ScriptedEnv):
        async def setup(self) -> None:
            raise leaked

    env = make_env(Leaking)
    seen = watched(env)
    with pytest.raises(ContractError):
        await env.env_manager()
    assert seen.of("run_ended")[0].state == "crashed"


async def test_a_run_can_be_stopped_while_it_waits(make_env: MakeEnv, silent_port: int):
    env = make_env(rollout_server_url=f"http://127.0.0.1:{silent_port}")
    seen = watched(env)
    async with serving(env) as run:
        await until(lambda: any(waits(seen)))
        env.control.stop()
        await until(run.done)
        await run
    assert seen.states()[-1] == "finished"


async def test_a_trainer_that_stands_still_is_asked_no_more_than_twice_a_second(
    make_env: MakeEnv, api: FakeTrajectoryApi
):
    env = make_env()
    api.queue_size = 1000
    async with serving(env):
        await until(lambda: len(api.status_times) >= 15)
        times = api.status_times[12:15]
    assert times[2] - times[0] > 0.8


async def test_an_idle_run_asks_for_the_status_no_more_than_twice_a_second(make_env: MakeEnv, api: FakeTrajectoryApi):
    env = make_env()
    env.items = iter([])
    async with serving(env):
        await until(lambda: len(api.status_times) >= 4)
        times = api.status_times[:4]
    assert times[3] - times[0] > 1.2


async def test_a_token_in_the_address_opens_the_api_and_is_shown_nowhere(make_env: MakeEnv, tmp_path: Path):
    token = tmp_path / "token"
    token.write_text("sesame")
    command = [sys.executable, "-m", "atropos_tui.trajectory_api", "--port", "0", "--no-journal"]
    with start_process([*command, "--token-file", str(token)], log_path=tmp_path / "log") as api:
        address = api.ready["url"]
        with pytest.raises(UsageError, match=r"HTTP 401 .*this server wants a token.*http://any:TOKEN@host"):
            await make_env(rollout_server_url=address).env_manager()
        env = make_env(rollout_server_url=address.replace("http://", "http://any:sesame@"))
        seen = watched(env)
        async with serving(env):
            await until(lambda: any("wait for trainer" in words for words in waits(seen)))
        assert "sesame" not in repr(seen.events)
