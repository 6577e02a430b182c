"""Texts of groups in a journal's file: the bytes they are written as, and texts that are kept there alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from atropos_tui.trajectory_api.journal.held_file import HeldFile
from atropos_tui.trajectory_api.journal.records import Buffer, Record, read_exactly
from atropos_tui.trajectory_api.reusing import GzippedJson
from atropos_tui.trajectory_api.stored_json import KeptJson, StoredJson, gzip_of


def packed(stored: KeptJson) -> tuple[dict[str, Any], Sequence[Buffer]]:
    """What a record tells of a text's form, and its bytes: as it is, deflated, or in the gzip body that it came in."""
    if isinstance(stored, GzippedJson):
        return {"within": (stored.text_size, stored.opened_size, stored.rest.decode())}, [stored.body]
    if isinstance(stored, StoredJson):
        return ({"gzip": True}, gzip_of([stored])) if stored.deflated else ({}, stored.parts)
    return {}, [stored.text()]


def unpacked(form: dict[str, Any], data: bytes) -> KeptJson:
    """What `packed` has made bytes of."""
    if "within" in form:
        text_size, opened_size, rest = form["within"]
        return GzippedJson(data, text_size, opened_size, rest.encode())
    return StoredJson.of_gzip(data) if form.get("gzip") else StoredJson.plain(data)


@dataclass(frozen=True, slots=True)
class FiledJson:
    """A text of `size` bytes that is in the file from byte `start` to `end`, in a form. Reading raises OSError."""

    file: HeldFile
    start: int
    end: int
    form: dict[str, Any]
    size: int
    deflated: ClassVar[bool] = False
    stored_bytes: ClassVar[int] = 0

    @classmethod
    def of_record(cls, record: Record, file: HeldFile) -> FiledJson:
        """The text of a group's record. Raises OSError."""
        form = {name: told for name, told in record.about.items() if name in ("within", "gzip")}
        size = record.end - record.text_start
        if "within" in form:
            _, opened_size, rest = form["within"]
            size = opened_size + len(rest.encode())
        elif "gzip" in form:
            size = int.from_bytes(read_exactly(file.descriptor, record.end - 4, 4), "little")
        return cls(file, record.text_start, record.end, form, size)

    def text(self) -> bytes:
        return self._read().text()

    def deflate(self) -> StoredJson:
        return self._read().deflate()

    def _read(self) -> KeptJson:
        return unpacked(self.form, read_exactly(self.file.descriptor, self.start, self.end - self.start))
