"""Errors of all vendors, told in all formats."""

from __future__ import annotations

import json
from typing import Any

import pytest

from headgate.dialect.llm import faults
from headgate.dialect.llm.contract import Format
from headgate_engine.llm.translate.blocks import ERROR_TYPES

CASES: list[tuple[int, Any, tuple[str, str, str | None]]] = [
    (429, {"error": {"message": "m", "type": "requests", "code": "rate_limit_exceeded"}},
     ("requests", "m", "rate_limit_exceeded")),
    (529, {"type": "error", "error": {"type": "overloaded_error", "message": "m"}}, ("overloaded_error", "m", None)),
    (400, {"error": {"code": 400, "message": "m", "status": "INVALID_ARGUMENT"}},
     ("invalid_request_error", "m", "INVALID_ARGUMENT")),
    (500, [{"error": {"code": 500, "message": "m", "status": "INTERNAL"}}], ("api_error", "m", "INTERNAL")),
    (400, {"message": "m"}, ("invalid_request_error", "m", None)),
    (403, {"Message": "m"}, ("permission_error", "m", None)),
    (401, {"error": "m"}, ("authentication_error", "m", None)),
    (422, {"detail": "m"}, ("invalid_request_error", "m", None)),
    (422, {"detail": [{"loc": []}]}, ("invalid_request_error", "the provider answered 422", None)),
    (503, "down", ("api_error", "the provider answered 503", None)),
    (418, {"error": {"message": 3, "type": {}}}, ("invalid_request_error", "the provider answered 418", None)),
]  # fmt: skip


@pytest.mark.parametrize(("status", "body", "expected"), CASES)
def test_an_error_is_read_whatever_its_format(status: int, body: Any, expected: tuple[str, str, str | None]) -> None:
    fault = faults.read(status, json.dumps(body).encode())
    assert (fault.kind, fault.message, fault.code) == expected


@pytest.mark.parametrize("body", [b"", b"<html>oh</html>", b"\xff\xfe", b"[" * 100_000, b"x" * 100_000])
def test_an_error_that_is_no_json_is_told_in_part(body: bytes) -> None:
    fault = faults.read(502, body)
    assert fault.message
    assert len(fault.message) <= faults.MAX_TEXT
    assert fault.kind == "api_error"


@pytest.mark.parametrize("format", list(Format))
@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 418, 429, 499, 500, 502, 503, 504, 529])
def test_every_format_can_tell_every_status(format: str, status: int) -> None:
    body = json.loads(faults.write(format, status, faults.LlmFault(faults.kind_of(status), "m")))
    assert "m" in json.dumps(body)
    if format == "messages":
        assert body["error"]["type"] in ERROR_TYPES
    if format == "gemini":
        assert body["error"]["code"] == status
