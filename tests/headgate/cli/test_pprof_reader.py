"""Profiles are read as they were written."""

from __future__ import annotations

import gzip
import random

import pytest

from headgate.cli.pprof_reader import read_profile
from headgate.dialect.pprof import CPU, HEAP, Profile, StackFrame


def made() -> Profile:
    found = Profile(HEAP, ("space", "bytes"), 512)
    leaf, caller = StackFrame("leaf é", "a.py", 7), StackFrame("caller", "b.py", 300)
    found.add([leaf, caller], (1, 100, 1, 100), (("process", "worker 0"),))
    found.add([caller], (2, 1 << 40, 0, 0))
    return found


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_what_was_written_is_read(pack: object) -> None:
    read = read_profile(pack(made().encode()))  # type: ignore[operator]
    assert read.types == HEAP
    assert [(one.stack, one.values, one.process) for one in read.samples] == [
        (("caller", "leaf é"), (1, 100, 1, 100), "worker 0"),
        (("caller",), (2, 1 << 40, 0, 0), ""),
    ]
    assert read.index("inuse_space") == 3
    assert read.index("nothing") == 3
    assert read_profile(Profile(CPU, ("cpu", "nanoseconds"), 1).encode()).samples == ()


@pytest.mark.parametrize("content", [b"\x1f\x8bno gzip", b"\xff" * 20, b"\x0a\xff\xff\xff\xff\x0f", b"<html>", b"\x0b"])
def test_other_bytes_are_refused(content: bytes) -> None:
    with pytest.raises(ValueError, match="not a profile"):
        read_profile(content)


def test_spoiled_profiles_raise_nothing_else() -> None:
    draw = random.Random(7)
    whole = made().encode()
    for _ in range(2000):
        spoiled = bytearray(whole)
        spoiled[draw.randrange(len(spoiled))] = draw.randrange(256)
        try:
            read_profile(bytes(spoiled[: draw.randrange(len(spoiled) + 1)]))
        except ValueError as error:
            assert "not a profile" in str(error)  # noqa: PT017 - most of them are read
