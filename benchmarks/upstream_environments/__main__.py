"""`python -m benchmarks.upstream_environments CHECKOUT`: see the package."""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import benchmarks.upstream_environments as package
from atropos_tui.compat.inspection import Inspection
from benchmarks.upstream_environments.fake_server import FakeServer
from benchmarks.upstream_environments.results import Results, Setup
from benchmarks.upstream_environments.runs import Outcome, Runner
from benchmarks.upstream_environments.sides import Side
from benchmarks.upstream_environments.subjects import RAN_ON_UPSTREAM, environment_files, is_evaluation
from benchmarks.upstream_environments.table import figures, legend, table
from benchmarks.upstream_environments.tokenizer import make_tokenizer
from benchmarks.upstream_environments.words import comparison_in_words, outcome_in_words


def main(argv: Sequence[str]) -> int:
    options = _parser().parse_args(argv)
    checkout, output = options.checkout.resolve(), options.output.resolve()
    results = Results(output)
    if options.table:
        known = environment_files(checkout)
        print(figures(known, results), legend(), table(known, results), sep="\n\n")
        return 0
    files: Sequence[str] = options.files or (environment_files(checkout) if options.all else RAN_ON_UPSTREAM)
    tokenizer = make_tokenizer(output / "tokenizer", sorted((checkout / "environments").glob("*.py")))
    ours = Side("ours", options.python, checkout, tokenizer)
    upstream = Side("upstream", options.upstream_python or options.python, checkout, tokenizer)
    inference = FakeServer(str(tokenizer))
    with inference.running(options.inference_port):
        runner = Runner(inference, options.limit)
        for file in files:
            if options.mode == "check":
                _check(ours, file, results)
            elif options.mode == "process":
                _run_to_the_end(runner, ours, upstream, file, results)
            elif not is_evaluation(file):
                _serve(runner, ours, upstream, file, results)
    return 0


def _check(side: Side, file: str, results: Results) -> None:
    told = subprocess.run(
        [side.python, "-m", "atropos_tui", "check", "--json", str(side.checkout / "environments" / file)],
        env=side.variables(), cwd=results.root, capture_output=True, text=True, check=False,
    )  # fmt: skip
    inspection = Inspection.model_validate_json(told.stdout)
    results.keep_inspection(file, inspection)
    _tell(file, "check", "loads" if inspection.loads else inspection.error)


def _run_to_the_end(runner: Runner, ours: Side, upstream: Side, file: str, results: Results) -> None:
    """`process` or `evaluate` on both sides."""
    for setup, side in ((Setup.UPSTREAM, upstream), (Setup.OURS, ours)):
        _tell_outcome(setup, runner.run_to_the_end(side, file, results.emptied(file, setup)))
    _tell_comparison(file, results, Setup.OURS, Setup.UPSTREAM)


def _serve(runner: Runner, ours: Side, upstream: Side, file: str, results: Results) -> None:
    for setup, side, api_side in (
        (Setup.SERVE_UPSTREAM, upstream, upstream),
        (Setup.SERVE_OURS_TO_RUN_API, ours, upstream),
        (Setup.SERVE_OURS, ours, ours),
    ):
        _tell_outcome(setup, runner.serve(side, api_side, file, results.emptied(file, setup)))
    for setup in (Setup.SERVE_OURS_TO_RUN_API, Setup.SERVE_OURS):
        _tell_comparison(file, results, setup, Setup.SERVE_UPSTREAM)


def _tell_outcome(setup: Setup, outcome: Outcome) -> None:
    _tell(outcome.file, setup, f"{outcome_in_words(outcome)} ({outcome.seconds:.0f} s)")


def _tell_comparison(file: str, results: Results, ours: Setup, upstream: Setup) -> None:
    comparison = results.comparison(file, ours, upstream)
    if comparison is not None:
        _tell(file, f"{ours} beside {upstream}", comparison_in_words(comparison))


def _tell(file: str, what: str, how: str) -> None:
    print(f"{file}: {what}: {how}", flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.upstream_environments", description=package.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("checkout", type=Path, metavar="CHECKOUT", help="a clone of the atroposlib repository")
    parser.add_argument("--python", default=sys.executable, help="Python with the packages above (default: this one)")
    parser.add_argument("--upstream-python", help="another Python for atroposlib's side (default: the same)")
    parser.add_argument("--mode", choices=("process", "serve", "check"), default="process")
    parser.add_argument("--files", nargs="+", metavar="FILE", help="files below environments/ (default: the 32)")
    parser.add_argument(
        "--inference-port", type=int, default=9004, metavar="PORT",
        help="where the model is served; atroposlib looks for it at the default, 9004, when a file names one server",
    )  # fmt: skip
    parser.add_argument("--all", action="store_true", help="all environment files of the checkout")
    parser.add_argument(
        "--output",
        type=Path,
        default=Path(".cache/upstream_environments"),
        metavar="DIR",
        help="(default: %(default)s)",
    )
    parser.add_argument("--limit", type=float, default=120.0, metavar="S", help="longest a run may take (default: 120)")
    parser.add_argument("--table", action="store_true", help="run nothing: print the table of the results in DIR")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
