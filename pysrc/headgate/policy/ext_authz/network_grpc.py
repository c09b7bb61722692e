"""Services that speak Envoy's protocol over gRPC and decide about connections.

They get the CheckRequest that Envoy's network filter sends: both ends, and what TLS says, without a request. Source:
https://www.envoyproxy.io/docs/envoy/latest/configuration/listeners/network_filters/ext_authz_filter.
"""

from __future__ import annotations

import contextlib
import json
import time
from typing import Any, Final

from envoy.service.auth.v3.external_auth_pb2 import CheckRequest, CheckResponse
from google.protobuf.message import DecodeError

from headgate.dialect.protobuf import fill_struct
from headgate.ir.policy.ext_authz import CONNECTION_ENDS, AuthzGrpc, ExtAuthz
from headgate.policy.environment import Environment
from headgate.policy.ext_authz.decision import FINE, REFUSED_CONNECTION, AuthzDecision
from headgate.policy.ext_authz.failure import ServiceFailure
from headgate.policy.ext_authz.grpc import MAX_ANSWER, METHOD
from headgate.policy.remote import GrpcPolicyService
from headgate_engine.context.request import RequestContext
from headgate_engine.expr.functions import json_text
from headgate_engine.expr.values import EvaluationError
from headgate_engine.link.grpc_call import GrpcFailure

PHASE: Final = "network"


class GrpcConnections:
    """Asks a service that speaks Envoy's protocol."""

    def __init__(self, policy: ExtAuthz, env: Environment) -> None:
        self._service = GrpcPolicyService(policy.service, env, "ExtAuthz")
        self._timeout_s = policy.timeout_ms / 1000
        options = policy.grpc or AuthzGrpc()
        self._context = options.context
        self._metadata = [(name, env.program(text, PHASE)) for name, text in options.metadata]
        self._ends = env.program(CONNECTION_ENDS, PHASE)

    async def decide(self, ctx: RequestContext) -> AuthzDecision:
        """Return the decision. Raises ServiceFailure."""
        question = self._question(ctx)
        try:
            found = await self._service.unary(ctx, METHOD, question, timeout_s=self._timeout_s, limit=MAX_ANSWER)
            answer = CheckResponse.FromString(found)
        except GrpcFailure as error:
            raise ServiceFailure(str(error)) from None
        except (DecodeError, ValueError) as error:  # ValueError: text that is not UTF-8
            raise ServiceFailure(f"the response is not a CheckResponse: {error}") from None
        return FINE if answer.status.code == 0 else REFUSED_CONNECTION

    def _question(self, ctx: RequestContext) -> bytes:
        question = CheckRequest()
        attributes: Any = question.attributes
        address, port, identity, certificate, own, own_port, sni = self._ends.evaluate(ctx)
        for peer, host, number in ((attributes.source, address, port), (attributes.destination, own, own_port)):
            if host is not None:
                peer.address.socket_address.address = host
            if number is not None:
                peer.address.socket_address.port_value = number
        if identity is not None:
            attributes.source.principal = identity
        if certificate is not None:
            attributes.source.certificate = certificate
        if sni is not None:
            attributes.tls_session.sni = sni
        attributes.request.time.seconds, attributes.request.time.nanos = divmod(time.time_ns(), 1_000_000_000)
        for key, value in self._context:
            attributes.context_extensions[key] = value
        self._add_metadata(ctx, attributes.metadata_context)
        return bytes(question.SerializeToString())

    def _add_metadata(self, ctx: RequestContext, context: Any) -> None:
        for name, program in self._metadata:
            with contextlib.suppress(EvaluationError):
                value = json.loads(json_text(program.evaluate(ctx)))
                fill_struct(context.filter_metadata[name], value if isinstance(value, dict) else {"value": value})
