"""Errors of all vendors, told in all formats."""

from __future__ import annotations

import json
from typing import Any

import pytest

from headgate.dialect.llm import faults, pairs
from headgate.dialect.llm.contract import Format
from headgate_engine.llm.translate.fault_kinds import ERROR_TYPES, kind_of_status

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
    (422, {"detail": [{"loc": ["body", "messages", 0], "msg": "Field required", "type": "missing"}, {"msg": "n"}]},
     ("invalid_request_error", "body.messages.0: Field required; n", None)),
    (422, {"object": "error", "message": {"detail": [{"loc": ["body"], "msg": "m"}]}, "type": "invalid_request_error"},
     ("invalid_request_error", "body: m", None)),
    (403, {"errors": [{"code": 7009, "message": "m"}], "success": False}, ("permission_error", "m", None)),
    (400, {"error": ["m", "n", 3]}, ("invalid_request_error", "m; n", None)),
    (503, "down", ("api_error", "the provider answered 503", None)),
    (418, {"error": {"message": 3, "type": {}}}, ("invalid_request_error", "the provider answered 418", None)),
]  # fmt: skip


@pytest.mark.parametrize(("status", "body", "expected"), CASES)
def test_an_error_is_read_whatever_its_format(status: int, body: Any, expected: tuple[str, str, str | None]) -> None:
    fault = faults.read(status, json.dumps(body).encode())
    assert (fault.kind, fault.message, fault.code) == expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"error": {"message": "m", "code": 429}}, (429, "rate_limit_error", None)),
        ({"error": {"message": "m", "type": "overloaded_error"}, "type": "error"}, (529, "overloaded_error", None)),
        ([{"error": {"message": "m", "code": 404, "status": "NOT_FOUND"}}], (404, "not_found_error", "NOT_FOUND")),
        ({"error": {"message": "m", "type": "server_error"}}, (502, "server_error", None)),
        ({"error": {"message": "m"}, "choices": []}, (502, "api_error", None)),
        ({"error": "m"}, (502, "api_error", None)),
        ({"message": "m", "code": "x"}, (502, "api_error", None)),
    ],
)  # fmt: skip
def test_an_error_inside_of_a_200_has_the_status_that_it_means(body: Any, expected: tuple[int, str, str | None]) -> None:
    found = faults.inside(body)
    assert found is not None
    assert (found[0], found[1].kind, found[1].code) == expected
    assert found[1].message == "m"


@pytest.mark.parametrize("body", [{}, [], None, 3, "error", {"error": None, "output": []}, {"message": {}, "id": "x"},
                                  {"id": "x", "message": "m", "choices": []}])  # fmt: skip
def test_what_is_no_error_inside_of_a_200(body: Any) -> None:
    assert faults.inside(body) is None


LONG = [
    ("messages", 400, {"type": "error", "error": {"type": "invalid_request_error",
                                                  "message": "prompt is too long: 210000 tokens > 200000 maximum"}}),
    ("converse", 400, {"message": "Input is too long for requested model."}),
    ("gemini", 400, {"error": {"code": 400, "status": "INVALID_ARGUMENT",
                               "message": "The input token count (9) exceeds the maximum number of tokens allowed (1)."}}),
    ("completions", 400, {"error": {"message": "This model's maximum context length is 8 tokens.", "param": "messages",
                                    "type": "invalid_request_error", "code": "context_length_exceeded"}}),
    ("vllm", 400, {"object": "error", "message": "This model's maximum context length is 4096 tokens.", "code": 400}),
    ("deepseek", 400, {"error": {"message": "This model's maximum context length is 8 tokens.",
                                 "type": "invalid_request_error", "code": "invalid_request_error"}}),
    ("xai", 400, {"code": "Client specified an invalid argument",
                  "error": "This model's maximum prompt length is 8 but the request contains 9 tokens."}),
]  # fmt: skip


@pytest.mark.parametrize(("vendor", "status", "body"), LONG, ids=[case[0] for case in LONG])
def test_clients_learn_in_their_words_that_a_prompt_is_too_long(vendor: str, status: int, body: Any) -> None:
    fault = faults.read(status, json.dumps(body).encode())
    assert json.loads(faults.write("completions", status, fault))["error"]["code"] == "context_length_exceeded"
    told = json.loads(faults.write("messages", status, fault))["error"]
    assert told["type"] == "invalid_request_error"
    assert told["message"].startswith("prompt is too long")


