"""The gateway's answers as a gRPC client sees them."""

from __future__ import annotations

from urllib.parse import unquote_to_bytes

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate_drivers.requests import as_grpc
from headgate_engine.context.request import Reply
from headgate_engine.link.grpc_status import percent_encoded

# HTTP status to gRPC code (https://github.com/grpc/grpc/blob/master/doc/http-grpc-status-mapping.md).
CODES = {400: 13, 401: 16, 407: 16, 403: 7, 404: 12, 429: 14, 502: 14, 503: 14, 504: 14, 500: 2, 413: 2, 421: 2}


@pytest.mark.parametrize("status", CODES)
def test_status_becomes_a_code(status: int) -> None:
    reply = as_grpc(Reply(status, b"why", ((b"content-type", b"text/plain"), (b"x-a", b"1")), "X"))
    fields = dict(reply.headers)
    assert (reply.status, reply.body, reply.reason) == (200, b"", "X")
    assert fields == {
        b"x-a": b"1",
        b"content-type": b"application/grpc",
        b"grpc-status": b"%d" % CODES[status],
        b"grpc-message": b"why",
    }


def test_no_backend_is_unavailable() -> None:
    assert dict(as_grpc(Reply(500, b"no valid backends")).headers)[b"grpc-status"] == b"14"


@pytest.mark.parametrize("reply", [Reply(200, b"fine"), Reply(404, b"as told", (), "DirectResponse")])
def test_what_is_no_failure_stays(reply: Reply) -> None:
    assert as_grpc(reply) is reply


@given(st.binary())
def test_messages_come_back(message: bytes) -> None:
    encoded = percent_encoded(message)
    assert all(32 <= byte <= 126 for byte in encoded)
    assert unquote_to_bytes(encoded) == message
