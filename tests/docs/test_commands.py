"""Every command in the documentation is carried out, in a directory where what it speaks of is there."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from atropos_tui.monitor.supervisor import start_process
from tests.docs.bench import Bench
from tests.docs.pages import Command, code_blocks, commands

# Programs that are not ours, what needs checkouts of others, and the README's own two commands, which CI carries out on
# a clean machine.
ELSEWHERE = (
    "PYTHONPATH=",
    "python -m benchmarks.",
    "python benchmarks/",
    "ssh",
    "scp",
    "tmux",
    "pip install",
    "vllm",
    "python -m sglang",
    "trl",
    "export",
    "git clone",
    "cd ",
)

DASHBOARD = "Rollout queue"
NEEDED = "atropos-tui new"
Carry = Callable[[Bench, str], object]


def screen(*seen: str) -> Carry:
    return lambda bench, text: bench.shows(text, *seen)


def served(bench: Bench, text: str) -> None:
    """A run with a screen, one that is left alone, or one told in lines."""
    if "--detach" in text:
        bench.finishes(text)
    else:
        bench.shows(text, DASHBOARD)


def stopped(bench: Bench, text: str) -> None:
    """Stops a run that nothing else needs."""
    bench.serve_run("to_stop")
    bench.finishes(text.replace("RUN", "to_stop"))


def printed_or_shown(*seen: str) -> Carry:
    """For verbs that have a screen unless they are told to print."""

    def carry(bench: Bench, text: str) -> None:
        if re.search(r"--(once|json)\b", text):
            bench.finishes(text)
        else:
            bench.shows(text, *seen)

    return carry


# What is done with a command, by how it begins; the first that fits.
KINDS: dict[str, Carry] = {
    "atropos-tui demo --headless": lambda bench, text: bench.finishes(re.sub(r"--seconds \d+", "--seconds 3", text)),
    "atropos-tui demo": screen(DASHBOARD),
    "atropos-tui serve": served,
    "atropos-tui attach": printed_or_shown(DASHBOARD),
    "atropos-tui open": printed_or_shown(DASHBOARD),
    "atropos-tui fleet": screen("Fleet", "alive"),
    "atropos-tui api": lambda bench, text: bench.serves(text),
    "atropos-tui web": lambda bench, text: bench.serves(f"{text} --port 0"),
    "atropos-tui run": lambda bench, text: bench.registers(text),
    "atropos-tui stop": stopped,
    "atropos-tui status": lambda bench, text: bench.finishes(text, (0, 3)),
    "atropos-tui doctor": lambda bench, text: bench.finishes(text, (0, 1)),
    "atropos-tui": lambda bench, text: bench.finishes(text),
    "pytest test_my_task.py": lambda bench, text: bench.finishes(text),
    "curl": lambda bench, text: bench.finishes(text),
}


def kind_of(text: str) -> Carry | None:
    if text.startswith(ELSEWHERE):
        return lambda bench, text: None
    return next((carry for beginning, carry in KINDS.items() if text.startswith(beginning)), None)


def pages() -> Iterator[tuple[str, list[Command]]]:
    """The commands of each page, each only where it stands first, but for what others of the page need."""
    met: set[str] = set()
    for page in dict.fromkeys(command.page for command in commands()):
        told = [command for command in commands() if command.page == page]
        new = [command for command in told if command.text not in met or command.text.startswith(NEEDED)]
        met |= {command.text for command in new}
        yield page, new


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory, trajectory_api: str) -> Iterator[Bench]:
    directory = tmp_path_factory.mktemp("bench")
    command = [sys.executable, "-m", "atropos_tui.pocket.server", "--port", "0"]
    with start_process(command, log_path=directory / "policy.log") as policy:
        made = Bench(directory, trajectory_api, policy.ready["url"])
        try:
            made.serve_run("ended")
            made.finishes("atropos-tui stop ended")
            made.serve_run("going")
            yield made
        finally:
            made.end()


@pytest.mark.parametrize(("page", "told"), pages(), ids=lambda value: value if isinstance(value, str) else "")
def test_the_commands_of_a_page_do_what_they_say(bench: Bench, page: str, told: list[Command]) -> None:
    bench.sit_down(page.replace("/", "-"))
    for command in told:
        carry = kind_of(command.text)
        assert carry is not None, command
        carry(bench, command.text)


def test_the_trainer_of_the_documentation_gets_batches(bench: Bench, tmp_path: Path) -> None:
    (code,) = code_blocks("docs/trainers.md", "python", "runs")
    script = tmp_path / "trainer.py"
    api = bench.filled_in("http://localhost:8000")
    script.write_text(code.replace("http://localhost:8000", api).replace('"batch_size": 32', '"batch_size": 8'))
    assert len(bench.finishes(f"python {script}").splitlines()) == 10
