"""A group on the wire: the JSON that was meant, compressed once, whatever id the environment then has."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import gzip
import json
import math
import zlib
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from atropos_tui.runtime.encoding import encode_group
from atropos_tui.runtime.tolerant_json import to_json
from tests.runtime.scored_groups import Scalar, anything, scored_group, unhurried

LARGE = scored_group([0.0, 1.0], length=2000)


def received(wire: bytes, gzipped: bool) -> Any:
    return json.loads(gzip.decompress(wire) if gzipped else wire)


class TestEncodedGroups:
    @pytest.mark.parametrize("env_id", [0, 7, 2**40, None])
    @pytest.mark.parametrize("group", [scored_group(), LARGE])
    def test_the_id_of_the_environment_joins_the_body_when_it_is_sent(
        self, group: dict[str, Any], env_id: int | None
    ) -> None:
        encoded = encode_group(group)
        assert received(encoded.with_env_id(env_id), encoded.gzipped) == {**group, "env_id": env_id}
        assert json.loads(encoded.json) == group

    @unhurried
    @given(group=st.dictionaries(st.text('ab"\\é', min_size=1, max_size=3), anything, min_size=1, max_size=5))
    def test_any_body_arrives_as_it_was_encoded(self, group: dict[str, Any]) -> None:
        encoded = encode_group(group)
        assert received(encoded.wire, encoded.gzipped) == {**json.loads(to_json(group)), "env_id": None}

    def test_a_small_group_is_not_compressed_and_a_large_one_is(self) -> None:
        small, large = encode_group(scored_group()), encode_group(LARGE)
        assert not small.gzipped
        assert small.raw_bytes == small.wire_bytes + 1 == len(small.json)
        assert large.gzipped
        assert large.wire_bytes < large.raw_bytes == len(large.json)

    def test_a_group_that_compression_would_make_larger_stays_as_it_is(self) -> None:
        noise = "".join(chr(0x4E00 + byte * 7) for byte in np.random.default_rng(0).integers(0, 2900, 400))
        assert len(to_json({"images": noise})) >= 1024
        encoded = encode_group({"images": noise})
        assert received(encoded.wire, encoded.gzipped)["images"] == noise
        assert len(encoded.wire) <= encoded.raw_bytes + 40

    def test_the_stream_is_one_gzip_member_that_every_inflater_takes(self) -> None:
        wire = encode_group(LARGE).with_env_id(3)
        inflater = zlib.decompressobj(31)
        text = inflater.decompress(wire)
        assert (inflater.eof, inflater.unused_data) == (True, b"")
        assert json.loads(text)["env_id"] == 3

    def test_a_damaged_stream_is_noticed_by_its_checksum(self) -> None:
        wire = bytearray(encode_group(LARGE).with_env_id(3))
        wire[-8] ^= 1
        with pytest.raises(gzip.BadGzipFile, match="CRC"):
            gzip.decompress(bytes(wire))


class Color(enum.Enum):
    RED = "red"


class Model(BaseModel):
    x: int = 1


@dataclasses.dataclass
class Data:
    y: float = 0.5


class Unprintable:
    def __repr__(self) -> str:
        raise RuntimeError


class TestTolerantJson:
    @pytest.mark.parametrize(
        ("value", "said"),
        [
            (np.float32(0.5), 0.5),
            (np.int64(3), 3),
            (np.bool_(True), True),
            (np.arange(4).reshape(2, 2), [[0, 1], [2, 3]]),
            (np.arange(4)[::2], [0, 2]),
            (Scalar(1.5), 1.5),
            (Model(), {"x": 1}),
            (Data(), {"y": 0.5}),
            (Color.RED, "red"),
            (Path("a/b"), "a/b"),
            (Decimal("0.25"), 0.25),
            ({1}, [1]),
            (b"\x00\xff", "AP8="),
            (datetime.date(2026, 1, 2), "2026-01-02"),
            (math.nan, None),
            (-math.inf, None),
            ({1: "a", None: "b", (1, 2): "c"}, {"1": "a", "None": "b", "(1, 2)": "c"}),
            (2**70, str(2**70)),
            ("\ud800x", "\\ud800x"),
            (ValueError("why"), "ValueError('why')"),
            (Unprintable(), "<Unprintable>"),
            (Model, repr(Model)),
        ],
    )
    def test_what_json_has_no_word_for_is_said_in_other_words(self, value: Any, said: Any) -> None:
        assert json.loads(to_json({"value": value, "beside": 1})) == {"value": said, "beside": 1}

    def test_a_cycle_ends(self) -> None:
        cycle: dict[str, Any] = {"a": 1}
        cycle["itself"] = [cycle]
        said = json.loads(to_json({"value": cycle, "beside": 1}))
        assert (said["beside"], said["value"]["a"]) == (1, 1)
        assert isinstance(said["value"]["itself"][0], str)

    def test_nesting_without_end_ends_as_text(self) -> None:
        deep: list[Any] = []
        for _ in range(50_000):
            deep = [deep]
        said = json.loads(to_json({"value": deep, "beside": 1}))
        assert said["beside"] == 1

    def test_plain_values_are_written_as_they_are(self) -> None:
        assert to_json({"a": [1, 2.5, None, True, "é\x1b"]}) == '{"a":[1,2.5,null,true,"é\\u001b"]}'.encode()
