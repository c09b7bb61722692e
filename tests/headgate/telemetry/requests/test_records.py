"""Records of workers to rows."""

from __future__ import annotations

import json

import pytest

from headgate.telemetry.requests.records import COLUMNS, row

PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
LINE = {"level": "info", "time": "t", "scope": "request", "http.path": "/a"}


def test_a_record_becomes_a_row() -> None:
    raw = json.dumps([5_000_000, 1_500, 200, "openai", "m", None, 3, 0, -1, None, PARENT, "hi", None, LINE]).encode()
    found = row(raw)
    assert found is not None
    assert dict(zip(COLUMNS, found, strict=True)) == {
        "completed_us": 5_000_000, "started_us": 4_998_500, "status": 200, "provider": "openai", "request_model": "m",
        "response_model": None, "input_tokens": 3, "output_tokens": 0, "cost_picos": None, "error": None,
        "trace_id": PARENT[3:35], "span_id": PARENT[36:52], "attributes": '{"http.path":"/a"}',
        "prompt": "hi", "completion": None,
    }  # fmt: skip


def test_traces_of_our_own_win_and_what_is_no_trace_is_none() -> None:
    own = {**LINE, "trace.id": "abc", "span.id": "def"}
    found = row(json.dumps([1, 0, 200, None, None, None, -1, -1, -1, None, PARENT, None, None, own]).encode())
    assert found is not None
    assert found[10:12] == ("abc", "def")
    found = row(json.dumps([1, 0, 200, None, None, None, -1, -1, -1, None, "no", None, None, LINE]).encode())
    assert found is not None
    assert found[10:12] == (None, None)


def test_nul_is_replaced_in_every_text() -> None:
    found = row(json.dumps([1, 0, 200, None, "m\0", None, -1, -1, -1, "e\0", None, "p\0p", None, {"a\0": ["\0", {"b": "\0"}], "c": "\\u0000"}]).encode())
    assert found is not None
    assert not any("\0" in one for one in found if isinstance(one, str))
    assert (found[4], found[9], found[13]) == ("m\ufffd", "e\ufffd", "p\ufffdp")
    assert json.loads(found[12]) == {"a\ufffd": ["\ufffd", {"b": "\ufffd"}], "c": "\\u0000"}


@pytest.mark.parametrize("line", [b"", b"{}", b"[1]", b"[1,", b"\xff", json.dumps([0] * 14).encode()])
def test_what_is_no_record_is_none(line: bytes) -> None:
    assert row(line) is None