MEANINGS = [
    (401, {"error": {"message": "m", "type": "invalid_request_error", "code": "invalid_api_key"}},
     "authentication_error", "invalid_api_key"),
    (401, {"type": "error", "error": {"type": "authentication_error", "message": "m"}}, "authentication_error",
     "invalid_api_key"),
    (400, {"error": {"code": 400, "message": "m", "status": "INVALID_ARGUMENT",
                     "details": [{"reason": "API_KEY_INVALID"}]}}, "authentication_error", "invalid_api_key"),
    (403, {"error": {"code": 403, "message": "m", "status": "PERMISSION_DENIED"}}, "permission_error",
     "PERMISSION_DENIED"),
    (404, {"error": {"message": "m", "type": "invalid_request_error", "code": None}}, "not_found_error",
     "model_not_found"),
    (404, {"message": "m"}, "not_found_error", "model_not_found"),
    (429, {"message": "m"}, "rate_limit_error", "rate_limit_exceeded"),
    (424, {"message": "m"}, "api_error", None),
    (529, {"type": "error", "error": {"type": "overloaded_error", "message": "m"}}, "overloaded_error", None),
]  # fmt: skip


@pytest.mark.parametrize(("status", "body", "kind", "code"), MEANINGS)
def test_errors_map_by_what_they_mean(status: int, body: Any, kind: str, code: str | None) -> None:
    fault = faults.read(status, json.dumps(body).encode())
    assert json.loads(faults.write("messages", status, fault))["error"] == {"type": kind, "message": "m"}
    assert json.loads(faults.write("completions", status, fault))["error"]["code"] == code


@pytest.mark.parametrize(
    ("status", "kind", "word"),
    [(408, "timeout_error", "DEADLINE_EXCEEDED"), (424, "api_error", "INTERNAL"), (529, "overloaded_error", "UNAVAILABLE"),
     (402, "billing_error", "FAILED_PRECONDITION"), (418, "invalid_request_error", "INVALID_ARGUMENT"),
     (500, "api_error", "INTERNAL"), (502, "api_error", "INTERNAL")],
)  # fmt: skip
def test_google_has_a_word_for_what_its_statuses_do_not_say(status: int, kind: str, word: str) -> None:
    told = json.loads(faults.write("gemini", status, faults.LlmFault(kind, "m")))
    assert told == {"error": {"code": status, "message": "m", "status": word}}


@pytest.mark.parametrize(
    ("details", "seconds"),
    [
        ([{"@type": "x"}, {"@type": faults.RETRY_INFO, "retryDelay": "7s"}], 7),
        ([{"@type": faults.RETRY_INFO, "retryDelay": "37.41s"}], 38),
        ([{"@type": faults.RETRY_INFO, "retryDelay": "soon"}], 0),
        ([{"@type": faults.RETRY_INFO, "retryDelay": 7}], 0),
        ({"@type": faults.RETRY_INFO}, 0),
        (None, 0),
    ],
)
def test_google_says_when_to_come_back(details: Any, seconds: int) -> None:
    error = {"error": {"code": 429, "message": "m", "status": "RESOURCE_EXHAUSTED", "details": details}}
    assert faults.retry_in(json.dumps(error).encode()) == faults.retry_in(json.dumps([error]).encode()) == seconds


@pytest.mark.parametrize("body", [b"", b"no", b"[]", b'{"error": "m"}', b'{"error": {"details": [3]}}'])
def test_others_do_not(body: bytes) -> None:
    assert faults.retry_in(body) == 0


@pytest.mark.parametrize("code", [None, "validationException"])
def test_a_stream_that_begins_with_a_prompt_that_is_too_long(code: str | None) -> None:
    for format, told in (("completions", '"code":"context_length_exceeded"'), ("messages", '"message":"prompt is too long: ')):
        said = pairs.told_error(format, 400, "invalid_request_error", code, "Input is too long for requested model.")
        assert told in said.decode()


@pytest.mark.parametrize("body", [b"", b"<html>oh</html>", b"\xff\xfe", b"[" * 100_000, b"x" * 100_000])
def test_an_error_that_is_no_json_is_told_in_part(body: bytes) -> None:
    fault = faults.read(502, body)
    assert fault.message
    assert len(fault.message) <= faults.MAX_TEXT
    assert fault.kind == "api_error"


@pytest.mark.parametrize("format", list(Format))
@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 418, 429, 499, 500, 502, 503, 504, 529])
def test_every_format_can_tell_every_status(format: str, status: int) -> None:
    body = json.loads(faults.write(format, status, faults.LlmFault(kind_of_status(status), "m")))
    assert "m" in json.dumps(body)
    if format == "messages":
        assert body["error"]["type"] in ERROR_TYPES
    if format == "gemini":
        assert body["error"]["code"] == status
