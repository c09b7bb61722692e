"""Where messages are posted to: only ever to the origin of the stream."""

from __future__ import annotations

import pytest

from headgate.backend.mcp.targets.sse import endpoint_path

BASE = "http://h.test:80/a/sse?x=1"


@pytest.mark.parametrize(
    ("announced", "path"),
    [
        ("/messages?session_id=1", "/messages?session_id=1"),
        ("?s=1", "/a/sse?s=1"),
        ("messages/1", "/a/messages/1"),
        ("../m", "/m"),
        ("http://h.test/m?s=2#f", "/m?s=2"),
        ("http://H.test:80/m", "/m"),
        ("//h.test/m", "/m"),
        ("http://h.test", "/"),
    ],
)
def test_endpoints_of_the_own_origin(announced: str, path: str) -> None:
    assert endpoint_path(BASE, announced) == path


@pytest.mark.parametrize(
    "announced",
    [
        "http://evil.test/m",
        "https://h.test/m",
        "http://h.test:81/m",
        "//evil.test/m",
        "http://h.test@evil.test/m",
        "http://user@h.test/m",
        "file:///etc/passwd",
        "/a\r\nhost: evil",
        "/a b",
        "\\\\evil.test\\m",
        "http://[::1",
        "http://h.test:x/m",
    ],
)
def test_endpoints_elsewhere_are_refused(announced: str) -> None:
    with pytest.raises(ValueError, match=r"(?i)origin|URL|port|invalid|IPv6"):
        endpoint_path(BASE, announced)
