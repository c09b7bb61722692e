"""Authorization services that speak Envoy's protocol over gRPC."""

from __future__ import annotations

import contextlib
import json
from typing import Any, Final

from envoy.service.auth.v3.external_auth_pb2 import CheckRequest, CheckResponse
from google.protobuf.message import DecodeError

from headgate.dialect.protobuf import fill_struct, struct_values
from headgate.ir.policy.ext_authz import AuthzGrpc, ExtAuthz
from headgate.policy.environment import Environment
from headgate.policy.ext_authz.decision import PLAIN, REASON, AuthzDecision, refusal, usable_pseudo
from headgate.policy.ext_authz.failure import ServiceFailure
from headgate.policy.ext_authz.seen import SeenRequest
from headgate.policy.header_values import APPEND, FRAMING, REPLACE_OR_ADD, field_edits, usable_edit
from headgate.policy.remote import GrpcPolicyService
from headgate_engine.context.request import Reply, RequestContext
from headgate_engine.expr.functions import json_text
from headgate_engine.expr.values import EvaluationError
from headgate_engine.link.grpc_call import GrpcFailure

METHOD: Final = "/envoy.service.auth.v3.Authorization/Check"
MAX_ANSWER: Final = 1024 * 1024
JWT: Final = "envoy.filters.http.jwt_authn"
DENIED: Final = 403
# Where the request comes from and goes to, in this order in the answer of one expression.
ENDS: Final = (
    "[source.address, source.port, source.spiffeId, source.certificate, destination.address, destination.port, "
    "destination.hostname, request.startTime, request.scheme, request.version]"
)


class GrpcAuthorizer:
    """Asks the service about requests, and reads its decisions."""

    def __init__(self, policy: ExtAuthz, env: Environment, phase: str) -> None:
        self._service = GrpcPolicyService(policy.service, env, "ExtAuthz")
        self._timeout_s = policy.timeout_ms / 1000
        self._seen = SeenRequest(policy.sent, policy.body)
        options = policy.grpc or AuthzGrpc()
        self._context = options.context
        self._metadata = [(name, env.program(text, phase)) for name, text in options.metadata]
        self._ends = env.program(ENDS, phase)

    async def decide(self, ctx: RequestContext) -> AuthzDecision:
        """Return the decision. Raises ServiceFailure."""
        try:
            found = await self._service.unary(
                ctx, METHOD, self.question(ctx), timeout_s=self._timeout_s, limit=MAX_ANSWER
            )
            answer = CheckResponse.FromString(found)
        except GrpcFailure as error:
            raise ServiceFailure(str(error)) from None
        except (DecodeError, ValueError) as error:  # ValueError: text that is not UTF-8
            raise ServiceFailure(f"the answer is no CheckResponse: {error}") from None
        return decision_of(answer)

    def question(self, ctx: RequestContext) -> bytes:
        """Return the encoded CheckRequest."""
        question = CheckRequest()
        attributes = question.attributes
        ends = self._ends.evaluate(ctx)
        address, port, identity, certificate, own, own_port, sni, started, scheme, version = ends
        _peer(attributes.source, address, port)
        if identity is not None:
            attributes.source.principal = identity
        if certificate is not None:
            attributes.source.certificate = certificate
        _peer(attributes.destination, own, own_port)
        if sni is not None:
            attributes.tls_session.sni = sni
        attributes.request.time.seconds, attributes.request.time.nanos = divmod(started.ns, 1_000_000_000)
        http = attributes.request.http
        head, host = ctx.request, ctx.authority
        http.id = head.get("x-request-id") or ""
        http.method, http.path, http.host, http.scheme = head.method, head.target, host, scheme
        http.protocol = "HTTP/2" if version == "HTTP/2.0" else version  # as Envoy writes it
        pseudo = {":method": head.method, ":path": head.target, ":authority": host, ":scheme": scheme}
        for name, value in self._seen.fields(ctx, pseudo).items():
            http.headers[name] = _text(value)
        http.size = head.content_length if ctx.body_state != 1 else len(ctx.request_body or b"")
        body = self._seen.content(ctx)
        if body is not None:
            if self._seen.as_bytes:
                http.raw_body = body
            else:
                http.body = body.decode("utf-8", "replace")
        for key, value in self._context:
            attributes.context_extensions[key] = value
        self._add_metadata(ctx, attributes.metadata_context)
        return bytes(question.SerializeToString())

    def _add_metadata(self, ctx: RequestContext, context: Any) -> None:
        if ctx.jwt is not None:
            fill_struct(context.filter_metadata[JWT], {"jwt_payload": json.loads(json_text(ctx.jwt))})
        for name, program in self._metadata:
            with contextlib.suppress(EvaluationError):
                value = json.loads(json_text(program.evaluate(ctx)))
                fill_struct(context.filter_metadata[name], value if isinstance(value, dict) else {"value": value})


def _peer(peer: Any, address: str | None, port: int | None) -> None:
    if address is not None:
        peer.address.socket_address.address = address
    if port is not None:
        peer.address.socket_address.port_value = port


def _text(value: str) -> str:
    """Return a field's value as text of a message: bytes that are not UTF-8 are replaced."""
    return value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


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
