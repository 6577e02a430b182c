"""The command line, `atropos-tui VERB …`.

Each verb imports what it needs when it runs: `import atropos_tui.cli` loads neither Textual nor transformers nor wandb.
Exit status: 0 done, 1 the run failed, 2 wrong use (one line on stderr says what is wrong and what to do).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path

from atropos_tui.arguments import OneLineParser
from atropos_tui.errors import AtroposError, UsageError

_SERVE_EPILOG = """\
every other flag goes to the environment:
  --env.FIELD VALUE      a field of its config, such as --env.group_size 8
  --openai.FIELD VALUE   a field of its inference server, such as --openai.base_url http://localhost:9001/v1
  --config FILE.yaml     both, from a file; flags win
`atropos-tui serve FILE[:CLASS] --help` lists the fields of that environment."""


def _parser(verb: str, about: str, epilog: str | None = None) -> OneLineParser:
    return OneLineParser(
        prog=f"atropos-tui {verb}",
        description=about,
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=epilog,
    )


def _demo(argv: Sequence[str]) -> int:
    """a complete loop that really learns, on this machine"""
    parser = _parser(
        "demo", "A small policy learns on the CPU: model, environment, trajectory API and trainer, for real."
    )
    parser.add_argument("--headless", action="store_true", help="no screen; end after --seconds")
    parser.add_argument("--seconds", type=float, default=120.0, metavar="N", help="how long, headless (default 120)")
    parser.add_argument("--json", action="store_true", help="headless: print one JSON object at the end")
    parser.add_argument("--seed", type=int, default=0, help="seed of the policy's first weights (default 0)")
    args = parser.parse_args(argv)
    if not 0 < args.seconds < float("inf"):
        raise UsageError(f"--seconds {args.seconds:g} is not a duration", "give a number above 0")
    if args.json and not args.headless:
        raise UsageError("--json prints what the screen would show", "add --headless")
    from atropos_tui.verbs.demo import run_demo

    return run_demo(headless=args.headless, seconds=args.seconds, as_json=args.json, seed=args.seed)


def _serve(argv: Sequence[str]) -> int:
    """run an environment file, and watch it"""
    parser = _parser("serve", "Run an environment file in a worker process, and watch it.", _SERVE_EPILOG)
    parser.usage = "atropos-tui serve FILE[:CLASS] [--run-dir DIR] [--headless] [--env.FIELD VALUE …]"
    parser.add_argument(
        "environment", metavar="FILE[:CLASS]", help="the environment's file, and class if it has several"
    )
    parser.add_argument("--run-dir", type=Path, metavar="DIR", help="where the run keeps its socket, log and outbox")
    parser.add_argument("--headless", action="store_true", help="no screen: plain lines, until the run ends")
    if argv and argv[0].startswith("-") and argv[0] not in ("-h", "--help"):
        raise UsageError("the environment file comes first", "atropos-tui serve FILE[:CLASS] [flags]")
    from atropos_tui.verbs.serve import print_environment_help, serve_environment

    if len(argv) > 1 and set(argv[1:]) & {"-h", "--help"}:
        parser.print_help()
        return print_environment_help(argv[0])
    args, environment_flags = parser.parse_known_args(argv)
    return serve_environment(args.environment, environment_flags, run_dir=args.run_dir, headless=args.headless)


def _api(argv: Sequence[str]) -> int:
    """the trajectory API, which trainers pull from"""
    from atropos_tui.trajectory_api.command import main as api_main

    return api_main(argv)


def _attach(argv: Sequence[str]) -> int:
    """watch a run that is there already"""
    parser = _parser("attach", "Watch a run that is there already.")
    parser.add_argument("run", metavar="RUN_DIR", type=Path, help="the directory of the run")
    parser.add_argument("--read-only", action="store_true", help="only look: the keys that change the run are off")
    args = parser.parse_args(argv)
    from atropos_tui.verbs.serve import attach

    return attach(args.run, read_only=args.read_only)


_VERBS: dict[str, Callable[[Sequence[str]], int]] = {"demo": _demo, "serve": _serve, "api": _api, "attach": _attach}


def _usage() -> str:
    verbs = "\n".join(f"  {name:<8} {verb.__doc__}" for name, verb in _VERBS.items())
    return f"usage: atropos-tui VERB …\n\n{verbs}\n\n`atropos-tui VERB --help` says more of each."


def _run(argv: Sequence[str]) -> int:
    if not argv:
        raise UsageError("say what to do: " + ", ".join(_VERBS), "start with `atropos-tui demo`, or see --help")
    verb, *rest = argv
    if verb in ("-h", "--help"):
        print(_usage())
        return 0
    if verb == "--version":
        print(f"atropos-tui {version('atropos-tui')}")
        return 0
    if verb not in _VERBS:
        raise UsageError(f"there is no verb {verb!r}", "the verbs are " + ", ".join(_VERBS))
    return _VERBS[verb](rest)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb; returns the exit status."""
    try:
        return _run(sys.argv[1:] if argv is None else argv)
    except AtroposError as error:
        print(f"atropos-tui: {error}", file=sys.stderr)
        return 2 if isinstance(error, UsageError) else 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
