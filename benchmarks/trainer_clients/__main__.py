"""Run the trajectory API clients of three trainers that others wrote, from checkouts that are never ours.

    git clone https://github.com/NousResearch/atropos
    git clone https://github.com/axolotl-ai-cloud/plugin-atropos
    git clone https://github.com/verl-project/verl-recipe
    python -m venv clients && clients/bin/pip install requests tenacity pytest pytest-asyncio httpx datasets torch \\
        pydantic numpy wandb
    python -m benchmarks.trainer_clients --python clients/bin/python \\
        --example-trainer atropos --axolotl plugin-atropos --verl verl-recipe

Each client registers, waits for a batch and takes it, in its own code, against a server of ours of its own. verl's own
tests of its client run besides. Exit status 1 when one fails.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from atropos_tui.monitor.supervisor import start_process

PATIENCE = 180.0
NEEDS_VERL = "atropos/tests/test_atropos_data.py"
RUNS = Path(__file__).with_name("runs.py")
CLIENTS = {
    "example_trainer": "upstream's example trainer",
    "axolotl": "the data set loader of axolotl's plugin",
    "verl": "the client of verl-recipe",
}


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable, help="an interpreter that has what the clients import")
    for client, what in CLIENTS.items():
        parser.add_argument(f"--{client.replace('_', '-')}", type=Path, metavar="CHECKOUT", help=what)
    args = parser.parse_args(argv)
    checkouts = {client: getattr(args, client) for client in CLIENTS if getattr(args, client)}
    if not checkouts:
        parser.error("name at least one checkout")
    results = [run_client(args.python, client, checkout.resolve()) for client, checkout in checkouts.items()]
    if args.verl:
        results.append(run_tests(args.python, args.verl.resolve()))
    return 0 if all(results) else 1


def run_client(python: str, client: str, checkout: Path) -> bool:
    """Whether the client got its batches."""
    with tempfile.TemporaryDirectory() as directory:
        command = [sys.executable, "-m", "atropos_tui.trajectory_api", "--port", "0", "--no-journal"]
        with start_process(command, log_path=Path(directory) / "log") as api:
            return told(CLIENTS[client], [python, str(RUNS), client, str(checkout), str(api.ready["url"])], checkout)


def run_tests(python: str, checkout: Path) -> bool:
    """The tests that the client's authors wrote, but for those that need verl and its GPUs."""
    command = [python, "-m", "pytest", "-q", "-W", "ignore", "--ignore", NEEDS_VERL, "atropos/tests"]
    return told("verl-recipe's own tests", command, checkout)


def told(what: str, command: Sequence[str], checkout: Path) -> bool:
    """Run it, and print its last line."""
    with tempfile.TemporaryDirectory() as directory:
        # verl-recipe imports itself as the package `recipe`.
        (Path(directory) / "recipe").symlink_to(checkout, target_is_directory=True)
        done = subprocess.run(
            command, cwd=checkout, env=os.environ | {"PYTHONPATH": directory}, capture_output=True, text=True,
            timeout=PATIENCE, check=False,
        )  # fmt: skip
    lines = (done.stdout if done.returncode == 0 else done.stdout + done.stderr).strip().splitlines()
    print(f"{'ok' if done.returncode == 0 else 'FAILED':<7} {what}: {lines[-1] if lines else 'no word'}")
    return done.returncode == 0


if __name__ == "__main__":
    sys.exit(main())
