"""The command line, `atropos-tui VERB …`.

Each verb imports what it needs when it runs: `import atropos_tui.cli` loads neither Textual nor transformers nor wandb.
Exit status: 0 done, 1 it failed, 2 wrong use (one line on stderr says what is wrong and what to do), 130 interrupted;
`status` has further ones for runs that ended.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path

from atropos_tui import garbage_collection
from atropos_tui.arguments import byte_count, verb_parser
from atropos_tui.errors import AtroposError, UsageError
from atropos_tui.verbs.screen_flags import add_screen_flags, screen_options

_EXIT_STATUS = "exit status: 0 done, 1 it failed, 2 wrong use, 130 interrupted; `status` has 3 finished, 4 crashed"

_SERVE_EPILOG = """\
every other flag goes to the environment:
  --env.FIELD VALUE      a field of its config, such as --env.group_size 8
  --openai.FIELD VALUE   a field of its inference server, such as --openai.base_url http://localhost:9001/v1
  --config FILE.yaml     both, from a file; flags win
`atropos-tui serve FILE[:CLASS] --help` lists the fields of that environment."""


def _demo(argv: Sequence[str]) -> int:
    """a complete loop that really learns, on this machine"""
    parser = verb_parser(
        "demo", "A small policy learns on the CPU: model, environment, trajectory API and trainer, for real."
    )
    parser.add_argument("--headless", action="store_true", help="no screen; end after --seconds")
    parser.add_argument("--seconds", type=float, default=120.0, metavar="N", help="how long, headless (default 120)")
    parser.add_argument("--json", action="store_true", help="headless: print one JSON object at the end")
    parser.add_argument("--seed", type=int, default=0, help="seed of the policy's first weights (default 0)")
    parser.add_argument(
        "--envs", default="reverse", metavar="TASK,…",
        help="what the one policy is to learn: reverse, sort, shift, or files of your own",
    )  # fmt: skip
    add_screen_flags(parser)
    args = parser.parse_args(argv)
    if not 0 < args.seconds < float("inf"):
        raise UsageError(f"--seconds {args.seconds:g} is not a duration", "give a number above 0")
    if args.json and not args.headless:
        raise UsageError("--json prints what the screen would show", "add --headless")
    from atropos_tui.verbs.demo import run_demo
    from atropos_tui.verbs.pocket_loop import pocket_tasks

    tasks = pocket_tasks(args.envs)
    return run_demo(
        tasks=tasks, headless=args.headless, seconds=args.seconds, as_json=args.json, seed=args.seed,
        screen=screen_options(args),
    )  # fmt: skip


def _serve(argv: Sequence[str]) -> int:
    """run an environment file, and watch it"""
    parser = verb_parser("serve", "Run an environment file in a worker process, and watch it.", _SERVE_EPILOG)
    parser.usage = "atropos-tui serve FILE[:CLASS] [--run-dir DIR] [--headless | --detach] [--env.FIELD VALUE …]"
    parser.add_argument(
        "environment", metavar="FILE[:CLASS]", help="the environment's file, and class if it has several"
    )
    parser.add_argument("--run-dir", type=Path, metavar="DIR", help="where the run keeps its socket, log and outbox")
    shown = parser.add_mutually_exclusive_group()
    shown.add_argument("--headless", action="store_true", help="no screen: plain lines, until the run ends")
    shown.add_argument("--detach", action="store_true", help="start the run, print its directory, and leave it alone")
    parser.add_argument(
        "--record", choices=("all", "messages", "summary", "none"), default="all",
        help="what goes into the run file: all, no token arrays, no contents, nothing (default all)",
    )  # fmt: skip
    parser.add_argument(
        "--record-limit", type=byte_count, metavar="SIZE", help="the run file's size, such as 500M (default 20G)"
    )
    parser.add_argument("--listen", metavar="HOST:PORT", help="let who has the token of the run attach over TCP")
    parser.add_argument("--read-only", action="store_true", help="the run refuses every command")
    add_screen_flags(parser)
    if argv and argv[0].startswith("-") and argv[0] not in ("-h", "--help"):
        raise UsageError("the environment file comes first", "atropos-tui serve FILE[:CLASS] [flags]")
    from atropos_tui.verbs.serve import print_environment_help, serve_environment

    if len(argv) > 1 and set(argv[1:]) & {"-h", "--help"}:
        parser.print_help()
        return print_environment_help(argv[0])
    args, environment_flags = parser.parse_known_args(argv)
    worker_options = ["--record", args.record]
    worker_options += [] if args.record_limit is None else ["--record-limit", str(args.record_limit)]
    worker_options += ["--listen", args.listen] if args.listen else []
    worker_options += ["--read-only"] if args.read_only else []
    return serve_environment(
        args.environment, environment_flags, run_dir=args.run_dir, headless=args.headless, detach=args.detach,
        worker_options=worker_options, screen=screen_options(args),
    )  # fmt: skip


def _api(argv: Sequence[str]) -> int:
    """the trajectory API, which trainers pull from"""
    from atropos_tui.trajectory_api.command import main as api_main

    return api_main(argv)


def _check(argv: Sequence[str]) -> int:
    """say whether environment files load here, and what they need"""
    parser = verb_parser("check", "Load environment files without running them, and say what each is and needs.")
    parser.add_argument("files", metavar="FILE[:CLASS]", nargs="+", help="environment files")
    forms = parser.add_mutually_exclusive_group()
    forms.add_argument("--markdown", action="store_true", help="print one row of a Markdown table for each file")
    forms.add_argument("--json", action="store_true", help="print one JSON object a line for each file")
    args = parser.parse_args(argv)
    from atropos_tui.verbs.check import check_files

    return check_files(args.files, form="json" if args.json else "markdown" if args.markdown else "text")


def _run_script(argv: Sequence[str]) -> int:
    """run a script or a module that was written for atroposlib"""
    if not argv or argv[0] in ("-h", "--help"):
        print("usage: atropos-tui run FILE …\n       atropos-tui run -m MODULE …\n\nRuns it as Python would,", end=" ")
        print("with our `atroposlib` in the place of an installed one.")
        return 0
    from atropos_tui.compat.running import run_script

    return run_script(argv)


def _in_module(module: str, about: str) -> Callable[[Sequence[str]], int]:
    """A verb that has a module of its own, whose `main` takes the arguments."""

    def run(argv: Sequence[str]) -> int:
        with garbage_collection.at_rest():
            verb = import_module(f"atropos_tui.verbs.{module}")
        status: int = verb.main(argv)
        return status

    run.__doc__ = about
    return run


def _batch_mode(mode: str, about: str) -> Callable[[Sequence[str]], int]:
    def run(argv: Sequence[str]) -> int:
        from atropos_tui.verbs.batch_mode import run_batch_mode

        return run_batch_mode(mode, argv)

    run.__doc__ = about
    return run


_VERBS: dict[str, Callable[[Sequence[str]], int]] = {
    "demo": _demo, "serve": _serve,
    "process": _batch_mode("process", "run an environment into a file of scored groups, without a trainer"),
    "evaluate": _batch_mode("evaluate", "run an environment's evaluation once"),
    "api": _api,
    "attach": _in_module("attach", "watch a run that is there already"),
    "fleet": _in_module("fleet", "watch all runs, here and elsewhere, on one screen"),
    "ls": _in_module("ls", "list the runs and how they are"),
    "status": _in_module("status", "say how a run is, as text or JSON"),
    "logs": _in_module("logs", "print what a run's worker logged, and follow it"),
    "pause": _in_module("pause", "let no further group of a run start"),
    "resume": _in_module("resume", "let groups start again"),
    "step": _in_module("step", "let one group of a paused run start"),
    "cancel": _in_module("cancel", "give up one group that is being made"),
    "requeue": _in_module("requeue", "put one group that is being made back into the backlog"),
    "evaluate-now": _in_module("evaluate_now", "start an evaluation of a run"),
    "restart": _in_module("restart", "start a run again whose worker is gone"),
    "stop": _in_module("stop", "end a run in order"),
    "open": _in_module("open", "watch a run file or a JSONL of scored groups"),
    "export": _in_module("export", "write the groups of a run as JSONL, HTML, SFT, DPO or Parquet data"),
    "web": _in_module("web", "show a run in a browser on this machine"),
    "doctor": _in_module("doctor", "say what this terminal can do, and what to change"),
    "new": _in_module("new", "write an environment that runs as it stands, and its test"),
    "check": _check, "run": _run_script,
}  # fmt: skip


def _usage() -> str:
    verbs = "\n".join(f"  {name:<12} {verb.__doc__}" for name, verb in _VERBS.items())
    return f"usage: atropos-tui VERB …\n\n{verbs}\n\n{_EXIT_STATUS}\n`atropos-tui VERB --help` says more of each."


def _run(argv: Sequence[str]) -> int:
    if not argv:
        raise UsageError("say what to do: " + ", ".join(_VERBS), "start with `atropos-tui demo`, or see --help")
    verb, *rest = argv
    if verb in ("-h", "--help"):
        print(_usage())
        return 0
    if verb == "--version":
        from importlib.metadata import version

        print(f"atropos-tui {version('atropos-tui')}")
        return 0
    if verb not in _VERBS:
        raise UsageError(f"there is no verb {verb!r}", "the verbs are " + ", ".join(_VERBS))
    return _VERBS[verb](rest)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb; returns the exit status."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # where the locale has few characters, `?` is better than no answer
    try:
        return _run(sys.argv[1:] if argv is None else argv)
    except AtroposError as error:
        from atropos_tui.ui.text_safety import visible_lines  # it may quote what a model wrote

        print("\n".join(visible_lines(f"atropos-tui: {error}")), file=sys.stderr)
        return 2 if isinstance(error, UsageError) else 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
