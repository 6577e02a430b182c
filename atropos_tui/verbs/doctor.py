"""`atropos-tui doctor`: what this terminal and machine can do. Exit status: 0 the screen works here, 1 it cannot."""

from __future__ import annotations

import json
import os
import shutil
import sys
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import asdict

from atropos_tui.arguments import verb_parser
from atropos_tui.doctor.asking import ask_terminal
from atropos_tui.doctor.finding import Finding, Verdict
from atropos_tui.doctor.machine import examine_machine
from atropos_tui.doctor.terminal import examine_terminal, tmux_value
from atropos_tui.terminal_size import terminal_size

_MARKS = {Verdict.GOOD: "ok", Verdict.LIMITED: "!", Verdict.BAD: "BAD"}


def main(argv: Sequence[str]) -> int:
    parser = verb_parser(
        "doctor",
        "Say what this terminal and this machine can do, and what to change where they cannot.",
        "exit status: 0 the screen works here, 1 it cannot, 2 wrong use",
    )
    parser.add_argument("--json", action="store_true", help="one JSON object with a list of findings")
    args = parser.parse_args(argv)
    findings = list(_examine())
    if args.json:
        sys.stdout.write(json.dumps({"findings": [asdict(finding) for finding in findings]}, indent=1) + "\n")
    else:
        sys.stdout.write(_as_text(findings))
    return int(any(finding.verdict is Verdict.BAD for finding in findings))


def _examine() -> Iterable[Finding]:
    is_terminal = sys.stdin.isatty() and sys.stdout.isatty()
    yield from examine_terminal(
        os.environ,
        size=terminal_size() or (0, 0),
        is_terminal=is_terminal,
        encoding=sys.stdout.encoding,
        tmux=tmux_value,
    )
    if is_terminal:
        yield from ask_terminal()
    yield from examine_machine()


def _as_text(findings: Sequence[Finding]) -> str:
    """A line for each, wrapped below itself where the terminal is narrow."""
    names = max(len(finding.what) for finding in findings)
    lines = []
    for finding in findings:
        lines.append(f"{_MARKS[finding.verdict]:>3}  {finding.what:<{names}}  {finding.found}")
        if finding.remedy:
            lines.append(f"{'':>3}  {'':<{names}}    to do: {finding.remedy}")
    wrapper = textwrap.TextWrapper(
        shutil.get_terminal_size((120, 24)).columns, subsequent_indent=" " * (names + 9), break_long_words=False,
        break_on_hyphens=False,
    )  # fmt: skip
    return "".join(f"{wrapper.fill(line)}\n" for line in lines)
