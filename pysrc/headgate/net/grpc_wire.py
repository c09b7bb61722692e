"""Encoding of gRPC messages and statuses in HTTP/2.

Source: https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md.
"""

from __future__ import annotations

import zlib
from enum import IntEnum
from typing import Final
from urllib.parse import unquote_to_bytes

from headgate.net.http2_exchange import Headers, Http2Error, Http2Response, TooLarge

PREFIX: Final = 5
MAX_TEXT: Final = 512


class Status(IntEnum):
    """The status codes of gRPC (https://github.com/grpc/grpc/blob/master/doc/statuscodes.md)."""

    OK = 0
    CANCELLED = 1
    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    ABORTED = 10
    OUT_OF_RANGE = 11
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14
    DATA_LOSS = 15
    UNAUTHENTICATED = 16


CODES: Final = {b"%d" % status: status for status in Status}
# OF_HTTP maps HTTP statuses where there is no `grpc-status`
# (https://github.com/grpc/grpc/blob/master/doc/http-grpc-status-mapping.md), OF_RESET the error codes of a reset stream
# (PROTOCOL-HTTP2).
OF_HTTP: Final = {
    400: Status.INTERNAL,
    401: Status.UNAUTHENTICATED,
    403: Status.PERMISSION_DENIED,
    404: Status.UNIMPLEMENTED,
    429: Status.UNAVAILABLE,
    502: Status.UNAVAILABLE,
    503: Status.UNAVAILABLE,
    504: Status.UNAVAILABLE,
}
OF_RESET: Final = {
    7: Status.UNAVAILABLE,  # REFUSED_STREAM
    8: Status.CANCELLED,
    11: Status.RESOURCE_EXHAUSTED,  # ENHANCE_YOUR_CALM
    12: Status.PERMISSION_DENIED,  # INADEQUATE_SECURITY
}


class GrpcError(Exception):
    """A call did not end with OK. `unsent` means that no server has begun to process it."""

    def __init__(self, status: Status, message: str, *, unsent: bool = False) -> None:
        super().__init__(f"{status.name}: {message}" if message else status.name)
        self.status = status
        self.message = message
        self.unsent = unsent


def framed(message: bytes) -> bytes:
    """Return the uncompressed length-prefixed form of a message."""
    return b"\0" + len(message).to_bytes(4) + message


def check_head(headers: Headers) -> None:
    """Raise GrpcError if these are not the headers of a gRPC response."""
    head = dict(headers)
    http, kind = head.get(b":status", b""), head.get(b"content-type", b"")
    if not kind.startswith(b"application/grpc") or (b"grpc-status" not in head and http != b"200"):
        text = f"HTTP status {shown(http)}, content type {shown(kind) or 'none'}"
        raise GrpcError(OF_HTTP.get(int(http) if http.isdigit() else 0, Status.UNKNOWN), text)


def check_end(answer: Http2Response) -> None:
    """Raise GrpcError if the response did not end with OK."""
    check_head(answer.headers)
    # A response without a body may carry its status in the headers (Trailers-Only).
    last = dict(answer.trailers or answer.headers)
    code = last.get(b"grpc-status")
    if code is None:
        raise GrpcError(Status.UNKNOWN, "the answer has no status")
    if code != b"0":
        status = CODES.get(code, Status.UNKNOWN)
        raise GrpcError(status, shown(unquote_to_bytes(last.get(b"grpc-message", b""))))


def encoding_of(headers: Headers) -> bytes:
    """Return the compression of a response's messages, `identity` for none."""
    return dict(headers).get(b"grpc-encoding", b"identity")


def message_of(answer: Http2Response, limit: int) -> bytes:
    """Return the message of a unary response. Raises GrpcError if it did not end with OK, is malformed or is longer
    than `limit` bytes."""
    check_end(answer)
    body = answer.body
    if len(body) < PREFIX:
        raise GrpcError(Status.INTERNAL, "the answer has no message")
    length = int.from_bytes(body[1:PREFIX])
    if length != len(body) - PREFIX:
        what = "is cut short" if length > len(body) - PREFIX else "has more than one message"
        raise GrpcError(Status.INTERNAL, f"the answer {what}")
    return unpacked(body[0], bytes(body[PREFIX:]), encoding_of(answer.headers), limit)


def unpacked(flag: int, message: bytes, encoding: bytes, limit: int) -> bytes:
    """Return the uncompressed message. Raises GrpcError if it is not valid gzip or exceeds `limit` bytes."""
    if flag == 0:
        return message
    if flag != 1 or encoding != b"gzip":
        raise GrpcError(Status.INTERNAL, f"the message is compressed by {shown(encoding)}, flag {flag}")
    try:
        unpacker = zlib.decompressobj(wbits=31)
        plain = unpacker.decompress(message, limit + 1)
    except zlib.error as error:
        raise GrpcError(Status.INTERNAL, f"the message is not gzip: {error}") from None
    if len(plain) > limit:
        raise GrpcError(Status.RESOURCE_EXHAUSTED, f"the message has more than {limit} bytes")
    if not unpacker.eof:
        raise GrpcError(Status.INTERNAL, "the message is cut short")
    return plain


def failure_of(error: Http2Error) -> GrpcError:
    """Return the GrpcError for a failed HTTP/2 exchange."""
    if isinstance(error, TooLarge):
        return GrpcError(Status.RESOURCE_EXHAUSTED, str(error))
    if error.code is not None:
        return GrpcError(OF_RESET.get(error.code, Status.INTERNAL), str(error), unsent=error.unsent)
    return GrpcError(Status.UNAVAILABLE, str(error), unsent=error.unsent)


def shown(text: bytes) -> str:
    """Return text from a server as one line of at most MAX_TEXT characters."""
    return " ".join(text.decode("utf-8", "replace").split())[:MAX_TEXT]
