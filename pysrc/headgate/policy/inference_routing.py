"""Compiles `inferenceRouting` to a step: an endpoint picker chooses where a request goes.

Protocol: https://github.com/kubernetes-sigs/gateway-api-inference-extension/tree/main/docs/proposals/004-endpoint-picker-protocol.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from headgate.dialect.protobuf import struct_values
from headgate.ir.policy.ext_proc import ProcessingOptions
from headgate.ir.policy.inference_routing import InferenceRouting
from headgate.net.destinations import place_of, written
from headgate.policy.environment import Environment
from headgate.policy.processing.messages import PLAIN, REASON
from headgate.policy.processing.processor import ExternalProcessor
from headgate.policy.processing.session import ProcessingSession
from headgate_engine.context.request import Reply, RequestContext
from headgate_engine.link.picked import note_picked, picked_places
from headgate_engine.plan.step import PythonStep, Step

NAME: Final = "inferenceRouting"
# Where the picker says which endpoints, the best first: a header, or metadata under this namespace.
DESTINATION: Final = "x-gateway-destination-endpoint"
NAMESPACE: Final = "envoy.lb"
NONE_PICKED: Final = "the endpoint picker has named no endpoint"
UNAVAILABLE: Final = 503


class EndpointPicker(ExternalProcessor):
    """A processor that names endpoints."""

    def keep_metadata(self, ctx: RequestContext, found: Any, variable: str) -> None:
        """Take the endpoints from the metadata, which is nobody else's."""
        told = struct_values(found).get(NAMESPACE)
        if isinstance(told, dict) and isinstance(told.get(DESTINATION), str):
            ctx.request.set(DESTINATION, told[DESTINATION])

    def picked(self, session: ProcessingSession) -> bool:
        """Note the endpoints, or refuse the request if there are none."""
        ctx = session.ctx
        assert ctx is not None
        places = list(_places(ctx.request.get_list(DESTINATION)))
        if places:
            note_picked(ctx, places)
            return True
        ctx.add_log_field("extproc.error", NONE_PICKED)
        session.refuse(Reply(UNAVAILABLE, NONE_PICKED.encode(), (PLAIN,), REASON), NONE_PICKED)
        return False


def _places(values: Iterable[str]) -> Iterable[bytes]:
    """Yield the places in a list, each once. What is no `host:port` is left out."""
    known: set[bytes] = set()
    for text in ",".join(values).split(","):
        try:
            host, port = place_of(text.strip().encode(), None)
        except ValueError:
            continue
        place = written(host, port).encode()
        if place not in known:
            known.add(place)
            yield place


def compile_inference_routing(policy: InferenceRouting, env: Environment) -> Step:
    """Return the step that has endpoints picked before the first attempt; others go to those that follow."""
    picker = EndpointPicker(
        policy.picker, env, timeout_ms=policy.timeout_ms, fail_open=policy.fail_open, options=ProcessingOptions()
    )

    def begin(ctx: RequestContext) -> int | None:
        if picked_places(ctx):
            return None
        ctx.request.remove(DESTINATION)         # no client chooses
        return ProcessingSession(picker, ctx).begin()

    return PythonStep(NAME, begin)
