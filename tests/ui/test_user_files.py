"""What users may bring: keys, themes; and what they take away: files, the clipboard, a crash report."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path

import pytest

from atropos_tui.errors import UsageError
from atropos_tui.ui.clipboard import MOST_CLIPBOARD_BYTES, clipboard_sequence, give_to_tmux
from atropos_tui.ui.crash import write_crash_file
from atropos_tui.ui.exporting import rollout_as_text, write_group
from atropos_tui.ui.key_names import key_named
from atropos_tui.ui.keymap import load_keymap
from atropos_tui.ui.keys import COMMANDS, KEY_NAMES
from atropos_tui.ui.user_files import read_user_files
from atropos_tui.user_config import config_directory
from tests.ui.recorded import ended_rows, group_detail

DETAIL = group_detail(ended_rows(2)[1])


class TestKeymap:
    def test_keys_are_read_by_command(self, tmp_path: Path) -> None:
        path = tmp_path / "keymap.toml"
        path.write_text('"run.pause" = "v, f5"\n')
        assert load_keymap(path) == {"run.pause": "v,f5"}

    @pytest.mark.parametrize("text", ['run.pause = "v"', '[run]\npause = "v"', '"run.pause" = " v, "'])
    def test_commands_may_be_written_without_quotes(self, tmp_path: Path, text: str) -> None:
        path = tmp_path / "keymap.toml"
        path.write_text(text)
        assert load_keymap(path) == {"run.pause": "v"}

    @pytest.mark.parametrize(
        ("written", "key"),
        [
            ("!", "exclamation_mark"), ("Ctrl+H", "ctrl+h"), ("esc", "escape"), ("PgUp", "pageup"), ("+", "plus"),
            ("ctrl++", "ctrl+plus"), ("shift+v", "V"), ("F5", "f5"), ("less_than_sign", "less_than_sign"), ("↑", "up"),
            ("shift+tab", "shift+tab"), ("ctrl+shift+v", "ctrl+shift+v"), ("ä", "ä"), ("-", "minus"),
        ],
    )  # fmt: skip
    def test_keys_may_be_written_as_people_do(self, written: str, key: str) -> None:
        assert key_named(written) == key

    def test_all_keys_of_the_table_are_keys(self) -> None:
        keys = {key for command in COMMANDS for key in command.keys.split(",")}
        assert {key_named(key) for key in keys} == keys
        assert {key_named(name) for name in KEY_NAMES.values()} == set(KEY_NAMES)

    @pytest.mark.parametrize("text", ["foo", "ctrl+", "a b", "hyphen++", "<any>"])
    def test_what_is_no_key_is_refused(self, text: str) -> None:
        with pytest.raises(ValueError, match=re.escape(text)):
            key_named(text)

    @pytest.mark.parametrize(
        ("text", "complaint"),
        [
            ('"run.puase" = "o"', "there is no command 'run.puase'"),
            ('"run.pause" = ""', "run.pause needs keys"),
            ('"run.pause" = 3', "run.pause needs keys"),
            ('"run.pause" = "r"', "'r' has two meanings in 'The run'"),
            ('"run.pause" = "o"', "'o' has two meanings in 'the dashboard'"),
            ("run.pause", "cannot read the keymap"),
            ('"run.pause" = ",,"', "run.pause needs keys"),
            ('"run.pause" = "ctrl+foo"', "run.pause: there is no key 'ctrl+foo'"),
            ('"run.pause" = "strg+p"', "run.pause: there is no key 'strg+p'"),
            ('"run.pause" = "?"', "'question_mark' has two meanings in 'the dashboard'"),
            ('run.puase = "o"', "there is no command 'run.puase'"),
        ],
    )
    def test_a_broken_keymap_names_file_command_and_fault(self, tmp_path: Path, text: str, complaint: str) -> None:
        path = tmp_path / "keymap.toml"
        path.write_text(text)
        with pytest.raises(UsageError) as error:
            load_keymap(path)
        assert complaint in str(error.value)
        assert "keymap.toml" in str(error.value)


class TestDirectory:
    def test_an_empty_directory_is_fine(self, tmp_path: Path) -> None:
        assert read_user_files(tmp_path / "nowhere").themes == ()

    def test_themes_of_the_user_are_found(self, tmp_path: Path) -> None:
        shipped = Path(__file__).parents[2] / "themes" / "dusk.toml"
        (tmp_path / "themes").mkdir()
        (tmp_path / "themes" / "mine.toml").write_text(shipped.read_text().replace('"dusk"', '"mine"'))
        assert [theme.name for theme in read_user_files(tmp_path).themes] == ["mine"]

    def test_it_lies_where_the_desktop_says(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
        assert config_directory() == tmp_path / "atropos-tui"


class TestTakingAway:
    def test_a_group_is_written_whole_and_never_over_another_file(self, tmp_path: Path) -> None:
        first, second = write_group(DETAIL, tmp_path), write_group(DETAIL, tmp_path)
        assert first != second
        written = json.loads(first.read_text())
        assert written["row"]["group_id"] == DETAIL.row.group_id
        assert [rollout["score"] for rollout in written["rollouts"]] == list(DETAIL.row.scores)

    def test_a_directory_that_takes_no_file_is_a_usage_error(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError):
            write_group(DETAIL, tmp_path / "missing")

    def test_the_clipboard_gets_the_text_and_tmux_is_asked_to_pass_it_on(self, monkeypatch: pytest.MonkeyPatch) -> None:
        text = rollout_as_text(DETAIL.rollouts[0])
        plain = f"\x1b]52;c;{base64.b64encode(text.encode()).decode()}\a"
        assert clipboard_sequence(text) == plain
        monkeypatch.setenv("TMUX", "/tmp/tmux-0/default,1,0")
        assert clipboard_sequence(text) == f"{plain}\x1bPtmux;\x1b{plain}\x1b\\"

    def test_a_tmux_that_does_not_answer_takes_nothing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("TMUX", "/nowhere/socket,1,0")
        assert not give_to_tmux("text")
        monkeypatch.setenv("PATH", "/nowhere")
        assert not give_to_tmux("text")

    def test_a_text_that_terminals_would_drop_is_refused(self) -> None:
        with pytest.raises(UsageError):
            clipboard_sequence("x" * MOST_CLIPBOARD_BYTES)

    def test_a_crash_is_told_in_one_line_and_kept_without_the_values_of_variables(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
        try:
            secret = "a whole rollout"
            raise KeyError(len(secret))
        except KeyError as error:
            line = write_crash_file(error)
        (path,) = tmp_path.iterdir()
        assert line == f"the screen crashed: KeyError: 15; the run goes on, the traceback is in {path}"
        assert "test_user_files.py" in path.read_text()
