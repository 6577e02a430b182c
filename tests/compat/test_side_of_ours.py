"""Our side of `benchmarks.upstream_environments`, with an environment file of ours in the place of upstream's."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.upstream_environments.fake_server import FakeServer
from benchmarks.upstream_environments.runs import BATCHES, GROUP_SIZE, Runner, load_outcome
from benchmarks.upstream_environments.sides import STAND_INS, Side
from benchmarks.upstream_environments.tokenizer import make_tokenizer
from tests.compat.conftest import AUTHOR_FILES, Run

FILE = "bare_config_env.py"


@pytest.fixture(scope="module")
def side(tmp_path_factory: pytest.TempPathFactory) -> Side:
    checkout = tmp_path_factory.mktemp("checkout")
    (checkout / "environments").mkdir()
    shutil.copy(AUTHOR_FILES / FILE, checkout / "environments")
    tokenizer = make_tokenizer(checkout / "tokenizer", [AUTHOR_FILES / FILE])
    return Side("ours", sys.executable, checkout, tokenizer)


@pytest.fixture(scope="module")
def runner(side: Side) -> Iterator[Runner]:
    inference = FakeServer(str(side.tokenizer))
    with inference.running(port=0):
        yield Runner(inference, limit=100)


def test_a_file_is_run_to_its_end(runner: Runner, side: Side, tmp_path: Path):
    outcome = runner.run_to_the_end(side, FILE, tmp_path)
    assert (outcome.status, len(outcome.groups), outcome.calls) == (0, 2, {"generate": 2}), outcome.last_line
    assert outcome.ran
    assert load_outcome(tmp_path) == outcome


def test_a_file_is_served_until_the_trainer_has_its_batches(runner: Runner, side: Side, tmp_path: Path):
    outcome = runner.serve(side, side, FILE, tmp_path)
    assert outcome.batches >= BATCHES, outcome.last_line
    assert len(outcome.groups) >= 2 * BATCHES
    assert {len(group["tokens"]) for group in outcome.groups} == {GROUP_SIZE}
    assert [row["group_size"] for row in outcome.registrations] == [GROUP_SIZE]
    assert (outcome.refused, outcome.status) == (0, None)


def test_with_the_stand_ins_every_item_has_a_seed_and_every_tokenizer_is_there(python: Run, tokenizer_dir: Path):
    told = python(
        "-c",
        "import asyncio, random\n"
        "from atropos_tui import BaseEnv\n"
        "from transformers import AutoTokenizer\n"
        "class Draws(BaseEnv):\n"
        "    async def get_next_item(self): return random.random()\n"
        "draws = [asyncio.run(Draws.get_next_item(None)) for _ in range(2)]\n"
        "assert draws == [random.Random(seed).random() for seed in range(2)], draws\n"
        "print(AutoTokenizer.from_pretrained('nobody/model').eos_token)\n",
        path=STAND_INS, STAND_IN_TOKENIZER=str(tokenizer_dir),
    )  # fmt: skip
    assert told.stdout == "<eos>\n", told.stderr
