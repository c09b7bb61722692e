"""Questions to rate limit services and their answers, beside the protobuf library."""

from __future__ import annotations

import random
from typing import Any

import pytest
from envoy.service.ratelimit.v3.rls_pb2 import RateLimitRequest, RateLimitResponse
from envoy_library import found_in_limit, limit_answer
from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.message import DecodeError

from headgate.expr.compile import compile_expression
from headgate_engine.context.request import make_context
from headgate_engine.envoy.limits import LimitQuestion, domain_field, read_limit_answer


def asked(entries: dict[str, str], limit: str | None = None, hits: int | None = None) -> dict[str, Any] | None:
    question = LimitQuestion([(key, compile_expression(text)) for key, text in entries.items()], None if limit is None else compile_expression(limit))
    found = question.encode(make_context("GET", "/p"), hits)
    if found is None:
        return None
    told: dict[str, Any] = MessageToDict(RateLimitRequest.FromString(domain_field("d") + found), preserving_proto_field_name=True)
    assert told.pop("domain") == "d"
    [descriptor] = told.pop("descriptors")
    assert not told
    return dict(descriptor)


@pytest.mark.parametrize(("text", "value"), [
    ("request.path", "/p"), ("1", "1"), ("-3", "-3"), ("7u", "7"), ("true", "true"), ("false", "false"), ("b'ab'", "YWI="), ("'\u00fc'", "\u00fc"),
    ("''", ""), ("'" + "v" * 300 + "'", "v" * 300),
])  # fmt: skip
def test_values(text: str, value: str) -> None:
    found = asked({"k": text, "l": "'x'"})
    assert found is not None
    assert [(one["key"], one.get("value", "")) for one in found["entries"]] == [("k", value), ("l", "x")]


@pytest.mark.parametrize("text", ["1.5", "null", "[1]", "jwt.sub", "request.headers['x-none']"])
def test_values_that_cannot_be_sent(text: str) -> None:
    assert asked({"k": "'v'", "l": text}) is None


@pytest.mark.parametrize("hits", [0, 1, 127, 128, 2**63 - 1])
def test_costs(hits: int) -> None:
    found = asked({"k": "'v'"}, hits=hits)
    assert found is not None
    assert found["hits_addend"] == str(hits)


def test_a_limit_of_its_own() -> None:
    found = asked({"k": "'v'"}, "{'unit': 'Hour', 'requestsPerUnit': 300u}")
    assert found is not None
    assert found["limit"] == {"requests_per_unit": 300, "unit": "HOUR"}
    for wrong in ("{'unit': 'week', 'requestsPerUnit': 5}", "{'unit': 'day', 'requestsPerUnit': -1}", "{'unit': 'day'}", "1",
                  "{'unit': 'day', 'requestsPerUnit': 4294967296}", "{'unit': 'day', 'requestsPerUnit': true}"):  # fmt: skip
        assert asked({"k": "'v'"}, wrong) is None


ANSWERS: list[dict[str, Any]] = [
    {},
    {"overall_code": "OK"},
    {"overall_code": "OVER_LIMIT", "raw_body": "YWJj"},
    {"statuses": [
        {"code": "OK", "current_limit": {"requests_per_unit": 10, "unit": "MINUTE", "name": "n"}, "limit_remaining": 9, "duration_until_reset": "30s"},
        {"code": "OK", "current_limit": {"requests_per_unit": 5, "unit": "HOUR"}, "limit_remaining": 2, "duration_until_reset": "100.5s"},
        {"code": "OK", "limit_remaining": 1},
    ]},
    {"statuses": [{"current_limit": {}}]},
    {"response_headers_to_add": [{"key": "X-A", "value": "1"}], "request_headers_to_add": [{"key": "x-b", "raw_value": "Mg=="}]},
]  # fmt: skip


@pytest.mark.parametrize("told", ANSWERS, ids=str)
def test_answers(told: dict[str, Any]) -> None:
    message = ParseDict(told, RateLimitResponse())
    assert found_in_limit(message.SerializeToString()) == limit_answer(message)


def test_headers() -> None:
    found = read_limit_answer(ParseDict(ANSWERS[-1], RateLimitResponse()).SerializeToString())
    assert found.told == [(b"x-a", b"1")]
    ctx = make_context(headers=[("x-b", "0")])
    found.edit_request(ctx.request)
    assert ctx.request.items() == [("x-b", "2")]


def test_spoiled_answers() -> None:
    chance = random.Random(5)
    refused = 0
    for _ in range(20_000):
        message = bytearray(b"".join(ParseDict(one, RateLimitResponse()).SerializeToString() for one in chance.choices(ANSWERS, k=2)))
        for _ in range(chance.randrange(4)):
            if message:
                message[chance.randrange(len(message))] = chance.randrange(256)
        try:
            answer = RateLimitResponse.FromString(bytes(message))
        except DecodeError:
            # What is not read is not looked at: the quota, metadata.
            try:
                read_limit_answer(bytes(message))
            except ValueError:
                refused += 1
            continue
        assert found_in_limit(bytes(message)) == limit_answer(answer), bytes(message)
    assert refused > 1000
