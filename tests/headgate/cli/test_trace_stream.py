"""Server-sent events and JSON Lines as a trace."""

from __future__ import annotations

import pytest

from headgate.cli.trace_stream import events


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b': ready\n\ndata: {"a":1}\n\n: keepalive\n\ndata:{"b":2}\r\n\r\n', ['{"a":1}', '{"b":2}']),
        (b'data: {"a":\ndata: 1}\n\n', ['{"a":\n1}']),
        (b'{"a":1}\n\n{"b":2}', ['{"a":1}', '{"b":2}']),
        (b'data: {"cut":1}', ['{"cut":1}']),
        (b"\n\nevent: x\nid: 1\n\n", []),
    ],
)
def test_both_forms_are_read(content: bytes, found: list[str]) -> None:
    comments: list[str] = []
    assert list(events(content.splitlines(keepends=True), comments.append)) == found
    assert comments == (["ready", "keepalive"] if b"ready" in content else [])
