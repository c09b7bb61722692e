"""Messages to an external processor are those that the protobuf library makes."""

from __future__ import annotations

import pytest
from envoy.config.core.v3.base_pb2 import HeaderMap
from envoy.service.ext_proc.v3.external_processor_pb2 import ProcessingRequest

from headgate.policy.processing.messages import request_head
from headgate_engine.context.request import make_context


@pytest.mark.parametrize("size", [0, 1, 100, 118, 119, 120, 121, 122, 123, 124, 125, 127, 128, 129, 16_383, 16_384, 60_000])
def test_heads_are_encoded_as_the_library_does(size: int) -> None:
    fields = [("X-Name", "v" * size), ("x" * max(size % 300, 1), "\u00fc\udcff")]
    head = make_context("GET", "/p?q", "a.test", fields).request
    wanted = HeaderMap()
    pseudo = [(":method", "GET"), (":path", "/p?q"), (":authority", "a.test"), (":scheme", "http")]
    for name, value in (*pseudo, *fields):
        wanted.headers.add(key=name.lower(), raw_value=value.encode("utf-8", "surrogateescape"))
    found = ProcessingRequest.FromString(request_head(head, "http", last=True).SerializeToString())
    assert found.request_headers.headers == wanted
    assert found.request_headers.end_of_stream
