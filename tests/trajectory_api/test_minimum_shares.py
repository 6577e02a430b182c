"""Minimum shares of batches, and mixed group sizes, as the environments see them."""

from __future__ import annotations

from typing import Any

import pytest

from atropos_tui.trajectory_api.explanations import warnings, why
from atropos_tui.trajectory_api.run import TrainingRun
from atropos_tui.trajectory_api.wire import EnvRegistered, RegisterEnv, Registration
from tests.trajectory_api.bodies import environment, group, mark_of, registration
from tests.trajectory_api.conftest import Api
from tests.trajectory_api.test_batch_choice import queued


class Run:
    """A run with a clock that the test moves, and short words for what environments do."""

    def __init__(self, batch_size: int) -> None:
        self.now = 1000.0
        self.run = TrainingRun(clock=lambda: self.now)
        self.run.register(Registration(**registration(batch_size=batch_size)))
        self.run.take_batch()

    def join(self, **changes: Any) -> int:
        answer = self.run.register_environment(RegisterEnv(**environment(**changes)))
        assert isinstance(answer, EnvRegistered)
        return answer.env_id

    def send(self, env_id: int | None, sequences: int, count: int = 1) -> None:
        for _ in range(count):
            self.run.admit(queued(self.run.next_number(), env_id, sequences))

    def batch(self) -> list[tuple[int | None, int]] | None:
        """Sender and size of the groups of the next batch, which is delivered."""
        batch = self.run.take_batch()
        if batch is None:
            return None
        self.run.delivered(batch)
        return [(group.env_id, group.sequences) for group in batch]

    def warning_codes(self) -> set[str]:
        return {warning.code for warning in warnings(self.run)}


def test_a_slow_environment_has_its_share_of_every_batch() -> None:
    run = Run(batch_size=16)
    fast, slow = run.join(desired_name="fast"), run.join(desired_name="slow", min_batch_allocation=0.25)
    for _ in range(20):
        run.send(fast, 4, count=10)
        run.send(slow, 4)
        batch = run.batch()
        assert batch is not None
        assert (slow, 4) in batch


def test_a_batch_that_is_on_its_way_to_a_trainer_is_named_while_there_is_no_other() -> None:
    run = Run(batch_size=8)
    run.send(None, 4, count=3)
    batch = run.run.take_batch()
    assert batch is not None
    assert why(run.run).text == "4 of the batch's 8 sequences are queued; 1 batch is being sent"
    run.run.delivered(batch)
    assert why(run.run).text == "4 of the batch's 8 sequences are queued"


def test_a_batch_waits_for_an_environment_that_is_owed_a_share_and_says_so() -> None:
    run = Run(batch_size=8)
    fast, slow = run.join(desired_name="fast"), run.join(desired_name="slow", min_batch_allocation=0.5)
    run.send(fast, 4, count=100)
    assert run.batch() is None
    assert (why(run.run).code, why(run.run).text) == (
        "minimum_not_there", "environment 1 (slow_0) has 0 of the 4 sequences that each batch owes it",
    )  # fmt: skip
    run.send(slow, 4)
    assert why(run.run).code == "ready"
    assert run.batch() == [(fast, 4), (slow, 4)]


def test_an_environment_that_fell_silent_holds_back_nothing() -> None:
    run = Run(batch_size=8)
    fast = run.join(desired_name="fast")
    run.join(desired_name="dead", min_batch_allocation=0.5)
    run.now += 61
    run.send(fast, 4, count=4)
    assert run.batch() == [(fast, 4), (fast, 4)]
    assert "environment_silent" in run.warning_codes()


def test_an_environment_that_disconnected_holds_back_nothing() -> None:
    run = Run(batch_size=8)
    fast, gone = run.join(desired_name="fast"), run.join(desired_name="gone", min_batch_allocation=0.5)
    run.send(fast, 4, count=2)
    run.run.disconnect(gone)
    assert run.batch() == [(fast, 4), (fast, 4)]


def test_shares_of_more_than_everything_are_cut_in_proportion() -> None:
    run = Run(batch_size=8)
    first, second = (run.join(desired_name=name, min_batch_allocation=1.0) for name in "ab")
    run.send(first, 4, count=5)
    run.send(second, 4)
    assert run.batch() == [(first, 4), (second, 4)]


