"""What readers of Envoy's messages have to find, by the protobuf library: the same tuples of both.

Services: envoy.service.ext_proc.v3, envoy.service.ratelimit.v3, envoy.service.auth.v3.
"""

from __future__ import annotations

from typing import Any

from headgate_engine.envoy.limits import read_limit_answer
from headgate_engine.envoy.processing import ITSELF, NOTHING, ProcessorAnswer

PARTS = ("request_headers", "response_headers", "request_body", "response_body", "request_trailers", "response_trailers",
         "immediate_response")  # fmt: skip
MUTATIONS = {None: 0, "body": 1, "clear_body": 2, "streamed_response": 3}


def processor_answer(answer: Any) -> tuple[object, ...]:
    """Of a ProcessingResponse."""
    kind = answer.WhichOneof("response")
    more = kind == "immediate_response" or any(
        answer.HasField(name) for name in ("dynamic_metadata", "mode_override", "override_message_timeout"))  # fmt: skip
    part = NOTHING if kind is None else PARTS.index(kind) + 1
    if part in (NOTHING, ITSELF) or kind.endswith("_trailers"):
        return part, 0, 0, b"", False, more
    common = getattr(answer, kind).response
    mutation = common.body_mutation
    which = mutation.WhichOneof("mutation")
    piece = mutation.streamed_response
    body = mutation.body if which == "body" else piece.body if which == "streamed_response" else b""
    last = piece.end_of_stream if which == "streamed_response" else False
    return part, common.status, MUTATIONS[which], body, last, more


def found_in_answer(answer: ProcessorAnswer) -> tuple[object, ...]:
    """The same of the engine's reader."""
    return answer.part, answer.status, answer.mutation, answer.body, answer.last, answer.more


def limit_answer(answer: Any) -> tuple[object, ...]:
    """Of a RateLimitResponse."""
    limited = [one for one in answer.statuses if one.HasField("current_limit")]
    least = min(limited, key=lambda one: one.limit_remaining, default=None)
    told: tuple[object, ...] = (False, 0, 0, 0)
    if least is not None:
        told = (True, least.current_limit.requests_per_unit, least.limit_remaining, least.duration_until_reset.seconds)
    return answer.overall_code, answer.raw_body, *told


def found_in_limit(message: bytes) -> tuple[object, ...]:
    """The same of the engine's reader; raises ValueError."""
    found = read_limit_answer(message)
    return found.code, found.body, found.known, found.limit, found.left, found.reset_s


def allows(answer: Any) -> bool:
    """Whether a CheckResponse allows a request and says nothing that the engine leaves to others."""
    return (
        answer.status.code == 0
        and answer.WhichOneof("http_response") in (None, "ok_response")
        and not answer.HasField("dynamic_metadata")
        and not answer.ok_response.query_parameters_to_set
    )
