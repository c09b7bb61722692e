"""Sealed texts."""

from __future__ import annotations

import string

from hypothesis import given
from hypothesis import strategies as st

from headgate.crypto.sealed import Sealer

KEY = bytes(range(32))
SAFE = set(string.ascii_letters + string.digits + "-_")


@given(st.binary(max_size=4000))
def test_what_was_sealed_opens(content: bytes) -> None:
    sealer = Sealer(KEY, "a")
    text = sealer.seal(content)
    assert set(text) <= SAFE
    assert sealer.open(text) == content
    assert sealer.open(text.encode()) == content
    assert sealer.seal(content) != text


@given(st.binary(max_size=100), st.integers(0), st.integers(0, 63))
def test_a_changed_text_does_not_open(content: bytes, place: int, other: int) -> None:
    sealer = Sealer(KEY, "a")
    text = sealer.seal(content)
    at = place % (len(text) - 1)                 # the last character may hold bits that mean nothing
    char = sorted(SAFE)[other]
    changed = text[:at] + char + text[at + 1 :]
    assert (sealer.open(changed) == content) is (changed == text)
    assert sealer.open(text[:at]) is None


@given(st.one_of(st.text(max_size=300), st.binary(max_size=300)))
def test_no_other_text_opens(text: str | bytes) -> None:
    assert Sealer(KEY, "a").open(text) is None


def test_a_text_is_for_one_purpose_and_one_key() -> None:
    text = Sealer(KEY, "a").seal(b"x")
    assert Sealer(KEY, "b").open(text) is None
    assert Sealer(bytes(32), "a").open(text) is None


def test_one_content_has_one_spelling() -> None:
    """Other spellings of the same bytes (padding, the other alphabet, idle bits) do not open."""
    sealer = Sealer(KEY, "a")
    text = next(one for one in iter(lambda: sealer.seal(b"12345"), "") if "-" in one or "_" in one)
    assert sealer.open(text) == b"12345"
    last = sorted(SAFE)
    others = {text + "=", text + "==", text.replace("-", "+").replace("_", "/"), *(text[:-1] + char for char in last)} - {text}
    assert {sealer.open(one) for one in others} == {None}
