"""`atropos-tui new`: the files of a new environment. Exit status: 0 written, 2 wrong use."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from atropos_tui.arguments import verb_parser
from atropos_tui.new_environment import write_environment


def main(argv: Sequence[str]) -> int:
    parser = verb_parser("new", "Write an environment that runs as it stands, and its test.")
    parser.add_argument("name", metavar="NAME", help="its name: small letters, digits and _")
    parser.add_argument("--directory", type=Path, default=Path(), metavar="DIR", help="where (default: here)")
    args = parser.parse_args(argv)
    environment, test = write_environment(args.name, args.directory)
    sys.stdout.write(
        f"{environment}\n{test}\n\n"
        f"test it:          pytest {test}\n"
        f"see it learn:     atropos-tui demo --envs {environment.resolve()}\n"
        f"without trainer:  atropos-tui process {environment} --testing\n"
    )
    return 0
