"""What can be told of the terminal from the environment, without asking it."""

from __future__ import annotations

import codecs
import re
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping

from rich.console import Console

from atropos_tui.doctor.finding import Finding, bad, good, limited
from atropos_tui.locale_characters import locale_of, locale_speaks_unicode

_COLORS = {None: "none", "standard": "16", "256": "256", "truecolor": "16 million", "windows": "16"}
_SMALLEST = (80, 24)
_TMUX_SECONDS = 2.0
_PASSES_ON_WHAT_IT_IS_GIVEN = (3, 2)

TmuxValue = Callable[[str], str]


def examine_terminal(
    environment: Mapping[str, str],
    *,
    size: tuple[int, int],
    is_terminal: bool,
    encoding: str,
    tmux: TmuxValue,
) -> Iterator[Finding]:
    """`size` is columns and lines, zeros where unknown; `encoding` is what Python writes; `tmux` asks tmux."""
    yield _terminal(environment, is_terminal)
    yield _encoding(environment, encoding)
    if is_terminal:
        yield _colors(environment)
        yield _size(size)
        yield from _multiplexer(environment, tmux)
    if "SSH_CONNECTION" in environment:
        yield good("ssh", "the terminal is at the other end of an SSH connection; `ssh -C` cuts its bytes to a tenth")
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        yield limited(
            "hang-up", "SIGHUP is ignored here, as under nohup", "start without nohup: runs outlive terminals"
        )


def tmux_value(name: str) -> str:
    """What an option of tmux is, or its `version`; empty when tmux does not know it or does not answer."""
    command = ["tmux", "display-message", "-p", f"#{{{name}}}"]
    try:
        asked = subprocess.run(command, capture_output=True, text=True, timeout=_TMUX_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return asked.stdout.strip()


def _terminal(environment: Mapping[str, str], is_terminal: bool) -> Finding:
    term = environment.get("TERM", "")
    if not is_terminal:
        return bad("terminal", "input or output is not one", "start in a terminal; `attach --once` prints instead")
    if term in ("", "dumb"):
        return bad("terminal", f"TERM is {term or 'not set'}", "set TERM to what the terminal is: xterm-256color, say")
    return good("terminal", " ".join(filter(None, (term, environment.get("TERM_PROGRAM", "")))))


def _colors(environment: Mapping[str, str]) -> Finding:
    if "NO_COLOR" in environment:
        return good("colours", "none, as NO_COLOR asks; shapes and words say the same")
    system = Console(force_terminal=True, _environ=environment).color_system
    found = _COLORS[system]
    if system == "truecolor":
        return good("colours", found)
    remedy = "if the terminal has 16 million: export COLORTERM=truecolor (SSH does not pass it on by itself)"
    return limited("colours", found, remedy)


def _size(size: tuple[int, int]) -> Finding:
    columns, lines = size
    found = f"{columns}×{lines}"
    if columns >= _SMALLEST[0] and lines >= _SMALLEST[1]:
        return good("size", found)
    return limited("size", found, f"from {_SMALLEST[0]}×{_SMALLEST[1]} on nothing is cut off; z shows one pane alone")


def _encoding(environment: Mapping[str, str], encoding: str) -> Finding:
    found = encoding if locale_speaks_unicode(environment) else locale_of(environment)
    if found == encoding and codecs.lookup(encoding).name == "utf-8":
        return good("characters", "UTF-8")
    return limited("characters", found, "export LC_ALL=C.UTF-8; without it charts and frames are drawn in ASCII")


def _multiplexer(environment: Mapping[str, str], tmux: TmuxValue) -> Iterator[Finding]:
    if environment.get("TMUX"):
        yield good("mouse", "off inside tmux, which loses it when it attaches again")
        yield _tmux_clipboard(tmux)
        yield _tmux_encoding()
    elif environment.get("STY"):
        yield good("mouse", "off inside screen")
        yield limited("clipboard", "screen passes nothing on", "write to a file instead (Y), or use tmux")
    else:
        yield good("mouse", "on; hold shift to select text with the terminal's own mouse")
        yield good("clipboard", "sent to the terminal as OSC 52; terminals do not say whether they took it")


def _tmux_clipboard(tmux: TmuxValue) -> Finding:
    version = tmux("version")
    if _numbers(version) >= _PASSES_ON_WHAT_IT_IS_GIVEN:
        return good("clipboard", f"tmux {version} is given the text and passes it on to its terminal")
    clipboard, passthrough = tmux("set-clipboard"), tmux("allow-passthrough")
    if clipboard == "on" or passthrough in ("on", "all"):
        return good("clipboard", f"tmux passes it on (set-clipboard {clipboard}, allow-passthrough {passthrough})")
    found = f"tmux {version} keeps it to itself (set-clipboard {clipboard or 'unknown'})"
    return limited("clipboard", found, "tmux set -s set-clipboard on")


def _numbers(version: str) -> tuple[int, ...]:
    """`3.3a` and `next-3.4` as (3, 3) and (3, 4)."""
    return tuple(int(number) for number in re.findall(r"\d+", version))


def _tmux_encoding() -> Finding:
    try:
        command = ["tmux", "display-message", "-p", "#{client_utf8}"]
        asked = subprocess.run(command, capture_output=True, text=True, timeout=_TMUX_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return limited("tmux", f"does not answer: {error}", "see that `tmux` is the one that runs here")
    if asked.stdout.strip() == "0":
        return limited("tmux", "its client has no UTF-8: charts become underscores", "attach with `tmux -u attach`")
    return good("tmux", "its client takes UTF-8")
