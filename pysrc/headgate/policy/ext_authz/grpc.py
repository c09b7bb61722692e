"""Authorization services that speak Envoy's protocol over gRPC."""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING, Any, Final

from envoy.service.auth.v3.attribute_context_pb2 import AttributeContext
from envoy.service.auth.v3.external_auth_pb2 import CheckResponse
from google.protobuf.message import DecodeError

from headgate.dialect.protobuf import fill_struct, struct_values
from headgate.ir.policy.ext_authz import AuthzGrpc, ExtAuthz
from headgate.policy.environment import Environment
from headgate.policy.ext_authz.decision import PLAIN, REASON, AuthzDecision, refusal, usable_pseudo
from headgate.policy.ext_authz.failure import ServiceFailure
from headgate.policy.header_values import APPEND, FRAMING, REPLACE_OR_ADD, field_edits, usable_edit
from headgate.policy.remote import GrpcPolicyService
from headgate_engine.context.request import Reply, RequestContext
from headgate_engine.envoy.check import CheckQuestion, read_allowance
from headgate_engine.expr.functions import json_text
from headgate_engine.expr.values import EvaluationError
from headgate_engine.link.consult import GrpcQuestion
from headgate_engine.link.grpc_call import GrpcFailure

if TYPE_CHECKING:
    from headgate_engine.link.consult import AskingPolicy

METHOD: Final = "/envoy.service.auth.v3.Authorization/Check"
MAX_ANSWER: Final = 1024 * 1024
JWT: Final = "envoy.filters.http.jwt_authn"
DENIED: Final = 403
# Where the request comes from and goes to, in this order in the answer of one expression.
ENDS: Final = (
    "[source.address, source.port, source.spiffeId, source.certificate, destination.address, destination.port, "
    "destination.hostname, request.startTime, request.version]"
)


class GrpcAuthorizer:
    """Asks the service about requests, and reads its decisions."""

    def __init__(self, policy: ExtAuthz, env: Environment, phase: str) -> None:
        self._service = GrpcPolicyService(policy.service, env, "ExtAuthz")
        self._timeout_s = policy.timeout_ms / 1000
        options = policy.grpc or AuthzGrpc()
        body = policy.body
        self._question = CheckQuestion(
            policy.sent,
            -1 if body is None else body.max_bytes,
            body is not None and body.as_bytes,
            options.context,
        )
        self._metadata = [(name, env.program(text, phase)) for name, text in options.metadata]
        self._ends = env.program(ENDS, phase)

    def asked(self, policy: AskingPolicy) -> GrpcQuestion | None:
        """Return what the engine asks by itself; None where policies of the service come first."""
        return self._service.question(METHOD, policy, timeout_s=self._timeout_s, limit=MAX_ANSWER)

    async def decide(self, ctx: RequestContext) -> AuthzDecision:
        """Return the decision. Raises ServiceFailure."""
        try:
            found = await self._service.unary(
                ctx, METHOD, self.question(ctx), timeout_s=self._timeout_s, limit=MAX_ANSWER
            )
        except GrpcFailure as error:
            raise ServiceFailure(str(error)) from None
        return self.decision(found, None)

    def decision(self, message: bytes | None, failure: GrpcFailure | None) -> AuthzDecision:
        """Return the decision in an encoded CheckResponse. Raises ServiceFailure."""
        if message is None:
            raise ServiceFailure(str(failure))
        allowance = read_allowance(message)
        if allowance is not None:
            return AuthzDecision(allowance=allowance)
        try:
            answer = CheckResponse.FromString(message)
        except (DecodeError, ValueError) as error:  # ValueError: text that is not UTF-8
            raise ServiceFailure(f"the response is not a CheckResponse: {error}") from None
        return decision_of(answer)

    def question(self, ctx: RequestContext) -> bytes:
        """Return the encoded CheckRequest."""
        more = self._metadata_of(ctx) if self._metadata or ctx.jwt is not None else b""
        # Of a request that another worker relays, that one knows the connection.
        ends = None if ctx.origin is None else self._ends.evaluate(ctx)
        return self._question.encode(ctx, more, ends)

    def _metadata_of(self, ctx: RequestContext) -> bytes:
        found = AttributeContext()
        context = found.metadata_context
        if ctx.jwt is not None:
            fill_struct(context.filter_metadata[JWT], {"jwt_payload": json.loads(json_text(ctx.jwt))})
        for name, program in self._metadata:
            with contextlib.suppress(EvaluationError):
                value = json.loads(json_text(program.evaluate(ctx)))
                fill_struct(context.filter_metadata[name], value if isinstance(value, dict) else {"value": value})
        return bytes(found.SerializeToString())


def decision_of(answer: Any) -> AuthzDecision:
    """Return the decision in a CheckResponse."""
    metadata = struct_values(answer.dynamic_metadata)
    kind = answer.WhichOneof("http_response")
    if answer.status.code != 0:
        denied = answer.denied_response if kind == "denied_response" else None
        return AuthzDecision(reply=_denied(denied), metadata=metadata)
    if kind != "ok_response":
        return AuthzDecision(metadata=metadata)
    fine = answer.ok_response
    return AuthzDecision(
        edits=tuple(
            edit for edit in field_edits(fine.headers, REPLACE_OR_ADD) if usable_pseudo(edit) or usable_edit(edit)
        ),
        removed=tuple(
            name.lower() for name in fine.headers_to_remove if name.lower() not in FRAMING | {"host"} and name.isascii()
        ),
        query_set=tuple((one.key, one.value) for one in fine.query_parameters_to_set),
        query_removed=tuple(fine.query_parameters_to_remove),
        answered=tuple(filter(usable_edit, field_edits(fine.response_headers_to_add, APPEND))),
        metadata=metadata or struct_values(fine.dynamic_metadata),
    )


def _denied(denied: Any) -> Reply:
    if denied is None:
        return refusal(DENIED)
    status = denied.status.code if 200 <= denied.status.code <= 599 else DENIED
    fields: list[tuple[bytes, bytes]] = []
    for edit in filter(usable_edit, field_edits(denied.headers, APPEND)):
        name, value = edit.encoded
        if edit.action == REPLACE_OR_ADD:
            fields = [field for field in fields if field[0] != name]
        fields.append((name, value))
    body = denied.body.encode()
    if body and all(name != b"content-type" for name, _ in fields):
        fields.append(PLAIN)
    return Reply(status, body, tuple(fields), REASON)
