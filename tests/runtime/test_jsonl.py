"""The file of groups: every line whole and there at once, no older file touched."""

from __future__ import annotations

import json
import resource
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from atropos_tui.errors import UsageError
from atropos_tui.runtime.jsonl import JsonlWriter
from tests.runtime.scored_groups import scored_group


def lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_group_is_in_the_file_as_soon_as_it_is_written(tmp_path: Path) -> None:
    writer = JsonlWriter(tmp_path / "new" / "folder" / "groups.jsonl")
    size = writer.write(scored_group(seed=1))
    assert lines(writer.path) == [scored_group(seed=1)]
    assert size == writer.path.stat().st_size
    writer.write(scored_group(seed=2))
    assert [line["seed"] for line in lines(writer.path)] == [1, 2]
    writer.close()


def test_what_json_cannot_say_is_no_reason_to_lose_the_group(tmp_path: Path) -> None:
    writer = JsonlWriter(tmp_path / "groups.jsonl")
    writer.write({"scores": [np.float32(0.5)], "images": [b"\x00"], "odd": object, "seed": {1}})
    (line,) = lines(writer.path)
    assert (line["scores"], line["images"], line["seed"]) == ([0.5], ["AA=="], [1])
    writer.close()


def test_an_older_file_is_never_touched(tmp_path: Path) -> None:
    wanted = tmp_path / "groups.v2.jsonl"
    wanted.write_text("mine")
    first, second = JsonlWriter(wanted), JsonlWriter(str(wanted))
    assert [first.path.name, second.path.name] == ["groups.v2_1.jsonl", "groups.v2_2.jsonl"]
    first.write({"a": 1})
    assert (wanted.read_text(), lines(first.path), second.path.read_text()) == ("mine", [{"a": 1}], "")
    first.close()
    second.close()


def test_many_threads_write_whole_lines(tmp_path: Path) -> None:
    writer = JsonlWriter(tmp_path / "groups.jsonl")

    def write(thread: int) -> None:
        for number in range(50):
            writer.write({"thread": thread, "number": number, "padding": "x" * 20_000})

    threads = [threading.Thread(target=write, args=(thread,)) for thread in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    writer.close()
    found = [(line["thread"], line["number"]) for line in lines(writer.path)]
    assert sorted(found) == [(thread, number) for thread in range(4) for number in range(50)]


def test_closing_twice_is_no_error(tmp_path: Path) -> None:
    writer = JsonlWriter(tmp_path / "groups.jsonl")
    assert not writer.closed
    writer.close()
    writer.close()
    assert writer.closed


def test_a_path_that_cannot_be_written_says_which_flag_to_set(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="data_path_to_save_groups"):
        JsonlWriter(tmp_path / "file" / "groups.jsonl")


def test_a_killed_process_leaves_every_line_that_it_had_written(tmp_path: Path) -> None:
    path = tmp_path / "groups.jsonl"
    writer = subprocess.Popen([sys.executable, "-c", _WRITE_FOR_EVER, str(path)], stdout=subprocess.PIPE)
    assert writer.stdout is not None
    for _ in range(20):
        writer.stdout.readline()
    writer.send_signal(signal.SIGKILL)
    told = 20 + len(writer.stdout.read().splitlines())
    writer.wait(60)
    writer.stdout.close()
    whole = path.read_bytes().split(b"\n")[:-1]
    assert [json.loads(line)["number"] for line in whole] == list(range(len(whole)))
    assert len(whole) >= told - 1


def test_a_full_disk_leaves_no_half_line(tmp_path: Path) -> None:
    """A limit on the size of files fails like a full disk: in the middle of a write."""
    result = subprocess.run(
        [sys.executable, "-c", _FILL_UP, str(tmp_path / "groups.jsonl")],
        capture_output=True, text=True, timeout=60, check=True, preexec_fn=_limit_file_size,
    )  # fmt: skip
    assert result.stdout.split() == ["OSError", "1", "2"]
    assert [line["number"] for line in lines(tmp_path / "groups.jsonl")] == [1, 2]


def _limit_file_size() -> None:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))


_WRITE_FOR_EVER = """
import itertools, sys
from atropos_tui.runtime.jsonl import JsonlWriter
writer = JsonlWriter(sys.argv[1])
for number in itertools.count():
    writer.write({"number": number, "padding": "x" * 5000})
    print(number, flush=True)
"""

_FILL_UP = """
import json, sys
from atropos_tui.runtime.jsonl import JsonlWriter
writer = JsonlWriter(sys.argv[1])
writer.write({"number": 1, "padding": "x" * 60_000})
try:
    writer.write({"number": 9, "padding": "x" * 60_000})
except OSError as error:
    print(type(error).__name__)
writer.write({"number": 2})
for line in open(sys.argv[1]):
    print(json.loads(line)["number"])
"""
