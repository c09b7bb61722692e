"""Messages to and from external processors are those of the protobuf library."""

from __future__ import annotations

import random
from typing import Any

import pytest
from envoy.config.core.v3.base_pb2 import HeaderMap
from envoy.service.ext_proc.v3.external_processor_pb2 import ProcessingRequest, ProcessingResponse
from envoy_library import PARTS, found_in_answer, processor_answer
from google.protobuf.json_format import ParseDict
from google.protobuf.message import DecodeError

from headgate_drivers.http2 import response_of
from headgate_engine.context.headers import MessageHead
from headgate_engine.context.request import make_context
from headgate_engine.envoy.processing import (
    body_part,
    read_answer,
    request_head,
    response_head,
    trailer_part,
)

SIZES = [0, 1, 100, 118, 119, 120, 121, 122, 123, 124, 125, 127, 128, 129, 16_383, 16_384, 60_000]


def read(framed: bytes) -> Any:
    assert framed[0] == 0
    assert int.from_bytes(framed[1:5], "big") == len(framed) - 5
    return ProcessingRequest.FromString(framed[5:])


def mapped(*fields: tuple[str, str]) -> Any:
    wanted = HeaderMap()
    for name, value in fields:
        wanted.headers.add(key=name.lower(), raw_value=value.encode("utf-8", "surrogateescape"))
    return wanted


@pytest.mark.parametrize("size", SIZES)
def test_heads(size: int) -> None:
    fields = [("X-Name", "v" * size), ("x" * max(size % 300, 1), "\u00fc\udcff")]
    head = make_context("GET", "/p?q", "a.test", fields).request
    pseudo = [(":method", "GET"), (":path", "/p?q"), (":authority", "a.test"), (":scheme", "https")]
    found = read(request_head(head, True, True, ProcessingRequest(observability_mode=True).SerializeToString()))
    assert found.request_headers.headers == mapped(*pseudo, *fields)
    assert found.request_headers.end_of_stream
    assert found.observability_mode
    assert not read(request_head(head, False, False)).request_headers.end_of_stream
    found = read(trailer_part(head, True))
    assert found.response_trailers.trailers == mapped(*fields)
    assert read(trailer_part(head, False)).request_trailers.trailers == mapped(*fields)


def test_a_response() -> None:
    head = response_of([(b":status", b"404"), (b"x-a", b"1")])
    found = read(response_head(head, True))
    assert found.response_headers.headers == mapped((":status", "404"), ("x-a", "1"))
    assert found.response_headers.end_of_stream


@pytest.mark.parametrize("size", [*SIZES, 300_000])
@pytest.mark.parametrize("last", [True, False])
def test_bodies(size: int, last: bool) -> None:
    found = read(body_part(b"b" * size, True, last))
    assert (found.response_body.body, found.response_body.end_of_stream) == (b"b" * size, last)
    found = read(body_part(b"b" * size, False, last))
    assert (found.request_body.body, found.request_body.end_of_stream) == (b"b" * size, last)


# -- answers -------------------------------------------------------------------------------------------------------------
OPTIONS = [
    {"header": {"key": "X-One", "value": "1"}},
    {"header": {"key": "x-two", "raw_value": "w7w="}, "append_action": "ADD_IF_ABSENT"},
    {"header": {"key": "x-three", "value": " 3 "}, "append": True},
    {"header": {"key": "content-length", "value": "7"}},
    {"header": {"key": "host", "value": "evil"}},
    {"header": {"key": ":status", "value": "201"}},
    {"header": {"key": "x bad", "value": "1"}},
    {"header": {"key": "x-bad", "value": "a\nb"}},
]
MUTATION = {"set_headers": OPTIONS, "remove_headers": ["X-Gone", "content-length", "host"]}
ANSWERS: list[dict[str, Any]] = [
    {},
    *({part: {}} for part in PARTS),
    {"request_headers": {"response": {"header_mutation": MUTATION, "status": "CONTINUE_AND_REPLACE"}}},
    {"request_headers": {"response": {"body_mutation": {"body": "YWJj"}}}, "mode_override": {"request_body_mode": "BUFFERED"}},
    {"response_body": {"response": {"body_mutation": {"clear_body": True}}}},
    {"response_body": {"response": {"body_mutation": {"streamed_response": {"body": "YWJj", "end_of_stream": True}}}}},
    {"request_trailers": {"header_mutation": MUTATION}, "dynamic_metadata": {"a": 1}},
    {"immediate_response": {"status": {"code": "Forbidden"}, "body": "bm8="}},
]
@pytest.mark.parametrize("answer", ANSWERS, ids=str)
def test_answers(answer: dict[str, Any]) -> None:
    message = ParseDict(answer, ProcessingResponse())
    assert found_in_answer(read_answer(message.SerializeToString())) == processor_answer(message)


