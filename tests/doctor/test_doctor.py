"""What `doctor` says of terminals: from the environment, and from what a terminal itself answers."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path

import pexpect
import pyte
import pytest

from atropos_tui.cli import main
from atropos_tui.doctor.finding import Finding, Verdict
from atropos_tui.doctor.terminal import examine_terminal

XTERM = {"TERM": "xterm-256color", "COLORTERM": "truecolor"}


def found(
    environment: Mapping[str, str],
    *,
    size: tuple[int, int] = (120, 40),
    is_terminal: bool = True,
    encoding: str = "utf-8",
    tmux: Mapping[str, str] | None = None,
) -> dict[str, Finding]:
    findings = examine_terminal(
        environment, size=size, is_terminal=is_terminal, encoding=encoding, tmux=lambda name: (tmux or {})[name]
    )
    return {finding.what: finding for finding in findings}


def test_a_good_terminal_needs_nothing() -> None:
    findings = found(XTERM)
    assert {finding.verdict for finding in findings.values()} == {Verdict.GOOD}
    assert not any(finding.remedy for finding in findings.values())


def test_each_shortcoming_comes_with_what_to_do() -> None:
    assert "COLORTERM=truecolor" in found({"TERM": "xterm-256color"})["colours"].remedy
    assert found({"TERM": "xterm"})["colours"].found == "16"
    assert "LC_ALL" in found(XTERM, encoding="ascii")["characters"].remedy
    in_c = found({**XTERM, "LANG": "en_US.UTF-8", "LC_ALL": "C"})["characters"]
    assert (in_c.verdict, in_c.found) == (Verdict.LIMITED, "LC_ALL=C")
    assert found(XTERM, size=(79, 24))["size"].verdict is Verdict.LIMITED
    assert found({"TERM": "dumb"})["terminal"].verdict is Verdict.BAD
    assert found(XTERM, is_terminal=False)["terminal"].verdict is Verdict.BAD
    assert found({**XTERM, "NO_COLOR": "1"})["colours"].verdict is Verdict.GOOD


@pytest.mark.parametrize(
    ("version", "clipboard", "passthrough", "verdict"),
    [
        ("3.3a", "off", "off", Verdict.GOOD),
        ("next-3.6", "off", "off", Verdict.GOOD),
        ("3.1c", "on", "off", Verdict.GOOD),
        ("2.7", "external", "on", Verdict.GOOD),
        ("2.7", "external", "", Verdict.LIMITED),
        ("", "", "", Verdict.LIMITED),
    ],
)
def test_tmux_is_asked_whether_it_passes_the_clipboard_on(
    version: str, clipboard: str, passthrough: str, verdict: Verdict
) -> None:
    values = {"version": version, "set-clipboard": clipboard, "allow-passthrough": passthrough}
    findings = found({**XTERM, "TMUX": "/nowhere/socket,1,0"}, tmux=values)
    assert findings["clipboard"].verdict is verdict
    assert "off inside tmux" in findings["mouse"].found


def test_a_wrong_file_of_the_user_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "atropos-tui").mkdir()
    (tmp_path / "atropos-tui" / "keymap.toml").write_text("no equals sign")
    assert main(["doctor", "--json"]) == 1
    findings = {finding["what"]: finding for finding in json.loads(capsys.readouterr().out)["findings"]}
    assert findings["your files"]["verdict"] == "bad"
    assert "keymap.toml" in findings["your files"]["found"]


class AnsweringTerminal(pyte.Screen):
    """A terminal that answers where its cursor stands. `extra` is how much wider than right it draws each glyph."""

    def __init__(self, child: pexpect.spawn, extra: int) -> None:
        super().__init__(100, 30)
        self._child, self._extra = child, extra

    def draw(self, data: str) -> None:
        super().draw(data)
        self.cursor.x += self._extra * sum(not character.isascii() for character in data)

    def write_process_input(self, data: str) -> None:
        self._child.send(data)


# Waits longer than a second for the answers of a terminal that is a part of this test.
PATIENT = """
import sys
from atropos_tui.cli import main
from atropos_tui.doctor import asking
asking._PATIENCE = 60.0
sys.exit(main(["doctor"]))
"""


@pytest.mark.parametrize("extra", [0, 1])
def test_the_terminal_is_asked_how_wide_it_draws(extra: int, tmp_path: Path) -> None:
    environment = {**os.environ, **XTERM, "XDG_CONFIG_HOME": str(tmp_path), "LC_ALL": "C.UTF-8"}
    environment.pop("TMUX", None)
    child = pexpect.spawn(sys.executable, ["-c", PATIENT], env=environment, dimensions=(30, 100), timeout=60)
    stream = pyte.ByteStream(AnsweringTerminal(child, extra))
    told = b""
    while True:
        try:
            part = child.read_nonblocking(65536, timeout=60)
        except pexpect.EOF:
            break
        told += part
        stream.feed(part)
    assert child.wait() == 0
    child.close()
    text = told.decode()
    assert "answers" in text
    assert ("─│╭╯ take 8 cells instead of 4" if extra else "─│╭╯ are one cell wide") in text
