"""What an API server refuses: a base of `resource_cases`, one change of it, and what the user is told."""

from __future__ import annotations

from typing import Any, NamedTuple

from resource_cases import AI, BACKEND, GATEWAY, GONE, JWT_SIGN, REF, ROUTE, SECRET, SERVICE, TLS


class Refused(NamedTuple):
    base: str
    changes: dict[str, Any]
    message: str


def exactly(*names: str) -> str:
    return f"exactly one of the fields in [{' '.join(names)}] must be set"


def most(*names: str) -> str:
    return f"at most one of the fields in [{' '.join(names)}] may be set"


def least(*names: str) -> str:
    return f"at least one of the fields in [{' '.join(names)}] must be set"


def one_of(base: str, path: str, message: str, both: dict[str, Any], *alone: str) -> list[Refused]:
    """None of the fields, and two of them."""
    gone = {f"{path}.{name}" if path else name: GONE for name in alone}
    more = {f"{path}.{name}" if path else name: value for name, value in both.items()}
    return [Refused(base, gone, message), Refused(base, more, message)]


TRAFFIC, FRONTEND, CALL = "policy/traffic", "policy/frontend", "policy/backend"
SELECTED = [{"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "matchLabels": {"a": "b"}}]
ENDPOINT = exactly("backendRef", "url")
NO_PATH = "must not have a path"
SIMPLE = ("tcp", "tls", "http", "tunnel", "auth")
CALLS = (*SIMPLE, "ai", "mcp", "transformation", "health", "extAuth")
TRAFFICS = (
    "jwtAuthentication", "apiKeyAuthentication", "basicAuthentication", "authorization", "cors", "csrf", "extAuth", "extProc",
    "rateLimit", "transformation", "headerModifiers", "hostRewrite", "timeouts", "retry", "delay", "buffer", "directResponse",
)  # fmt: skip
FRONTENDS = ("tcp", "tls", "http", "networkAuthorization", "proxyProtocol", "connect", "accessLog", "tracing", "metrics")
AIS = (
    "prompt", "promptEnrichment", "promptGuard", "promptCaching", "defaults", "overrides", "transformations",
    "finalTransformations", "modelAliases", "unsupportedParameters", "routes",
)  # fmt: skip
RESPONSE_GUARDS = ("regex", "webhook", "bedrockGuardrails", "googleModelArmor", "azureContentSafety")
PROVIDERS = ("openai", "azureopenai", "azure", "anthropic", "gemini", "vertexai", "bedrock", "custom")
MANY = "must have at most"
RULE = {"policy": {"matchExpressions": ["true"]}}

TARGETS = [
    *one_of(TRAFFIC, "", exactly("targetRefs", "targetSelectors"), {"targetSelectors": SELECTED}, "targetRefs"),
    Refused(TRAFFIC, {"targetRefs.0.kind": "Pod"}, "a target is one of Gateway, HTTPRoute, GRPCRoute, ListenerSet, Service, GatewayBackend, InferencePool"),
    Refused(TRAFFIC, {"targetRefs.0.group": ""}, "a target is one of Gateway, HTTPRoute"),
    Refused(TRAFFIC, {"targetRefs.0.group": GONE}, "Required value"),
    Refused(TRAFFIC, {"targetRefs.0.name": GONE}, "Required value"),
    Refused(TRAFFIC, {"targetRefs": ROUTE * 17}, MANY),
    Refused(TRAFFIC, {"targetRefs": []}, "should have at least 1 items"),
    Refused(TRAFFIC, {"targetRefs": [*ROUTE, *GATEWAY]}, "all targets must have the same kind"),
    Refused("policy/port", {"targetRefs.0.sectionName": "web"}, most("sectionName", "port")),
    Refused("policy/port", {"targetRefs.0.port": 0}, "greater than or equal to 1"),
    Refused("policy/port", {"targetRefs.0.port": 65536}, "less than or equal to 65535"),
    Refused("policy/service", {"targetRefs.0.sectionName": "http"}, "sectionName of a Service is the number of a port, 1..65535"),
    Refused("policy/service", {"targetRefs.0.sectionName": "65536"}, "sectionName of a Service is the number of a port, 1..65535"),
    Refused("policy/pool", {"targetRefs.0.sectionName": "a"}, "an InferencePool has no sections"),
    Refused("policy/conditional", {"targetSelectors.0.matchLabels": {}}, "at least 1 properties"),
    Refused("policy/conditional", {"targetSelectors.0.matchLabels": GONE}, "Required value"),
    Refused("policy/early", {"traffic": GONE}, least("frontend", "traffic", "backend", "ai")),
    Refused("policy/ai", {"backend": {"ai": AI}}, "ai and backend.ai are the same: only one may be set"),
    Refused(FRONTEND, {"targetRefs": ROUTE}, "frontend may only target a Gateway"),
    *(
        Refused("policy/listener", {f"frontend.{name}": value}, "of frontend only accessLog, tracing, metrics may target a listener")
        for name, value in {
            "tcp": {"keepalive": {}}, "tls": {}, "http": {}, "networkAuthorization": RULE, "proxyProtocol": {}, "connect": {"mode": "Deny"},
        }.items()
    ),
    Refused("policy/port", {"traffic": {"timeouts": {"request": "1s"}}}, "port is for policies that have frontend alone"),
    Refused("policy/service", {"targetRefs": [{**SERVICE[0], "port": 80}]}, "port is for policies that have frontend alone"),
    Refused(TRAFFIC, {"targetRefs": BACKEND}, "traffic may only target Gateway, ListenerSet, HTTPRoute, GRPCRoute or InferencePool"),
    Refused(TRAFFIC, {"targetRefs": SERVICE}, "traffic may only target Gateway"),
    Refused("policy/early", {"targetRefs": ROUTE}, "phase PreRouting may only target Gateway or ListenerSet"),
    *(
        Refused("policy/early", {f"traffic.{name}": value}, "phase PreRouting allows extAuth, authorization, transformation, extProc")
        for name, value in {
            "csrf": {}, "timeouts": {"request": "1s"}, "retry": {}, "delay": {"duration": "'1s'"}, "hostRewrite": {"mode": "Auto"},
            "rateLimit": {"local": [{"requests": 1, "unit": "Hours"}]}, "directResponse": {"status": 200}, "buffer": {"request": {}},
            "headerModifiers": {"request": {}},
        }.items()
    ),
    Refused(CALL, {"targetRefs.0.sectionName": "a"}, "backend.mcp may not target a Service or a section of a GatewayBackend"),
    Refused("policy/mcp-login", {"targetRefs": SERVICE}, "backend.mcp may not target a Service or a section of a GatewayBackend"),
    Refused("policy/ai", {"targetRefs": SERVICE}, "backend.ai may not target a Service"),
    Refused(CALL, {"backend.mcp": GONE, "targetRefs": SERVICE}, "backend.ai may not target a Service"),
    Refused(
        "policy/mcp-login",
        {"targetRefs": ROUTE, "traffic": {"jwtAuthentication": {"providers": [{"issuer": "i", "jwks": {"inline": "{}"}}]}}},
        "traffic.jwtAuthentication and backend.mcp.authentication may not be set together",
    ),
    Refused(TRAFFIC, {"backend": {"tls": {}}}, "strategy needs traffic as the only section"),
    Refused(CALL, {"strategy": {"inheritance": "Default"}}, "strategy needs traffic as the only section"),
    Refused(TRAFFIC, {"strategy.inheritance": "override"}, "Unsupported value"),
]  # fmt: skip

TRAFFIC_CASES = [
    Refused(TRAFFIC, {"traffic": {}}, least(*TRAFFICS)),
    Refused(TRAFFIC, {"traffic.phase": "Early"}, "Unsupported value"),
    Refused(TRAFFIC, {"traffic.jwtAuthentication.mode": "Permissive"}, "mcp needs mode Strict"),
    Refused(TRAFFIC, {"traffic.jwtAuthentication.mode": "strict"}, "Unsupported value"),
    Refused(TRAFFIC, {"traffic.jwtAuthentication.providers": [{"issuer": "i", "jwks": {"inline": "{}"}}] * 2}, "mcp needs exactly one provider"),
    Refused(TRAFFIC, {"traffic.jwtAuthentication.providers": []}, "should have at least 1 items"),
    Refused(TRAFFIC, {"traffic.jwtAuthentication.providers.0.issuer": "i" * 257}, "may not be more than 256"),
    Refused(TRAFFIC, {"traffic.jwtAuthentication.providers.0.audiences": ["a"] * 65}, MANY),
    Refused(TRAFFIC, {"traffic.jwtAuthentication.providers.0.audiences": []}, "should have at least 1 items"),
    Refused(TRAFFIC, {"traffic.jwtAuthentication.providers.0.jwks": {"inline": "x"}}, "at least 2 chars long"),
    *one_of(TRAFFIC, "traffic.jwtAuthentication.providers.0.jwks", exactly("remote", "inline"), {"inline": "{}"}, "remote"),
    *one_of(TRAFFIC, "traffic.jwtAuthentication.providers.0.jwks.remote", ENDPOINT, {"backendRef": REF}, "url"),
    Refused(TRAFFIC, {"traffic.jwtAuthentication.providers.0.jwks.remote.jwksPath": "/k"}, "jwksPath must be set with backendRef, and not with url"),
    Refused(TRAFFIC, {"traffic.jwtAuthentication.providers.0.jwks.remote.cacheDuration": "299s"}, "must be at least 5m"),
    Refused(TRAFFIC, {"traffic.jwtAuthentication.providers.0.jwks.remote.cacheDuration": "1.5h"}, "should match"),
    Refused(TRAFFIC, {"traffic.jwtAuthentication.providers.0.jwks.remote.url": "https://me@idp.test/k"}, "should match"),
    Refused(TRAFFIC, {"traffic.jwtAuthentication.location": {}}, exactly("header", "queryParameter", "cookie", "expression")),
    Refused(TRAFFIC, {"traffic.jwtAuthentication.mcp.provider": "Nobody"}, "Unsupported value"),
    *one_of(
        TRAFFIC, "traffic.apiKeyAuthentication", exactly("secretRef", "secretSelector", "configMapSelector"),
        {"secretRef": SECRET}, "secretSelector",
    ),
    Refused(TRAFFIC, {"traffic.apiKeyAuthentication": {"secretRef": {"name": "a", "kind": "Vault"}}}, "group and kind must both be set, or neither of them"),
    Refused(TRAFFIC, {"traffic.apiKeyAuthentication": {"secretRef": {"name": "a", "group": "vault.test"}}}, "group and kind must both be set, or neither of them"),
    *one_of(TRAFFIC, "traffic.basicAuthentication", exactly("users", "secretRef"), {"secretRef": SECRET}, "users"),
    Refused(TRAFFIC, {"traffic.basicAuthentication.mode": "Permissive"}, "Unsupported value"),
    Refused(TRAFFIC, {"traffic.basicAuthentication.users": ["a:b"] * 257}, MANY),
    Refused(TRAFFIC, {"traffic.authorization.policy.matchExpressions": []}, "should have at least 1 items"),
    Refused(TRAFFIC, {"traffic.authorization.policy.matchExpressions": ["true"] * 257}, MANY),
    Refused(TRAFFIC, {"traffic.authorization.policy.matchExpressions": ["x" * 16385]}, "may not be more than 16384"),
    Refused(TRAFFIC, {"traffic.authorization.policy.matchExpressions": [""]}, "at least 1 chars long"),
    Refused(TRAFFIC, {"traffic.authorization.action": "Forbid"}, "Unsupported value"),
    Refused(TRAFFIC, {"traffic.cors.allowOrigins": ["*", "https://a.test"]}, "* stands alone"),
    Refused(TRAFFIC, {"traffic.cors.allowMethods": ["*", "GET"]}, "* stands alone"),
    Refused(TRAFFIC, {"traffic.cors.allowHeaders": ["*", "x"]}, "* stands alone"),
    Refused(TRAFFIC, {"traffic.cors.allowMethods": ["get"]}, "Unsupported value"),
    Refused(TRAFFIC, {"traffic.cors.allowOrigins": ["a.test"]}, "should match"),
    Refused(TRAFFIC, {"traffic.cors.allowOrigins": [f"https://{n}.test" for n in range(65)]}, MANY),
    Refused(TRAFFIC, {"traffic.cors.maxAge": 0}, "greater than or equal to 1"),
    Refused(TRAFFIC, {"traffic.csrf.additionalOrigins": []}, "should have at least 1 items"),
    Refused(TRAFFIC, {"traffic.csrf.additionalOrigins": [f"https://{n}.test" for n in range(17)]}, MANY),
    *one_of(TRAFFIC, "traffic.extAuth", ENDPOINT, {"url": "http://a.test"}, "backendRef"),
    *one_of(TRAFFIC, "traffic.extAuth", exactly("grpc", "http"), {"grpc": {}}, "http"),
    Refused(TRAFFIC, {"traffic.extAuth.backendRef.port": GONE}, "port is required for a Service"),
    Refused(TRAFFIC, {"traffic.extAuth": {"url": "http://a.test/x", "grpc": {}}}, "url may have a path with http only"),
    Refused(TRAFFIC, {"traffic.extAuth.forwardBody": {"maxSize": "1Ki"}, "traffic.extAuth.http.body": "'x'"}, "forwardBody may not be set together with http.body"),
    Refused(TRAFFIC, {"traffic.extAuth.cache.key": []}, "should have at least 1 items"),
    Refused(TRAFFIC, {"traffic.extAuth.cache.maxEntries": 0}, "greater than or equal to 1"),
    Refused(TRAFFIC, {"traffic.extAuth.failureMode": "Open"}, "Unsupported value"),
    Refused(TRAFFIC, {"traffic.extAuth.http.allowedRequestHeaders": ["a"] * 65}, MANY),
    *one_of(TRAFFIC, "traffic.extProc", ENDPOINT, {"backendRef": REF}, "url"),
    Refused(TRAFFIC, {"traffic.extProc.url": "http://proc.test/x"}, NO_PATH),
    Refused(TRAFFIC, {"traffic.extProc.processingOptions.requestBodyMode": "Streamed"}, "Unsupported value"),
    Refused(TRAFFIC, {"traffic.extProc.requestAttributes": {f"a{n}": "x" for n in range(65)}}, MANY),
    Refused(TRAFFIC, {"traffic.rateLimit": {}}, least("local", "global")),
    Refused(TRAFFIC, {"traffic.rateLimit.local.0.tokens": 1}, exactly("requests", "tokens")),
    Refused(TRAFFIC, {"traffic.rateLimit.local.0.requests": 0}, "greater than or equal to 1"),
    Refused(TRAFFIC, {"traffic.rateLimit.local.0.burst": -1}, "greater than or equal to 0"),
    Refused(TRAFFIC, {"traffic.rateLimit.local.0.unit": GONE}, "Required value"),
    Refused(TRAFFIC, {"traffic.rateLimit.local.0.unit": "Days"}, "Unsupported value"),
    Refused(TRAFFIC, {"traffic.rateLimit.local": [{"requests": 1, "unit": "Hours"}] * 17}, MANY),
    Refused(TRAFFIC, {"traffic.rateLimit.global.url": "http://a.test"}, ENDPOINT),
    Refused(TRAFFIC, {"traffic.rateLimit.global.descriptors": []}, "should have at least 1 items"),
    Refused(TRAFFIC, {"traffic.rateLimit.global.descriptors.0.entries.0.name": "n" * 65}, "may not be more than 64"),
    Refused(TRAFFIC, {"traffic.transformation": {}}, least("request", "response")),
    Refused(TRAFFIC, {"traffic.transformation.request": {}}, least("set", "add", "remove", "body", "metadata")),
    Refused(TRAFFIC, {"traffic.transformation.request.set.0.name": ":path2"}, "should match"),
    Refused(TRAFFIC, {"traffic.transformation.request.set": [{"name": "a", "value": "'1'"}] * 2}, "Duplicate value"),
    Refused(TRAFFIC, {"traffic.transformation.request.add": [{"name": f"a{n}", "value": "'1'"} for n in range(17)]}, MANY),
    Refused(TRAFFIC, {"traffic.headerModifiers": {}}, least("request", "response")),
    Refused(TRAFFIC, {"traffic.headerModifiers.response.add.0.value": ""}, "at least 1 chars long"),
    Refused(TRAFFIC, {"traffic.headerModifiers.response.remove": ["x y"]}, "should match"),
    Refused(TRAFFIC, {"traffic.hostRewrite.mode": "Off"}, "Unsupported value"),
    Refused(TRAFFIC, {"traffic.timeouts.request": "0ms"}, "must be at least 1ms"),
    Refused(TRAFFIC, {"traffic.timeouts.request": "123456s"}, "should match"),
    Refused(TRAFFIC, {"traffic.retry.attempts": 0}, "greater than or equal to 1"),
    Refused(TRAFFIC, {"traffic.retry.codes": [399]}, "greater than or equal to 400"),
    Refused(TRAFFIC, {"traffic.retry.codes": [600]}, "less than or equal to 599"),
    Refused(TRAFFIC, {"traffic.delay": {}}, "Required value"),
    Refused(TRAFFIC, {"traffic.buffer": {}}, least("request", "response")),
    *(
        Refused(TRAFFIC, {"traffic.buffer.request.maxBytes": size}, "must be at least 1 and at most 4294967295 bytes")
        for size in (0, 2**32, "0", "4Gi")
    ),
    Refused(TRAFFIC, {"traffic.buffer.request.maxBytes": "1.5Mi"}, "should match"),
    Refused(TRAFFIC, {"traffic.directResponse.status": GONE}, "status is required"),
    Refused(TRAFFIC, {"traffic.directResponse.status": 199}, "greater than or equal to 200"),
    Refused(TRAFFIC, {"traffic.directResponse.status": 600}, "less than or equal to 599"),
    Refused(TRAFFIC, {"traffic.directResponse.body": "x" * 4097}, "may not be more than 4096"),
    Refused(TRAFFIC, {"traffic.directResponse.bodyExpression": "'x'"}, most("body", "bodyExpression")),
    Refused(TRAFFIC, {"traffic.directResponse.headers": []}, "should have at least 1 items"),
    Refused("policy/conditional", {"traffic.directResponse.status": 200}, "conditional may not be set together with other fields"),
    Refused("policy/conditional", {"traffic.extAuth.url": "http://a.test"}, "conditional may not be set together with other fields"),
    Refused("policy/conditional", {"traffic.directResponse.conditional.0.condition": GONE}, "at most one entry may have no condition, and it must be the last one"),
    Refused("policy/conditional", {"traffic.directResponse.conditional": [{"policy": {"status": 200}}, {"condition": "true", "policy": {"status": 200}}]}, "at most one entry may have no condition, and it must be the last one"),
    Refused("policy/conditional", {"traffic.directResponse.conditional.0.policy.status": GONE}, "Required value"),
    Refused("policy/conditional", {"traffic.directResponse.conditional.1.policy.body": "x"}, most("body", "bodyExpression")),
    Refused("policy/conditional", {"traffic.directResponse.conditional": []}, "should have at least 1 items"),
    Refused("policy/conditional", {"traffic.directResponse.conditional": [{"condition": "true", "policy": {"status": 200}}] * 17}, MANY),
]  # fmt: skip

FRONTEND_CASES = [
    Refused(FRONTEND, {"frontend": {}}, least(*FRONTENDS)),
    Refused(FRONTEND, {"frontend.tcp.keepalive.time": "999ms"}, "must be at least 1s"),
    Refused(FRONTEND, {"frontend.tcp.keepalive.retries": 65}, "less than or equal to 64"),
    Refused(FRONTEND, {"frontend.tls.handshakeTimeout": "99ms"}, "must be at least 100ms"),
    Refused(FRONTEND, {"frontend.tls.minProtocolVersion": "1.3", "frontend.tls.maxProtocolVersion": "1.2"}, "minProtocolVersion must not be later than maxProtocolVersion"),
    Refused(FRONTEND, {"frontend.tls.minProtocolVersion": "1.1"}, "Unsupported value"),
    Refused(FRONTEND, {"frontend.tls.cipherSuites": ["RC4"]}, "Unsupported value"),
    Refused(FRONTEND, {"frontend.tls.alpnProtocols": ["x"] * 17}, MANY),
    Refused(FRONTEND, {"frontend.http.http1MaxHeaders": 4097}, "less than or equal to 4096"),
    Refused(FRONTEND, {"frontend.http.http2FrameSize": 16383}, "greater than or equal to 16384"),
    Refused(FRONTEND, {"frontend.http.http2FrameSize": 1677216}, "less than or equal to 1677215"),
    Refused(FRONTEND, {"frontend.http.http1IdleTimeout": "10ms"}, "must be at least 1s"),
    Refused(FRONTEND, {"frontend.http.http1HeaderCase": "Upper"}, "Unsupported value"),
    Refused(FRONTEND, {"frontend.proxyProtocol.version": "V3"}, "Unsupported value"),
    Refused(FRONTEND, {"frontend.connect": {}}, "Required value"),
    Refused(FRONTEND, {"frontend.accessLog": {}}, least("filter", "attributes", "otlp")),
    Refused(FRONTEND, {"frontend.accessLog.attributes": {}}, least("add", "remove")),
    Refused(FRONTEND, {"frontend.accessLog.attributes.remove": [f"a{n}" for n in range(33)]}, MANY),
    Refused(FRONTEND, {"frontend.accessLog.otlp.backendRef": REF}, ENDPOINT),
    Refused(FRONTEND, {"frontend.accessLog.otlp.protocol": "GRPC"}, "url may have a path with protocol HTTP only"),
    Refused(FRONTEND, {"frontend.tracing.path": "/v1/traces"}, "path needs protocol HTTP"),
    Refused(FRONTEND, {"frontend.accessLog.otlp.path": "v1/logs"}, "should match"),
    Refused(FRONTEND, {"frontend.metrics.attributes.add": []}, "should have at least 1 items"),
    Refused(FRONTEND, {"frontend.metrics.attributes.add": [{"name": f"a{n}", "expression": "x"} for n in range(17)]}, MANY),
]  # fmt: skip

_A = "backend.auth."
_X = "backend.auth.oauthTokenExchange"
CALL_CASES = [
    Refused(CALL, {"backend": {}}, least(*CALLS)),
    Refused(CALL, {"backend.http": {}}, least("version", "requestTimeout")),
    Refused(CALL, {"backend.http.version": "HTTP3"}, "Unsupported value"),
    Refused(CALL, {"backend.http.requestTimeout": "0s"}, "must be at least 1ms"),
    Refused(CALL, {"backend.tcp.connectTimeout": "10ms"}, "must be at least 100ms"),
    Refused(CALL, {"backend.tls.insecureSkipVerify": "Hostname"}, most("insecureSkipVerify", "verifySubjectAltNames")),
    Refused(CALL, {"backend.tls": {"insecureSkipVerify": "All", "caCertificateRefs": [{"name": "ca"}]}}, "insecureSkipVerify All may not be set together with caCertificateRefs"),
    *(
        Refused(CALL, {"backend.tls": {"certificateSource": "SPIFFE", **extra}}, "certificateSource SPIFFE may not be set together with")
        for extra in ({"mtlsCertificateRef": [SECRET]}, {"caCertificateRefs": [{"name": "ca"}]}, {"insecureSkipVerify": "All"})
    ),
    Refused(CALL, {"backend.tls": {"mtlsCertificateRef": [SECRET, SECRET]}}, MANY),
    Refused(CALL, {"backend.tls": {"caCertificateRefs": [{"name": "a", "kind": "Pod"}]}}, "Unsupported value"),
    Refused(CALL, {"backend.tls": {**TLS, "sni": "API.test"}}, "should match"),
    Refused(CALL, {"backend.tls": {**TLS, "sni": "a" * 254}}, "may not be more than 253"),
    Refused(CALL, {"backend.tls": {**TLS, "keyExchangeGroups": ["P-224"]}}, "Unsupported value"),
    Refused(CALL, {"backend.tls": {**TLS, "verifySubjectAltNames": ["a"] * 17}}, MANY),
    *one_of(CALL, "backend.tunnel", ENDPOINT, {"backendRef": REF}, "url"),
    Refused(CALL, {"backend.tunnel.url": "https://proxy.test/x"}, NO_PATH),
    Refused(CALL, {"backend.tunnel.url": "socks5://proxy.test"}, "should match"),
    Refused(CALL, {"backend.tunnel.url": "http://" + "a" * 1018}, "may not be more than 1024"),
    Refused(CALL, {"backend.auth.key": "x"}, most("key", "secretRef", "passthrough", "gcp", "aws", "azure", "jwtSign", "oauthTokenExchange", "crossAppAccess")),
    Refused(CALL, {"backend.auth.secretRef": GONE}, "location needs key, secretRef or passthrough"),
    Refused(CALL, {"backend.auth.location": {}}, exactly("header", "queryParameter", "cookie")),
    Refused(CALL, {"backend.auth.credentials": []}, "should have at least 1 items"),
    Refused(CALL, {"backend.auth.secretRef.key": ""}, "at least 1 chars long"),
    Refused("policy/clouds", {_A + "aws.secretRef": SECRET}, most("secretRef", "assumeRole")),
    Refused("policy/clouds", {_A + "aws.assumeRole.sessionNameExpression": "x"}, most("sessionName", "sessionNameExpression")),
    Refused("policy/clouds", {_A + "aws.assumeRole.sessionName": "x"}, "at least 2 chars long"),
    *one_of("policy/clouds", _A + "aws.assumeRole.tags.0", exactly("value", "expression"), {"expression": "x"}, "value"),
    Refused("policy/clouds", {_A + "aws.assumeRole.tags": [{"key": f"k{n}", "value": "x"} for n in range(51)]}, MANY),
    Refused("policy/gcp", {_A + "gcp.type": "AccessToken"}, "audience needs type IdToken"),
    Refused("policy/azure", {_A + "azure.secretRef": SECRET}, most("secretRef", "managedIdentity", "workloadIdentity")),
    Refused("policy/azure", {_A + "azure.managedIdentity.objectId": "x"}, most("clientId", "objectId", "resourceId")),
    *one_of("policy/exchange", _X, ENDPOINT, {"backendRef": REF}, "url"),
    Refused("policy/exchange", {_X + ".path": "/x"}, "path needs backendRef"),
    Refused("policy/exchange", {_X + ".grantType": "JwtBearer", _X + ".requestedTokenType": GONE}, "grantType JwtBearer may not be set together with actorToken"),
    Refused("policy/exchange", {_X + ".grantType": "JwtBearer", _X + ".actorToken": GONE}, "grantType JwtBearer may not be set together with requestedTokenType"),
    Refused("policy/exchange", {_X + ".requestedTokenType": "IdJag"}, "requestedTokenType IdJag is what crossAppAccess is for"),
    Refused("policy/exchange", {_X + ".actorToken.tokenType": "AccessToken"}, "mayAct Required needs tokenType Jwt"),
    Refused("policy/exchange", {_X + ".audiences": ["a"] * 65}, MANY),
    Refused("policy/exchange", {_X + ".clientAuth.secretRef": GONE}, "secretRef is required with method ClientSecretBasic"),
    Refused("policy/exchange", {_X + ".clientAuth.method": "PrivateKeyJwt"}, "privateKeyJwt must be set with method PrivateKeyJwt, and with no other"),
    Refused("policy/cross-app", {_A + "crossAppAccess.identityProvider.clientAuth.secretRef": SECRET}, "secretRef may not be set with method PrivateKeyJwt"),
    Refused("policy/cross-app", {_A + "crossAppAccess.identityProvider.clientAuth.privateKeyJwt.certificateHeader": "x5c"}, "certificateHeader needs certificateRef"),
    Refused("policy/cross-app", {_A + "crossAppAccess.identityProvider.clientAuth.method": "ClientSecretPost"}, "privateKeyJwt must be set with method PrivateKeyJwt, and with no other"),
    Refused("policy/cross-app", {_A + "crossAppAccess.resourceAuthorizationServer.path": "token"}, "should match"),
    Refused("policy/cross-app", {_A + "crossAppAccess.resourceAuthorizationServer.clientAuth": GONE}, "Required value"),
    Refused("policy/cross-app", {_A + "crossAppAccess.audience": GONE}, "Required value"),
    *(
        Refused("policy/sign", {_A + f"jwtSign.claims.{claim}": 1}, "iat, exp and nbf are set by the gateway")
        for claim in ("iat", "exp", "nbf")
    ),
    Refused("policy/sign", {_A + "jwtSign": {**JWT_SIGN, "alg": "HS256"}}, "Unsupported value"),
    Refused("policy/sign", {_A + "jwtSign": {**JWT_SIGN, "ttl": "500ms"}}, "must be at least 1s"),
    Refused("policy/sign", {_A + "jwtSign.signingKeyRef": GONE}, "Required value"),
    Refused(CALL, {"backend.health": {}}, least("unhealthyCondition", "eviction")),
    Refused(CALL, {"backend.health.eviction.healthThreshold": 101}, "less than or equal to 100"),
    Refused(CALL, {"backend.health.eviction.duration": "1ms"}, "must be at least 1s"),
    Refused(CALL, {"backend.mcp": {}}, least("authorization", "authentication", "guardrails")),
    *(
        Refused(CALL, {"backend.mcp.guardrails.processors.0.methods": {method: "Full"}}, "a method has at most one *, at its start or its end")
        for method in ("tools/*/x", "*/*", "*x*")
    ),
    Refused(CALL, {"backend.mcp.guardrails.processors.0.methods": {}}, "at least 1 properties"),
    Refused(CALL, {"backend.mcp.guardrails.processors.0.methods": {"*": "Both"}}, "Unsupported value"),
    Refused(CALL, {"backend.mcp.guardrails.processors": []}, "should have at least 1 items"),
    Refused(CALL, {"backend.mcp.guardrails.processors.0.remote.url": "http://a.test/x"}, NO_PATH),
    Refused("policy/mcp-login", {"backend.mcp.authentication.jwks.jwksPath": GONE}, "jwksPath must be set with backendRef, and not with url"),
    Refused("policy/mcp-login", {"backend.mcp.authentication.clientSecretRef": SECRET}, "clientSecretRef needs clientId"),
    Refused(CALL, {"backend.ai": {}}, least(*AIS)),
    Refused(CALL, {"backend.ai.promptEnrichment": AI["prompt"]}, most("prompt", "promptEnrichment")),
    Refused(CALL, {"backend.ai.prompt": {}}, least("prepend", "append")),
    Refused(CALL, {"backend.ai.routes": {"/x": "Chat"}}, "Unsupported value"),
    Refused(CALL, {"backend.ai.defaults": [{"field": "a", "value": 1}] * 2}, "Duplicate value"),
    Refused(CALL, {"backend.ai.defaults.0.value": GONE}, "Required value"),
    Refused(CALL, {"backend.ai.promptCaching.minTokens": -1}, "greater than or equal to 0"),
    Refused(CALL, {"backend.ai.promptGuard": {"streaming": "Enabled"}}, least("request", "response")),
    Refused(CALL, {"backend.ai.promptGuard.request.0": {"webhook": {"url": "http://a.test"}, "regex": {"builtins": ["Ssn"]}}}, exactly(*RESPONSE_GUARDS, "openAIModeration")),
    Refused(CALL, {"backend.ai.promptGuard.response.0": {}}, exactly(*RESPONSE_GUARDS)),
    Refused(CALL, {"backend.ai.promptGuard.request.1.scope": ["ToolOutput"]}, "a scope other than SystemPrompt and Messages needs regex or bedrockGuardrails"),
    Refused(CALL, {"backend.ai.promptGuard.request.0.scope": []}, "should have at least 1 items"),
    Refused(CALL, {"backend.ai.promptGuard.request": [{"regex": {"builtins": ["Ssn"]}}] * 9}, MANY),
    Refused(CALL, {"backend.ai.promptGuard.request.0.regex": {}}, "must validate at least one schema (anyOf)"),
    Refused(CALL, {"backend.ai.promptGuard.request.0.regex.builtins": ["Iban"]}, "Unsupported value"),
    Refused(CALL, {"backend.ai.promptGuard.request.0.regex.matches": [{"name": "a"}]}, "Required value"),
    Refused(CALL, {"backend.ai.promptGuard.request.0.regex.response": {"statusCode": 199}}, "greater than or equal to 200"),
    Refused(CALL, {"backend.ai.promptGuard.request.1.webhook.url": "http://a.test"}, ENDPOINT),
    Refused(CALL, {"backend.ai.promptGuard.request.2.openAIModeration.policies": {}}, least(*SIMPLE)),
    Refused(CALL, {"backend.ai.promptGuard.response.0.bedrockGuardrails.region": GONE}, "Required value"),
]  # fmt: skip

BACKEND_CASES = [
    *one_of("backend/static", "", exactly("ai", "static", "dynamicForwardProxy", "mcp", "aws", "a2a"), {"dynamicForwardProxy": {}}, "static"),
    *one_of("backend/static", "static", exactly("host", "unixPath"), {"unixPath": "/x"}, "host"),
    Refused("backend/static", {"static.port": GONE}, "host and port must both be set, or neither of them"),
    Refused("backend/unix", {"static.unixPath": "shop.sock"}, "should match"),
    Refused("backend/a2a", {"a2a.port": GONE}, "Required value"),
    Refused("backend/a2a", {"a2a.port": 65536}, "less than or equal to 65535"),
    Refused("backend/aws", {"aws": {}}, exactly("agentCore")),
    Refused("backend/static", {"policies": {"ai": {"prompt": AI["prompt"]}}}, "policies.ai needs an ai backend"),
    Refused("backend/static", {"policies": {"mcp": {"authorization": RULE}}}, "policies.mcp needs an mcp backend"),
    *one_of("backend/ai", "ai", exactly("provider", "groups"), {"groups": [{"providers": [{"name": "a", "gemini": {}}]}]}, "provider"),
    *one_of("backend/bedrock", "ai.provider", exactly(*PROVIDERS), {"gemini": {}}, "bedrock"),
    Refused("backend/ai", {"ai.provider.port": GONE}, "host and port must both be set, or neither of them"),
    Refused("backend/ai", {"ai.provider.path": "/x"}, most("path", "pathPrefix")),
    Refused("backend/ai", {"ai.provider.host": GONE, "ai.provider.port": GONE}, "pathPrefix needs host"),
    Refused("backend/bedrock", {"ai.provider.host": "a", "ai.provider.port": 1, "ai.provider.pathPrefix": "/x"}, "pathPrefix is for openai and anthropic only"),
    Refused("backend/bedrock", {"ai.provider.bedrock.region": "EU"}, "should match"),
    Refused("backend/bedrock", {"ai.provider.bedrock.region": "a" * 64}, "may not be more than 63"),
    Refused("backend/bedrock", {"ai.provider.bedrock.guardrail.version": GONE}, "Required value"),
    *one_of("backend/custom", "ai.provider", "custom needs exactly one of host and custom.backendRef", {"host": "a", "port": 1}, "custom.backendRef"),
    Refused("backend/custom", {"ai.provider.custom.backendRef.kind": "GatewayBackend"}, "backendRef is a Service or an InferencePool"),
    Refused("backend/custom", {"ai.provider.custom.backendRef.port": GONE}, "port is required for a Service"),
    Refused("backend/custom", {"ai.provider.custom.formats": []}, "should have at least 1 items"),
    Refused("backend/custom", {"ai.provider.custom.formats.0.type": "TextCompletions"}, "Unsupported value"),
    Refused("backend/custom", {"ai.provider.custom.formats.0.path": "c"}, "should match"),
    Refused("backend/custom", {"ai.provider.custom.formats": [{"type": t} for t in ("Completions", "Messages", "Responses", "Embeddings", "Rerank", "Realtime", "AnthropicTokenCount")]}, MANY),
    Refused("backend/groups", {"ai.groups": [{"providers": [{"name": f"a{n}", "gemini": {}}]} for n in range(9)]}, MANY),
    Refused("backend/groups", {"ai.groups.1.providers.0.name": "a"}, "names of providers differ across groups"),
    Refused("backend/groups", {"ai.groups.0.providers.1.name": "a"}, "Duplicate value"),
    Refused("backend/groups", {"ai.groups.0.providers.0.policies": {}}, least(*(name for name in CALLS if name != "mcp"))),
    Refused("backend/mcp", {"mcp.targets": []}, "should have at least 1 items"),
    Refused("backend/mcp", {"mcp.targets": [{"name": f"t{n}", "static": {"host": "a", "port": 1}} for n in range(129)]}, MANY),
    Refused("backend/mcp", {"mcp.targets.1.name": "files"}, "Duplicate value"),
    Refused("backend/mcp", {"mcp.targets.1.name": "Files!"}, "should match"),
    *one_of("backend/mcp", "mcp.targets.2", exactly("selector", "static"), {"static": {"host": "a", "port": 1}}, "selector"),
    Refused("backend/mcp", {"mcp.targets.2.selector": {}}, least("namespaces", "services")),
    Refused("backend/mcp", {"mcp.targets.2.selector.namespaces.matchExpressions.0.operator": "In"}, "values are for In and NotIn, which need them"),
    *one_of("backend/mcp", "mcp.targets.1.static", exactly("host", "backendRef"), {"host": "a"}, "backendRef"),
    Refused("backend/mcp", {"mcp.targets.1.static.policies": {"tls": {}}}, "policies may not be set together with backendRef"),
    Refused("backend/mcp", {"mcp.targets.0.static.port": GONE}, "Required value"),
    Refused("backend/mcp", {"mcp.targets.0.static.protocol": "STDIO"}, "Unsupported value"),
    Refused("backend/mcp", {"mcp.sessionRouting": "Sticky"}, "Unsupported value"),
    Refused("backend/mcp", {"mcp.prefixMode": "always"}, "Unsupported value"),
]  # fmt: skip

_SPECIAL = {"Azure": "azure", "VertexAI": "vertexai", "Bedrock": "bedrock", "Custom": "custom"}
_OWN = "must not name localhost, a loopback or a link-local address"
MODEL_CASES = [
    *one_of("model/openai", "", exactly("provider", "virtualModel"), {"virtualModel": {"weighted": {"targets": [{"modelRef": "a"}]}}}, "provider"),
    Refused("model/openai", {"parentRefs": []}, "should have at least 1 items"),
    Refused("model/openai", {"parentRefs": GONE}, "Required value"),
    Refused("model/openai", {"parentRefs": [{"name": "a"}] * 17}, MANY),
    Refused("model/openai", {"parentRefs.0.kind": "TCPRoute"}, "a parent is one of Gateway, ListenerSet, HTTPRoute"),
    Refused("model/openai", {"provider": "openai"}, "Unsupported value"),
    *(
        Refused("model/openai", {"provider": provider}, f"{field} must be set with provider {provider}, and with no other")
        for provider, field in _SPECIAL.items()
    ),
    Refused("model/openai", {"bedrock": {}}, "bedrock must be set with provider Bedrock, and with no other"),
    *(
        Refused("model/openai", {"match.model": name}, "should match")
        for name in ("a*b", "*a*", "**")
    ),
    Refused("model/openai", {"match.model": "m" * 1025}, "may not be more than 1024"),
    Refused("model/openai", {"visibility": "Private"}, "Unsupported value"),
    Refused("model/openai", {"policies": {}}, least("auth", "authorization", "headers", "health", "promptGuard", "tls", "tunnel", "transformations", "finalTransformations")),
    Refused("model/own", {"baseURL": GONE}, "provider Ollama needs baseURL"),
    Refused("model/weighted", {"baseURL": "https://a.test"}, "baseURL needs provider"),
    Refused("model/weighted", {"model": "x"}, "model needs provider"),
    *(
        Refused("model/own", {"baseURL": url}, _OWN)
        for url in (
            "http://localhost:11434", "http://LOCALHOST/v1", "https://a.localhost", "http://127.0.0.1:1", "http://127.8.8.8", "http://127.1",
            "http://0.0.0.0", "http://169.254.169.254/latest", "http://[::1]:80", "http://[fe80::1]/", "http://[::ffff:127.0.0.1]", "http://localhost./",
        )
    ),
    Refused("model/own", {"baseURL": "ftp://a.test"}, "should match"),
    Refused("model/own", {"baseURL": "https://a.test/?q=1"}, "should match"),
    Refused("model/own", {"baseURL": "https://me@a.test/"}, "should match"),
    Refused("model/weighted", {"match.model": "b*"}, "a virtual model has an exact name"),
    Refused("model/weighted", {"visibility": "Internal"}, "a virtual model is public"),
    Refused("model/weighted", {"policies": {"tls": {}}}, "a virtual model has no policies"),
    *one_of("model/weighted", "virtualModel", exactly("weighted", "failover", "conditional"), {"failover": {"targets": [{"modelRef": "a", "priority": 1}]}}, "weighted"),
    Refused("model/weighted", {"virtualModel.weighted.targets.0.weight": 0}, "greater than or equal to 1"),
    Refused("model/weighted", {"virtualModel.weighted.targets.0.weight": 1000001}, "less than or equal to 1000000"),
    Refused("model/weighted", {"virtualModel.weighted.targets": []}, "should have at least 1 items"),
    Refused("model/failover", {"virtualModel.failover.targets.0.priority": 1000001}, "less than or equal to 1000000"),
    Refused("model/failover", {"virtualModel.failover.targets": [{"modelRef": "a", "priority": 1}] * 65}, MANY),
    Refused("model/conditional", {"virtualModel.conditional.targets.0.when": GONE}, "at most one target may have no when, and it must be the last one"),
    Refused("model/conditional", {"virtualModel.conditional.targets.1.modelRef": GONE}, "Required value"),
]  # fmt: skip

PARAMETERS_CASES = [
    Refused("parameters/all", {"workload.kind": "StatefulSet"}, "Unsupported value"),
    Refused("parameters/all", {"workload.kind": "DaemonSet", "horizontalPodAutoscaler": GONE}, "deployment may not be set with workload.kind DaemonSet"),
    Refused("parameters/all", {"workload.kind": "DaemonSet", "deployment": GONE}, "horizontalPodAutoscaler may not be set with workload.kind DaemonSet"),
    Refused("parameters/daemon", {"workload": GONE}, "daemonSet needs workload.kind DaemonSet"),
    Refused("parameters/all", {"logging": {}}, least("level", "format")),
    Refused("parameters/all", {"logging.format": "xml"}, "Unsupported value"),
    Refused("parameters/all", {"shutdown.min": 31}, "min (10 if unset) must not be greater than max (60 if unset)"),
    Refused("parameters/all", {"shutdown": {"max": 5}}, "min (10 if unset) must not be greater than max (60 if unset)"),
    Refused("parameters/all", {"shutdown.max": 31536001}, "less than or equal to 31536000"),
    Refused("parameters/all", {"image.pullPolicy": "Sometimes"}, "Unsupported value"),
    Refused("parameters/all", {"image.digest": "latest"}, "should match"),
    Refused("parameters/all", {"image.tag": "-x"}, "should match"),
    Refused("parameters/all", {"env.0.valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}, most("value", "valueFrom")),
    Refused("parameters/all", {"env.1.valueFrom": {}}, exactly("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef")),
    Refused("parameters/all", {"env.1.name": "A"}, "Duplicate value"),
    Refused("parameters/all", {"resources.limits.cpu": "many"}, "should match"),
    Refused("parameters/all", {"spiffe.source.hostPath": {"path": "/x"}}, exactly("csi", "hostPath")),
    Refused("parameters/all", {"modelCatalog.sources": []}, "should have at least 1 items"),
    Refused("parameters/all", {"deployment": {}}, least("metadata", "spec")),
]  # fmt: skip

REFUSALS = [
    *TARGETS, *TRAFFIC_CASES, *FRONTEND_CASES, *CALL_CASES, *BACKEND_CASES, *MODEL_CASES, *PARAMETERS_CASES,
]  # fmt: skip
