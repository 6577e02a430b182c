"""Evaluations that are no environments: a list of data items, each run against a server on its own."""

from __future__ import annotations

import argparse
import asyncio
import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from atropos_tui.inference import APIServerConfig, ServerManager
from atropos_tui.runtime.evaluation_files import evaluation_record, metrics_table, write_evaluation

logger = logging.getLogger(__name__)


def pass_at_k(m: int, c: int, k: int) -> float:
    """The unbiased estimate of pass@k from `m` samples of which `c` are correct (Chen et al. 2021, section 2.1)."""
    if m - c < k:
        return 1.0
    missed = 1.0
    for drawn in range(m - c + 1, m + 1):
        missed *= 1.0 - k / drawn
    return 1.0 - missed


def evaluate_log(
    metrics: Mapping[str, Any],
    eval_dir: str | None = None,
    task_name: str | None = None,
    model_name: str | None = None,
    start_time: float | None = None,
    end_time: float | None = None,
    generation_parameters: Mapping[str, Any] | None = None,
    samples: Sequence[Mapping[str, Any]] | None = None,
    verbose: bool = True,
) -> None:
    """Write the results of an evaluation to `eval_dir`; without one, a warning is all that happens."""
    if eval_dir is None:
        logger.warning("eval_dir is not set: the results of the evaluation are not written")
        return
    now = time.time()
    seconds = (end_time if end_time is not None else now) - (start_time if start_time is not None else now)
    if verbose:
        logger.info("%s", metrics_table(str(task_name), metrics, seconds))
    record = evaluation_record(
        metrics,
        task_name=str(task_name),
        model_name=model_name,
        seconds=seconds,
        generation_parameters=generation_parameters or {},
    )
    logger.info("results of the evaluation: %s", write_evaluation(eval_dir, record, samples))


class EvalBase(ABC):
    """An evaluation: `setup_data` gives its items, `run_item` the metrics and the sample of one.

    Keyword arguments become attributes; `temperature`, `top_p` and `max_tokens` go to the server, `eval_dir` and
    `verbose` to `evaluate_log`.
    """

    def __init__(self, pass_at_n: int = 1, pass_at_n_samples: int = 1, **kwargs: Any) -> None:
        self.pass_at_n = pass_at_n
        self.pass_at_n_samples = pass_at_n_samples
        for name, value in kwargs.items():
            setattr(self, name, value)
        self.data = self.setup_data()

    @abstractmethod
    def setup_data(self) -> list[Any]:
        """The items."""

    @abstractmethod
    async def run_item(self, server: ServerManager, data_item: Any) -> tuple[dict[str, Any], Any]:
        """Metrics of one item, with the same names for each, and what `samples.jsonl` shows of it."""

    def get_generation_params(self) -> dict[str, Any]:
        """How completions are sampled."""
        return {
            "temperature": getattr(self, "temperature", 0.0),
            "n": max(self.pass_at_n_samples, self.pass_at_n),
            "top_p": getattr(self, "top_p", 1.0),
            "max_tokens": getattr(self, "max_tokens", -1),
        }

    async def chat_completion(self, server: ServerManager, messages: Sequence[Any]) -> Any:
        """A chat completion with the evaluation's generation parameters."""
        return await server.chat_completion(messages=messages, **self.get_generation_params())

    async def __call__(self, server_manager: ServerManager) -> dict[str, float]:
        """Run all items beside each other, write the results, and return the mean of each metric."""
        started = time.time()
        results = await asyncio.gather(*(self.run_item(server_manager, item) for item in self.data))
        told = [metrics for metrics, _ in results]
        means = {name: sum(metrics[name] for metrics in told) / len(told) for name in (told[0] if told else ())}
        evaluate_log(
            means,
            eval_dir=getattr(self, "eval_dir", None),
            task_name=self._task_name(),
            model_name=server_manager.servers[0].config.model_name,
            start_time=started,
            end_time=time.time(),
            generation_parameters=self.get_generation_params(),
            samples=[sample for _, sample in results],
            verbose=getattr(self, "verbose", False),
        )
        return means

    def _task_name(self) -> str:
        of_how_many = f":{self.pass_at_n_samples}" if self.pass_at_n != self.pass_at_n_samples else ""
        return f"{type(self).__name__}@{self.pass_at_n}{of_how_many}"


async def eval_runner(eval_env: EvalBase) -> dict[str, float]:
    """Run an evaluation against the server that the command line names."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--server-url", default="http://localhost:8000", help="address of the server")
    parser.add_argument("--model-name", default=None, help="the model to ask for")
    given = parser.parse_args()
    named = {"model_name": given.model_name} if given.model_name is not None else {}
    config = APIServerConfig(api_key="dummy", base_url=given.server_url, health_check=False, **named)
    return await eval_env(ServerManager([config]))
