"""Authorities as every protocol takes them."""

from __future__ import annotations

import pytest

from headgate_engine.context.authority import valid_authority


@pytest.mark.parametrize(("text", "port"), [
    (b"a", False), (b"a.test", False), (b"a.test:80", True), (b"a.test:0", False), (b"a.test:", False), (b"[::1]", False),
    (b"[::1]:65535", True), (b"[fe80::1%eth0]:1", True), (b"1.2.3.4:00080", True), (b"A_b~c", False),
])  # fmt: skip
def test_valid(text: bytes, port: bool) -> None:
    assert valid_authority(text) == (True, port)
    assert valid_authority(text) == (True, port)      # from the cache


@pytest.mark.parametrize("text", [
    b"", b":80", b"a b", b"a/b", b"u@a", b"a:65536", b"a:123456", b"a:x", b"a:-1", b"[::1", b"::1]", b"[1]", b"[::g]", b"[::1]x", b"a\0",
    b"a\x7f", b"\xc3\xa4", b"a?b", b"a#b", b"a:80:80",
])  # fmt: skip
def test_invalid(text: bytes) -> None:
    assert valid_authority(text) == (False, False)
