"""Dead letters: the record's own bytes, the reason, and a size that fits whatever comes."""

from __future__ import annotations

import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worker import rejected
from worker.events import REASONS, Rejection
from worker.rejected import message, size

MEBIBYTE = 1 << 20
BIG = b"k" * MEBIBYTE


def letter(
    key: bytes | None = b"k",
    value: bytes | None = b"v",
    limit: int = MEBIBYTE,
    indexes: str = "",
    sentence: str = "the value is not JSON",
) -> tuple[bytes | None, bytes | None, dict[str, bytes], int]:
    rejection = Rejection(key, value, 42, "not_json", sentence, indexes)
    made = message(rejection, "scored", 3, limit)
    assert len(dict(made.headers)) == len(made.headers)
    return made.key, made.value, dict(made.headers), size(made)


def test_dead_letter_keeps_the_bytes_and_says_where_and_why() -> None:
    key, value, headers, _ = letter(b"\xff\x00", b"{bad", indexes="1,3-5")
    assert (key, value) == (b"\xff\x00", b"{bad")
    assert headers == {
        "rocstream-reason": b"not_json: the value is not JSON",
        "rocstream-topic": b"scored",
        "rocstream-partition": b"3",
        "rocstream-offset": b"42",
        "rocstream-indexes": b"1,3-5",
    }


def test_null_stays_null_and_empty_stays_empty() -> None:
    assert letter(None, b"")[:2] == (None, b"")
    assert letter(b"", None)[:2] == (b"", None)
    key, value, headers, _ = letter(None, BIG)
    assert key is None
    assert value is not None
    assert json.loads(headers["rocstream-truncated"])["key"] is None
    key, value, _, _ = letter(BIG, None)
    assert value is None


def test_what_is_too_large_is_cut_with_full_lengths_and_digests() -> None:
    original = bytes(range(256)) * 8192
    key, value, headers, bytes_ = letter(b"key", original)
    assert key == b"key"
    assert value is not None
    assert original.startswith(value)
    assert bytes_ == MEBIBYTE
    assert json.loads(headers["rocstream-truncated"]) == {
        "key": {"bytes": 3, "sha256": hashlib.sha256(b"key").hexdigest()},
        "value": {"bytes": len(original), "sha256": hashlib.sha256(original).hexdigest()},
    }


def test_a_large_key_and_a_large_value_share_the_room() -> None:
    key, value, _, bytes_ = letter(BIG, BIG)
    assert key is not None
    assert value is not None
    assert abs(len(key) - len(value)) <= 1
    assert bytes_ == MEBIBYTE
    key, value, _, bytes_ = letter(BIG, b"small")
    assert value == b"small"
    assert bytes_ == MEBIBYTE


def test_largest_value_of_the_topic_fits_its_dead_letter() -> None:
    limit = 1_048_588
    for length in range(limit - 1200, limit, 7):
        _, value, headers, bytes_ = letter(b"k", b"v" * length, limit)
        assert bytes_ <= limit
        assert value is not None
        assert (len(value) < length) == ("rocstream-truncated" in headers)


def test_reason_stays_under_1_kb() -> None:
    headers = letter(sentence="é" * 450)[2]
    assert len(headers["rocstream-reason"]) < 1024
    assert headers["rocstream-reason"].decode().startswith("not_json: é")
    longest = max(map(len, REASONS))
    assert longest + len(": ") + 900 <= rejected.REASON_BYTES


@given(
    st.none() | st.integers(0, 6000).map(lambda n: b"k" * n),
    st.none() | st.integers(0, 6000).map(lambda n: b"v" * n),
    st.integers(2048, 12_000),
    st.integers(0, 2000).map(lambda n: ",".join(map(str, range(0, 2 * n, 2)))[:4096]),
)
def test_no_dead_letter_exceeds_its_limit(
    key: bytes | None, value: bytes | None, limit: int, indexes: str
) -> None:
    got_key, got_value, headers, bytes_ = letter(key, value, limit, indexes)
    assert bytes_ <= limit
    assert (got_key is None, got_value is None) == (key is None, value is None)
    cut = (got_key, got_value) != (key, value)
    assert not cut or "rocstream-truncated" in headers
    assert indexes.startswith(headers["rocstream-indexes"].decode().removesuffix("..."))


@pytest.mark.parametrize("limit", [0, 100, 200])
def test_an_absurd_limit_never_raises(limit: int) -> None:
    key, value, headers, _ = letter(b"key", b"value", limit, "1,2,3")
    assert (key, value) == (b"", b"")
    assert "rocstream-truncated" in headers
