"""What each policy costs a request: one run of its step on a request that passes, in C, the clock's own time taken off.

Steps that wait or answer by themselves are timed up to that point; signatures and password hashes are timed apart, as what a
credential costs that is not remembered.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from bench.micro.timing import Row, compare_times, show
from headgate.config.load import TextSource, load
from headgate.crypto.jwks import parse_jwks
from headgate.crypto.jws import Checks, verify
from headgate.pipeline import steps
from headgate.policy.environment import Environment
from headgate.policy.key_sets import KeyStore
from headgate_drivers.requests import step_nanoseconds
from headgate_engine.context.headers import MessageHead
from headgate_engine.context.request import RequestContext, make_context
from headgate_engine.link.endpoints import EndpointSet, EndpointState, HealthPlan
from headgate_engine.plan.step import Step, run_step
from headgate_engine.shared.segment import Segment
from headgate_engine.steps.identity import BasicStep
from headgate_engine.steps.session import OidcStep

TIMES = 2000
KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
PUBLIC = {**jwt.algorithms.RSAAlgorithm.to_jwk(KEY.public_key(), as_dict=True), "kid": "k"}
JWKS = json.dumps({"keys": [PUBLIC]})
CLAIMS = {"iss": "https://idp.test", "sub": "ada", "groups": ["dev", "ops", "admin"], "exp": time.time() + 86_400}
TOKEN = jwt.encode(CLAIMS, KEY, "RS256", headers={"kid": "k"})
PEM = KEY.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
# The name that the oidc case's session cookie has.
SESSION = "gw_oidc_s_" + hashlib.sha256(
    json.dumps(["https://idp.test", "a", "https://a.test/done", ["openid"]]).encode()
).hexdigest()[:16]
FIELDS = (("accept", "*/*"), ("user-agent", "bench/1"), ("x-team", "red"), ("cookie", "a=b; c=d"))


class Case(NamedTuple):
    """A policy as in the file, and the fields that a request brings for it. `where`: `route`, `response`, `backend`."""

    name: str
    policy: str
    fields: tuple[tuple[str, str], ...] = ()
    where: str = "route"


CASES = (
    Case("cors", "cors: {allowOrigins: ['https://a.test'], allowMethods: [GET]}", (("origin", "https://a.test"),)),
    Case("jwtAuth, remembered", f"jwtAuth: {{issuer: 'https://idp.test', jwks: '{JWKS}'}}",
         (("authorization", f"Bearer {TOKEN}"),)),
    Case("apiKey", "apiKey: {keys: [{key: 0123456789abcdef, metadata: {team: red}}]}",
         (("authorization", "Bearer 0123456789abcdef"),)),
    Case("basicAuth, remembered", "basicAuth: {htpasswd: 'ada:{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g='}",
         (("authorization", "Basic YWRhOnBhc3N3b3Jk"),)),
    Case("authorization", "authorization: {rules: ['request.headers[\"x-team\"] == \"red\"']}"),
    Case("localRateLimit", "localRateLimit: [{maxTokens: 1000000, tokensPerFill: 1, fillInterval: 1s}]"),
    Case("buffer, no body", "buffer: {request: {maxBytes: 1024}}"),
    Case("transformations", "transformations: {request: {set: {x-new: 'request.headers[\"x-team\"] + \"!\"'}}}"),
    Case("csrf", "csrf: {}"),
    Case("requestHeaderModifier", "requestHeaderModifier: {set: {x-new: a}, remove: [x-team]}"),
    Case("urlRewrite", "urlRewrite: {path: {full: /v2}}"),
    Case("requestRedirect", "requestRedirect: {scheme: https, status: 301}"),
    Case("delay, none", "delay: {duration: '0'}"),
    Case("directResponse", "directResponse: {status: 200, body: hello}"),
    Case("oidc, remembered", "oidc: {issuer: 'https://idp.test', clientId: a, clientSecret: b, "
         "redirectURI: 'https://a.test/done'}", (("x", "y"),)),
    Case("responseHeaderModifier", "responseHeaderModifier: {set: {x-new: a}}", (), "response"),
    Case("backendAuth key", "backendAuth: {key: secret}", (), "backend"),
    Case("backendAuth passthrough", "backendAuth: {passthrough: {}}", (), "backend"),
    Case("backendAuth jwtSign, kept", f"backendAuth: {{jwtSign: {{signingKey: {json.dumps(PEM)}}}}}", (), "backend"),
    Case("requestMirror, none", "requestMirror: {backend: {host: '127.0.0.1:1'}, percentage: 0.0}"),
)  # fmt: skip


def environment(segment: Segment) -> Environment:
    """What steps are compiled with where nothing goes over the network."""

    def nobody(*_: Any) -> Any:
        return None

    return Environment(segment, 1 << 21, lambda source: KeyStore(source, None, nobody), nobody, nobody)


def step_of(case: Case, segment: Segment) -> Step:
    text = (
        "gateways: {default: {port: 1}}\n"
        f"routes: [{{policies: {{{case.policy}}}, backends: [{{host: '127.0.0.1:1'}}]}}]"
    )
    gateway = load(TextSource(text), environ={"OIDC_COOKIE_SECRET": "5a" * 32}).gateway
    route = gateway.binds[0].listeners[0].routes[0]
    if case.where == "response":
        [step] = steps.route_response_steps(route.policies)
    elif case.where == "backend":
        [step] = steps.backend_request_steps(route.backends[0].policies, environment(segment))
    else:
        [step] = steps.route_request_steps(route.policies, environment(segment))
    return step


def maker(case: Case, step: Step) -> Callable[[], RequestContext]:
    fields = case.fields
    if isinstance(step, OidcStep):
        fields = (("cookie", f"{SESSION}=sealed"),)

    def make() -> RequestContext:
        context = make_context("GET", "/v1/models?a=b", "a.test", (*FIELDS, *fields), response=MessageHead())
        context.jwt_token = TOKEN.encode()
        return context

    return make


def remember(step: Step, context: RequestContext) -> None:
    """Let a credential count as verified: a token is verified here, a password would be in a thread."""
    if isinstance(step, BasicStep):
        step.admit(context, b"YWRhOnBhc3N3b3Jk", "ada", 3600)
    elif isinstance(step, OidcStep):
        step.admit(context, b"sealed", (CLAIMS, TOKEN.encode()), 3600)
    else:
        run_step(step, context)


def rows() -> Iterator[Row]:
    segment = Segment.create()
    for case in CASES:
        step = step_of(case, segment)
        make = maker(case, step)
        remember(step, make())
        yield compare_times(f"policy: {case.name}", lambda step=step, make=make: step_nanoseconds(step, make, TIMES))  # type: ignore[misc]
    keys, checks = parse_jwks(JWKS), Checks("https://idp.test")
    raw = TOKEN.encode()
    yield compare_times("policy: jwtAuth, a new RS256 token", lambda: each(lambda: verify(raw, keys, checks, time.time())))
    places = [EndpointState(segment, "o", f"e{number}") for number in range(10)]
    chosen = EndpointSet(places, HealthPlan(evicts=True, consecutive=5))
    yield compare_times("backend: choice among 10 endpoints", lambda: each(lambda: chosen.choose(), 20_000))


def each(run: Callable[[], object], times: int = 200) -> float:
    began = time.perf_counter_ns()
    for _ in range(times):
        run()
    return (time.perf_counter_ns() - began) / times


if __name__ == "__main__":
    show(rows())
