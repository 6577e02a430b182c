"""What `atroposlib` has beside environments: evaluations of their own, advantages, and reading HTTP answers."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from atropos_tui.compat.advantages import (
    allclose_to_first,
    compute_discounted_returns,
    compute_grpo_process_supervision_advantages,
    compute_stats,
)
from atropos_tui.compat.evaluations import EvalBase, evaluate_log, pass_at_k
from atropos_tui.compat.http_answers import parse_http_response
from atropos_tui.inference import APIServerConfig, ServerManager


class CountsAnswers(EvalBase):
    def setup_data(self) -> list[Any]:
        return ["one", "two", "four"]

    async def run_item(self, server: ServerManager, data_item: str) -> tuple[dict[str, Any], Any]:
        answer = await self.chat_completion(server, [{"role": "user", "content": data_item}])
        return {"answers": len(answer.choices), "letters": len(data_item)}, {"word": data_item}


async def test_an_evaluation_writes_the_mean_of_its_metrics(tmp_path: Path):
    server = ServerManager([APIServerConfig(model_name="small")], testing=True)
    metrics = await CountsAnswers(pass_at_n=1, pass_at_n_samples=2, eval_dir=str(tmp_path), temperature=0.5)(server)
    assert metrics == {"answers": 2.0, "letters": pytest.approx(10 / 3)}
    written = json.loads((tmp_path / "metrics.json").read_text())
    assert written["results"]["atropos|CountsAnswers@1:2|0"] == written["results"]["all"] == metrics
    assert written["config_general"]["model_name"] == "small"
    assert written["config_general"]["generation_parameters"]["temperature"] == 0.5
    samples = [json.loads(line) for line in (tmp_path / "samples.jsonl").read_text().splitlines()]
    assert samples == [{"word": "one"}, {"word": "two"}, {"word": "four"}]


def test_results_without_a_directory_are_only_warned_about(caplog: pytest.LogCaptureFixture):
    evaluate_log({"accuracy": 1.0})
    assert "eval_dir is not set" in caplog.text


def test_pass_at_k_is_the_chance_that_one_of_k_draws_is_correct():
    assert pass_at_k(5, 0, 2) == 0.0
    assert pass_at_k(5, 4, 2) == 1.0
    assert pass_at_k(4, 2, 2) == pytest.approx(1 - 1 / 6)  # one of six pairs misses both


def test_returns_discount_what_follows():
    assert compute_discounted_returns([1, 2, 4], 0.5).tolist() == [3.0, 4.0, 4.0]


def test_process_supervision_normalises_over_the_group_and_sums_what_follows():
    rewards = [[0, 2], [2, 0, 2, 0]]
    stats = compute_stats(rewards)
    assert stats == {"mean": 1.0, "var": 1.0}
    first, second = compute_grpo_process_supervision_advantages(rewards)
    assert first.tolist() == [0.0, 1.0]
    assert second.tolist() == [0.0, -1.0, 0.0, -1.0]
    assert compute_grpo_process_supervision_advantages(rewards, gamma=0.0)[0].tolist() == [-1.0, 1.0]
    with pytest.raises(ValueError, match="smaller than tolerance"):
        compute_grpo_process_supervision_advantages([[1, 1], [1]])
    with pytest.raises(ValueError, match="No numerical"):
        compute_stats([[], []])


def test_arrays_are_compared_with_the_first():
    values = [[1.0, 2.0], [1.0, 2.0 + 1e-9], [1.0, 3.0]]
    assert allclose_to_first(values) is False
    assert np.asarray(allclose_to_first(values, return_vector=True)).tolist() == [True, True, False]
    assert allclose_to_first(values[:2]) is True


class Answer:
    """An aiohttp response, as far as it is read."""

    def __init__(self, status: int, body: str) -> None:
        self.status, self.body = status, body

    def raise_for_status(self) -> None:
        if self.status >= 400:
            raise RuntimeError(f"status {self.status}")

    async def json(self) -> Any:
        return json.loads(self.body)

    async def text(self) -> str:
        return self.body


async def test_an_answer_that_is_an_error_is_logged_with_its_body(caplog: pytest.LogCaptureFixture):
    assert await parse_http_response(Answer(200, '{"a": 1}')) == {"a": 1}
    with caplog.at_level(logging.ERROR), pytest.raises(RuntimeError):
        await parse_http_response(Answer(503, "overloaded"))
    assert "overloaded" in caplog.text
