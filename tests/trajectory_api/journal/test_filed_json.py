"""Each form that a text is kept in comes out of a journal's record as the same text."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atropos_tui.trajectory_api.journal.filed_json import FiledJson, packed, unpacked
from atropos_tui.trajectory_api.journal.log_file import LogFile
from atropos_tui.trajectory_api.reusing import GzippedJson
from atropos_tui.trajectory_api.stored_json import KeptJson, StoredJson


def forms(text: bytes, rest: bytes) -> list[KeptJson]:
    body = gzip.compress(text + b"}")
    plain = StoredJson.plain(memoryview(text), rest)
    return [plain, plain.deflate(), GzippedJson(body, len(text) + 1, len(text), rest)]


@given(text=st.binary(max_size=300), rest=st.text(max_size=20))
def test_what_is_packed_is_unpacked_again(text: bytes, rest: str) -> None:
    for stored in forms(text, rest.encode()):
        form, parts = packed(stored)
        again = unpacked(form, b"".join(parts))
        assert again.text() == again.deflate().text() == text + rest.encode()
        assert again.size == stored.size
        assert again.deflated == stored.deflated


@pytest.mark.parametrize("index", range(3))
def test_a_text_in_a_file_is_read_when_it_is_asked_for(tmp_path: Path, index: int) -> None:
    stored = forms(b'{"a":1', b',"b":null}')[index]
    form, parts = packed(stored)
    log = LogFile(tmp_path / "a.journal")
    start = log.append([b"before", *parts, b"after"]) + len(b"before")
    filed = FiledJson(log.file, start, start + sum(map(len, parts)), form, stored.size)
    assert filed.stored_bytes == 0
    assert filed.text() == filed.deflate().text() == b'{"a":1,"b":null}'
    assert b"".join(packed(filed)[1]) == filed.text()
    log.close()
