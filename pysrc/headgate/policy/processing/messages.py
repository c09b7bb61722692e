"""The messages to and from an external processor: https://www.envoyproxy.io/docs/envoy/latest/api-v3/service/ext_proc/v3/external_processor.proto."""

from __future__ import annotations

import contextlib
import json
from typing import Any, Final

from envoy.service.ext_proc.v3.external_processor_pb2 import ProcessingRequest, ProcessingResponse
from google.protobuf.message import DecodeError

from headgate.dialect.protobuf import fill_struct
from headgate.ir.policy.ext_proc import BodyMode, ProcessingOptions
from headgate.policy.header_values import APPEND, REPLACE_OR_ADD, field_edits, usable_edit
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
Named = list[tuple[str, Program]]

__all__ = ["DecodeError", "ProcessingResponse"]


def introduction(options: ProcessingOptions) -> bytes:
    """Return the field of a stream's first message that says how bodies are sent."""
    message = ProcessingRequest()
    message.protocol_config.request_body_mode = BODY_MODES[options.request.body]
    message.protocol_config.response_body_mode = BODY_MODES[options.response.body]
    return bytes(message.SerializeToString())


def described(ctx: RequestContext, attributes: Named, metadata: list[tuple[str, Named]]) -> bytes:
    """Return what expressions say of the request, as fields of a message. Those without a value are left out."""
    message = ProcessingRequest()
    found = _values(ctx, attributes)
    if found:
        fill_struct(message.attributes[ATTRIBUTES], found)
    for namespace, named in metadata:
        found = _values(ctx, named)
        if found:
            fill_struct(message.metadata_context.filter_metadata[namespace], found)
    return bytes(message.SerializeToString())


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
