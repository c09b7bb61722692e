"""The messages to and from an external processor: https://www.envoyproxy.io/docs/envoy/latest/api-v3/service/ext_proc/v3/external_processor.proto."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable
from typing import Any, Final

from envoy.config.core.v3.base_pb2 import HeaderMap
from envoy.service.ext_proc.v3.external_processor_pb2 import (
    HttpBody,
    HttpHeaders,
    HttpTrailers,
    ProcessingRequest,
    ProcessingResponse,
)
from google.protobuf.message import DecodeError

from headgate.dialect.protobuf import fill_struct
from headgate.ir.policy.ext_proc import BodyMode
from headgate.policy.header_values import APPEND, REPLACE_OR_ADD, field_edits, usable_edit
from headgate_engine.context.headers import MessageHead
from headgate_engine.context.request import Reply, RequestContext
from headgate_engine.expr.functions import json_text
from headgate_engine.expr.program import Program
from headgate_engine.expr.values import EvaluationError

METHOD: Final = "/envoy.service.ext_proc.v3.ExternalProcessor/Process"
# Under which the attributes are sent.
ATTRIBUTES: Final = "envoy.filters.http.ext_proc"
REASON: Final = "ExtProc"
PLAIN: Final = (b"content-type", b"text/plain")
# envoy.extensions.filters.http.ext_proc.v3.ProcessingMode
BODY_MODES: Final[dict[BodyMode, int]] = {"none": 0, "buffered": 2, "bufferedPartial": 3, "fullDuplexStreamed": 4}
MODES_OF_NUMBERS: Final = {number: name for name, number in BODY_MODES.items()}
SEND, SKIP = 1, 2
CONTINUE_AND_REPLACE: Final = 1
# Lengths below it take one byte (https://protobuf.dev/programming-guides/encoding/#varints).
ONE_BYTE: Final = 128
Named = list[tuple[str, Program]]

__all__ = ["DecodeError", "ProcessingRequest", "ProcessingResponse"]


def request_head(head: MessageHead, scheme: str, *, last: bool) -> Any:
    """Return the message with the head of a request. `last`: it has no body."""
    pseudo = (
        (":method", head.method), (":path", head.target), (":authority", head.authority), (":scheme", scheme),
    )  # fmt: skip
    return ProcessingRequest(
        request_headers=HttpHeaders(headers=_fields(pseudo, head.items()), end_of_stream=last)
    )


def response_head(head: MessageHead, *, last: bool) -> Any:
    """Return the message with the head of a response."""
    pseudo = ((":status", str(head.status)),)
    return ProcessingRequest(
        response_headers=HttpHeaders(headers=_fields(pseudo, head.items()), end_of_stream=last)
    )


def body_part(data: bytes, *, response: bool, last: bool) -> Any:
    """Return the message with a piece of a body, or all of it. `last`: nothing follows, no trailers either."""
    body = HttpBody(body=data, end_of_stream=last)
    return ProcessingRequest(response_body=body) if response else ProcessingRequest(request_body=body)


def trailer_part(trailers: MessageHead, *, response: bool) -> Any:
    """Return the message with trailers."""
    found = HttpTrailers(trailers=_fields((), trailers.items()))
    return ProcessingRequest(response_trailers=found) if response else ProcessingRequest(request_trailers=found)


def _fields(pseudo: Iterable[tuple[str, str]], fields: Iterable[tuple[str, str]]) -> Any:
    # Written out and parsed: to add field by field takes ten times as long.
    return HeaderMap.FromString(b"".join([_field(name, value) for name, value in (*pseudo, *fields)]))


def _field(name: str, value: str) -> bytes:
    """Return an encoded `headers` entry of a HeaderMap: `key` and `raw_value`."""
    key, raw = name.lower().encode(), value.encode("utf-8", "surrogateescape")
    size = len(key) + len(raw) + 4
    if size < ONE_BYTE:
        return b"\x0a%c\x0a%c%b\x1a%c%b" % (size, len(key), key, len(raw), raw)
    inner = b"\x0a%b%b\x1a%b%b" % (_varint(len(key)), key, _varint(len(raw)), raw)
    return b"\x0a%b%b" % (_varint(len(inner)), inner)


def _varint(number: int) -> bytes:
    found = bytearray()
    while number >= ONE_BYTE:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    found.append(number)
    return bytes(found)


def add_attributes(message: Any, ctx: RequestContext, programs: Named) -> None:
    """Add what expressions say of the request. Those without a value are left out."""
    found = _values(ctx, programs)
    if found:
        fill_struct(message.attributes[ATTRIBUTES], found)


def add_metadata(message: Any, ctx: RequestContext, programs: list[tuple[str, Named]]) -> None:
    """Add the metadata context, by namespace."""
    for namespace, named in programs:
        found = _values(ctx, named)
        if found:
            fill_struct(message.metadata_context.filter_metadata[namespace], found)


def _values(ctx: RequestContext, programs: Named) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, program in programs:
        with contextlib.suppress(EvaluationError):
            found[name] = json.loads(json_text(program.evaluate(ctx)))
    return found


def reply_of(answer: Any, *, grpc: bool) -> Reply:
    """Return the reply that an ImmediateResponse wants. Status 0 is 200. `grpc`: the client speaks gRPC."""
    status = answer.status.code or 200
    if not 200 <= status <= 599:
        status = 500
    fields: list[tuple[bytes, bytes]] = []
    for edit in filter(usable_edit, field_edits(answer.headers.set_headers, REPLACE_OR_ADD)):
        name, value = edit.encoded
        if edit.action != APPEND:
            fields = [field for field in fields if field[0] != name]
        fields.append((name, value))
    body = bytes(answer.body) if isinstance(answer.body, bytes) else answer.body.encode()
    if grpc and answer.HasField("grpc_status"):
        fields = [field for field in fields if field[0] != b"content-type"]
        fields.append((b"content-type", b"application/grpc"))
        fields.append((b"grpc-status", b"%d" % answer.grpc_status.status))
        fields.append((b"grpc-message", _percent_encoded(body)))
        return Reply(200, b"", tuple(fields), REASON)
    if body and all(name != b"content-type" for name, _ in fields):
        fields.append(PLAIN)
    return Reply(status, body, tuple(fields), REASON)


def _percent_encoded(text: bytes) -> bytes:
    """Return the value of `grpc-message` (PROTOCOL-HTTP2, Percent-Encoded)."""
    return b"".join(b"%c" % c if 32 <= c <= 126 and c != 37 else b"%%%02X" % c for c in text)