def test_edits() -> None:
    message = ParseDict({"request_headers": {"response": {"header_mutation": MUTATION}}}, ProcessingResponse())
    answer = read_answer(message.SerializeToString())
    fields = [("x-one", "0"), ("X-Two", "0"), ("x-three", "0"), ("x-gone", "0")]
    head = make_context("GET", "/", "a.test", fields).request
    answer.edit_request(head)
    assert head.items() == [("X-Two", "0"), ("x-three", "0"), ("x-one", "1"), ("x-three", "3")]
    assert head.authority == "a.test"
    head = response_of([(b":status", b"200")])
    answer.edit_response(head)
    assert (head.status, head.items()) == (201, [("x-one", "1"), ("x-two", "\u00fc"), ("x-three", "3")])
    head = MessageHead()
    answer.edit_trailers(head)
    assert head.items() == [("x-one", "1"), ("x-two", "\u00fc"), ("x-three", "3")]
    assert answer.edits_head
    assert not read_answer(b"").edits_head


@pytest.mark.parametrize(("name", "value", "start"), [
    (":method", "PUT", ("PUT", "/", "a.test")),
    (":method", "CONNECT", ("GET", "/", "a.test")),
    (":method", "a b", ("GET", "/", "a.test")),
    (":path", "/b?c", ("GET", "/b?c", "a.test")),
    (":path", "b", ("GET", "/", "a.test")),
    (":path", "/b#c", ("GET", "/", "a.test")),
    (":authority", "b.test", ("GET", "/", "b.test")),
    (":authority", "b.test/", ("GET", "/", "a.test")),
    (":scheme", "https", ("GET", "/", "a.test")),
    ("host", "b.test", ("GET", "/", "a.test")),
])  # fmt: skip
def test_the_start_line(name: str, value: str, start: tuple[str, str, str]) -> None:
    told = {"request_headers": {"response": {"header_mutation": {"set_headers": [{"header": {"key": name, "value": value}}]}}}}
    head = make_context("GET", "/", "a.test").request
    read_answer(ParseDict(told, ProcessingResponse()).SerializeToString()).edit_request(head)
    assert (head.method, head.target, head.authority) == start


@pytest.mark.parametrize("value", ["199", "600", "abc", "", "0201", "-20", "2 1"])
def test_a_status_that_is_none(value: str) -> None:
    told = {"response_headers": {"response": {"header_mutation": {"set_headers": [{"header": {"key": ":status", "value": value}}]}}}}
    head = response_of([(b":status", b"200")])
    read_answer(ParseDict(told, ProcessingResponse()).SerializeToString()).edit_response(head)
    assert head.status == 200


def test_spoiled_answers() -> None:
    """What the library refuses is refused; what it takes is read as it reads it."""
    chance = random.Random(3)
    encoded = [ParseDict(one, ProcessingResponse()).SerializeToString() for one in ANSWERS]
    refused = 0
    for _ in range(20_000):
        message = bytearray(b"".join(chance.sample(encoded, chance.randrange(1, 4))))
        for _ in range(chance.randrange(4)):
            if message:
                message[chance.randrange(len(message))] = chance.randrange(256)
        try:
            expected = ProcessingResponse.FromString(bytes(message))
        except DecodeError:
            # Metadata, modes and answers of its own are read by the library, in the session.
            try:
                assert read_answer(bytes(message)).more, bytes(message)
            except ValueError:
                refused += 1
            continue
        try:
            found = read_answer(bytes(message))
        except ValueError as error:
            raise AssertionError(bytes(message)) from error
        wanted = processor_answer(expected)
        assert found_in_answer(found)[:-1] == wanted[:-1], bytes(message)
        assert found.more or not wanted[-1], bytes(message)
    assert refused > 1000