def test_shares_that_no_batch_could_meet_are_passed_over_with_a_warning() -> None:
    """Groups of 6 can be no part of 16 sequences beside groups of 8, whatever their environment is owed."""
    run = Run(batch_size=16)
    odd = run.join(desired_name="odd", group_size=2, min_batch_allocation=0.5)
    even = run.join(desired_name="even", group_size=8, min_batch_allocation=0.75)
    run.send(odd, 2)
    run.send(even, 8, count=2)
    assert run.batch() == [(even, 8), (even, 8)]
    assert run.run.counters.batches_below_minimum == 1
    assert "minimums_cannot_be_met" in run.warning_codes()


def test_groups_without_an_environment_fill_batches_too() -> None:
    run = Run(batch_size=8)
    shared = run.join(min_batch_allocation=0.5)
    run.send(None, 4)
    run.send(shared, 4)
    assert run.batch() == [(None, 4), (shared, 4)]


def test_one_large_group_does_not_block_the_small_ones() -> None:
    """Upstream's server hands out nothing more once a group is queued that is larger than the batch allows."""
    run = Run(batch_size=8)
    run.send(None, 8)
    run.run.register(Registration(**registration(batch_size=4, starting_step=1)))
    run.send(None, 4, count=3)
    assert run.batch() == [(None, 4)]
    assert "groups_too_large" in run.warning_codes()


def test_groups_of_an_odd_size_wait_and_the_others_pass_them() -> None:
    run = Run(batch_size=8)
    run.send(None, 3)
    run.send(None, 8)
    assert run.batch() == [(None, 8)]
    assert run.batch() is None
    assert why(run.run).code == "too_few_sequences"
    run.send(None, 6)
    assert (why(run.run).code, why(run.run).text) == (
        "sizes_do_not_fit", "the queued groups (1 of 3, 1 of 6 sequences) do not add up to exactly 8 sequences",
    )  # fmt: skip
    run.send(None, 5)
    assert run.batch() == [(None, 3), (None, 5)]


async def test_partial_groups_enter_the_queue_together_when_they_make_up_their_environments_size(api: Api) -> None:
    await api.start_run(batch_size=4)
    env_id = await api.register_env(group_size=4)
    answers = []
    for mark, size in enumerate((3, 3, 1, 1)):
        answers.append((await api.post("/scored_data", json=group(size, mark=mark, env_id=env_id))).json())
    assert answers == [{"status": "buffered", "buffer_size": waiting} for waiting in (3, 6, 3, 0)]
    first, second = [(await api.get("/batch")).json()["batch"] for _ in range(2)]
    assert [mark_of(received) for received in first] == [0, 2]
    assert [mark_of(received) for received in second] == [1, 3]


def test_a_buffer_without_partners_is_shown_and_does_not_grow_for_ever() -> None:
    run = Run(batch_size=12)
    env_id = run.join(group_size=4)
    run.send(env_id, 3, count=4)
    assert "groups_buffered" in run.warning_codes()
    assert why(run.run).text == "the queue is empty; 12 sequences wait in buffers for groups that complete them"
    run.send(env_id, 3, count=20)
    assert run.run.buffers[env_id].sequences < 32
    assert run.batch() == [(env_id, 3)] * 4


def test_an_environment_that_registers_with_a_smaller_size_gets_its_buffer_sorted_anew() -> None:
    run = Run(batch_size=8)
    env_id = run.join(group_size=4, run_id="r")
    run.send(env_id, 2)
    run.send(env_id, 1)
    run.join(group_size=2, run_id="r")
    assert len(run.run.queue) == 1
    assert run.run.buffers[env_id].sequences == 1


def test_looking_at_the_status_changes_no_group_size() -> None:
    """On upstream's server a look raises the environment's size for good, and its ordinary groups are buffered."""
    run = Run(batch_size=8)
    env_id = run.join(group_size=2)
    run.send(env_id, 4)
    assert run.run.environment_status(env_id).self_queue_size == 1
    assert run.run.admit(queued(run.run.next_number(), env_id, 2)).status == "received"


@pytest.mark.parametrize("share", [-0.1, "x"])
async def test_a_minimum_share_that_is_none_is_refused(api: Api, share: object) -> None:
    await api.start_run()
    response = await api.post("/register-env", json=environment(min_batch_allocation=share))
    assert response.status_code == 422
    assert response.json()["detail"][0]["loc"] == ["body", "min_batch_allocation"]
