"""For each field of the file a small configuration that has it, made from the tables of the file's shape.

A chain leads from the root to a field: `("Headgate", "routes"), ("AttachedRoute", "policies"), ...`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from headgate.config.shape.root import ROOT
from headgate.config.shape.vocabulary import (
    Anything,
    Case,
    ListOf,
    MapOf,
    Object,
    Ref,
    Scalar,
    Shape,
    Union,
    WordChoice,
)

Step = tuple[str, str]
Chain = tuple[Step, ...]

_SCALARS: Final[dict[str, Any]] = {
    "String": "abc", "HiddenText": "hidden", "SecretText": "sk-1", "SessionKey": "ab" * 32, "Duration": "5s",
    "Interval": "1s", "Expression": "request.path == '/a'", "HeaderName": "x-a", "HeaderMatchName": "x-a",
    "HeaderValue": "v", "ModifiedHeader": "x-a", "Hostname": "a.test", "Regex": "/a.*", "HostPort": "127.0.0.1:9000",
    "DestinationHost": "a.test", "Network": "10.0.0.0/8", "NameServer": "10.0.0.53", "KeyOrFile": "key.pem",
    "HostUrl": "http://a.test:90", "GrpcMethod": "/a.v1.B/C", "Url": "http://a.test/v1", "Origin": "https://a.test",
    "Path": "/a", "UpstreamPath": "/v2", "Method": "GET", "ModelName": "m", "TextOrInteger": 2, "Sampling": 0.5,
    "Null": None, "Bool": True, "Number": 0.5, "ByteSize": 4096, "Port": 8080, "RetryPercent": 20,
    "Http2ConnectionWindow": 70_000, "Http2Frame": 16_384, "Uint8": 104,
}  # fmt: skip
JWKS: Final = json.dumps(
    {
        "keys": [
            {
                "kty": "EC", "crv": "P-256", "kid": "a", "use": "sig", "alg": "ES256",
                "x": "MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4", "y": "4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM",
            }
        ]
    }
)  # fmt: skip
OPENAPI: Final = {"openapi": "3.0.0", "info": {"title": "a", "version": "1"}, "paths": {}}
_KEY: Final = {"file": "key.pem"}
_SERVICE: Final = "shop/cart.shop.svc.cluster.local"
_CREDENTIAL: Final = json.dumps(
    {"type": "authorized_user", "client_id": "a", "client_secret": "b", "refresh_token": "c"}
)
# By object and field, where the kind of value is not enough.
VALUES: Final[dict[str, Any]] = {
    "ServiceReference.name": _SERVICE, "ServiceReference.port": 80,
    "BackendTls.cert": "cert.pem", "BackendTls.key": "key.pem", "BackendTls.root": "ca.pem", "BackendTls.alpn": ["h2"],
    "ServerTls.cert": "cert.pem", "ServerTls.key": "key.pem", "ServerTls.root": "ca.pem",
    "ServerPair.cert": "other.pem", "ServerPair.key": "other-key.pem", "ModerationGuard.policies": {"backendAuth": {"key": "k"}},
    "ServerTls.cipherSuites": ["TLS13_AES_128_GCM_SHA256"], "ServerTls.keyExchangeGroups": ["X25519"],
    **dict.fromkeys(("ServerTls.minTLSVersion", "ServerTls.minTlsVersion", "FrontendTls.minVersion"), "TLS_V1_2"),
    **dict.fromkeys(("ServerTls.maxTLSVersion", "ServerTls.maxTlsVersion", "FrontendTls.maxVersion"), "TLS_V1_3"),
    "FrontendTls.cipherSuites": ["TLS13_AES_128_GCM_SHA256"], "FrontendTls.keyExchangeGroups": ["X25519"],
    "FrontendTls.alpn": [[104, 50]],
    "JwtSign.signingKey": _KEY, "JwtSign.alg": "ES256", "PrivateKeyJwt.signingKey": _KEY, "PrivateKeyJwt.alg": "ES256",
    "PrivateKeyJwt.certificate": {"file": "cert.pem"}, "PrivateKeyJwt.method": "privateKeyJwt",
    "GcpIdToken.credential": _CREDENTIAL, "GcpAccessToken.credential": _CREDENTIAL,
    "AwsAssumeRole.roleArn": "arn:aws:iam::123456789012:role/a",
    "AgentCore.agentRuntimeArn": "arn:aws:bedrock-agentcore:eu-west-1:123456789012:runtime/agent-AbCdEf1234",
    **dict.fromkeys(("OAuthTokenExchange.path", "CrossAppEndpoint.path", "OtlpLog.path", "Tracing.path"), "/a"),
    **dict.fromkeys(("McpHostPortPath.path", "OpenApiHostPortPath.path", "McpBackendReference.path"), "/a"),
    **dict.fromkeys(("OpenApiBackend.path",), "/a"),
    **dict.fromkeys(("McpHostPortPath.host", "OpenApiHostPortPath.host"), "a.test"),
    **dict.fromkeys(("McpHost.host", "OpenApiHost.host"), "a.test:80"),
    **{f"{name}.schema": OPENAPI for name in ("OpenApiBackend", "OpenApiHost", "OpenApiHostPortPath")},
    "JwtProvider.jwks": JWKS, "JwtSingle.jwks": JWKS, "McpAuthentication.jwks": JWKS,
    "McpAuthentication.redirectUris": ["https://a.test/x"], "McpAuthentication.issuer": "https://idp.test", "Oidc.issuer": "https://idp.test", "Oidc.redirectURI": "https://a.test/x",
    "JwtOptions.requiredClaims": ["exp"], "ApiKey.keyHash": f"sha256:{'ab' * 32}",
    "BasicAuth.htpasswd": "ada:{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=",
    "Retry.codes": [503], "RequestRedirect.status": 301, "RequestRedirect.scheme": "https",
    "ExtAuthz.failureMode": "allow", "ExtAuthzWithCondition.failureMode": "allow", "Csrf.additionalOrigins": ["https://a.test"],
    "AiPolicy.routes": {"/x": "messages"}, "Eviction.consecutiveFailures": 3, "HeaderMatch.value": {"exact": "v"},
    "Bind.port": 8081, "Gateway.port": 8082, "Cors.maxAge": "5s", "Cors.allowOrigins": ["https://a.test"],
    "ResourceName.namespace": "default", "GatewayTarget.gatewayName": "default", "GatewayTarget.gatewayNamespace": "default",
    "GatewayTarget.listenerName": "default", "GatewayTarget.port": 8080, "RouteTarget.namespace": "default",
    "BackendTargetName.namespace": "", "ServiceTargetName.namespace": "shop",
    "ServiceTargetName.hostname": "cart.shop.svc.cluster.local", "ServiceTargetName.port": 80,
    "TargetedPolicy.policy": {"csrf": {}}, "AttachedRoute.gateways": "default", "Passthrough.location": {"header": {"name": "x-a"}},
    **dict.fromkeys(("Transform.replace", "Transform.body"), "request.path"),
    **{f"Transform.{name}": {"x-a": "request.path"} for name in ("add", "set", "metadata")},
    **{f"{name}.add": {"a.b": "request.path"} for name in ("AccessLog", "OtlpLogFields", "LogDatabase")},
    "AwsAssumeRole.tags": [{"key": "a", "value": "b"}], "DenyWithStatus.denyWithStatus": 401,
    "FrontendPolicies.networkAuthorization": {"rules": [{"deny": "source.address == '10.0.0.1'"}]},
    "AttachedTcpRoute.gateways": "streams", "Mcp.gateways": "default", "Mcp.port": 8083,
    "DiscoveredService.ports": {"80": 8080}, "DiscoveredService.appProtocols": {"80": "http"},
    "ServiceEndpoint.workloadUid": "cart-0", "ServiceEndpoint.port": {"80": 8080}, "RouteBackend.internal": 8090,
    "NamedBackend.internal": 8090, "DiscoveredService.endpoints": {"a": {"workloadUid": "cart-0"}},
    "Cors.allowMethods": ["GET"], "AttachedPolicies.urlRewrite": {"authority": "none"}, "UrlRewrite.authority": {"full": "a.test"}, "AuthorityValue.full": "a.test:8443",
    "RequestRedirect.authority": {"full": "a.test:8443"}, "RouteBackend.routeGroup": "abc",
    "Transformation.request": {"set": {"x-a": "request.path"}}, "Transformation.response": {"set": {"x-a": "'a'"}},
    "TransformationWithCondition.request": {"set": {"x-a": "request.path"}},
    "TransformationWithCondition.response": {"set": {"x-a": "'a'"}},
    "DiscoveredService.name": "cart", "DiscoveredService.namespace": "shop", "DiscoveredWorkload.workloadIps": ["10.0.0.1"],
    "DiscoveredService.hostname": "cart.shop.svc.cluster.local", "DiscoveredWorkload.services": {_SERVICE: {"80": 8080}},
    "JwksFile.file": "jwks.json", "RemoteJwks.url": "https://idp.test/keys", "RemoteJwks.path": "/keys", "DocumentReference.file": "jwks.json", "DocumentReference.url": "https://idp.test/keys",
    "Bind.tunnelProtocol": "proxy", "Bind.mode": "internal", "Database.url": "sqlite:///var/lib/a.db",
    "Redis.url": "redis://127.0.0.1:1", "Logging.level": "info", "RedisTls.root": "ca.pem", "RedisTls.cert": "cert.pem",
    "RedisTls.key": "key.pem", "CatalogSource.file": "catalog.json", "ProcessTracing.headers": {"x-a": "v"},
    "LogFields.add": {"a.b": "request.path"}, "MetricFields.add": {"a": "request.path"}, "TracingFields.add": {"a": "request.path"},
    "ProcessSettings.modelCatalog": [{"inline": {"providers": {}}}], "ProcessSettings.customFunctions": "f(a) { a }",
    **{
        f"Rates.{name}": "1"
        for name in ("input", "output", "cacheRead", "cacheWrite", "reasoning", "inputAudio", "outputAudio")
    },

    **{f"ProcessSettings.{name}": "127.0.0.1:1" for name in ("adminAddr", "statsAddr", "readinessAddr")},
    "OtlpMetrics.path": "/a", "ProcessTracing.path": "/a",
    **dict.fromkeys(("WeightedTarget.model", "FailoverTarget.model", "ConditionalTarget.model"), "m"),
    **dict.fromkeys(
        ("OAuthTokenExchange.requestedTokenType", "SubjectToken.tokenType", "ActorToken.tokenType", "CrossAppSubject.tokenType"),
        "urn:ietf:params:oauth:token-type:jwt",
    ),
    "VirtualModel.name": "v", "ModelParams.awsRegion": "eu-west-1", "ModelParams.vertexRegion": "europe-west1", "Llm.gateways": "default",
    "Llm.port": 8085, "Model.passthrough": "detect",
    "BackendTargetName.section": "abc", "AttachedPolicies.a2a": {}, "McpIdp.entra": {},
    "BackendAuthKinds.credentials": [{"location": {"header": {"name": "x-b"}}, "key": "k"}],
}
# Of several keys the one that is taken where nothing else is asked for.
_PREFERRED: Final = ("full", "host", "route", "service", "mcp", "key", "openAI", "regex", "policy", "exact", "grpc")


def objects() -> dict[str, Object]:
    """Return the objects of the file by name."""
    found: dict[str, Object] = {}
    _collect(ROOT, found)
    return found


def _collect(shape: Shape, found: dict[str, Object]) -> None:
    for inner in _inside(shape):
        if inner.name not in found:
            found[inner.name] = inner
            for field in inner.fields.values():
                _collect(field.shape, found)


def _inside(shape: Shape | Case) -> Iterator[Object]:
    """Yield the objects that a value of a shape may be, or may hold without another object around them."""
    match shape:
        case Ref():
            yield from _inside(shape.target())
        case Case():
            yield from _inside(shape.shape)
        case ListOf() | MapOf():
            yield from _inside(shape.item)
        case Union():
            for one in shape.cases:
                yield from _inside(one)
        case Object():
            yield shape


def chains(most: int) -> dict[str, list[Chain]]:
    """Return for each object up to `most` ways that lead to it, the shortest first."""
    found: dict[str, list[Chain]] = {ROOT.name: [()]}
    waiting: list[tuple[Object, Chain]] = [(ROOT, ())]
    while waiting:
        one, chain = waiting.pop(0)
        for name, field in one.fields.items():
            if field.later:
                continue
            for inner in _inside(field.shape):
                known = found.setdefault(inner.name, [])
                if len(known) < most and all(step[0] != inner.name for step in chain):
                    known.append((*chain, (one.name, name)))
                    waiting.append((inner, known[-1]))
    return found


def sample(chain: Chain) -> Any:
    """Return a configuration that has the last field of a chain."""
    return _complete(_built(ROOT, chain))


def _complete(file: Any) -> Any:
    """Return a file whose routes have a listener."""
    file.setdefault("gateways", {})["default"] = {"port": 8080}
    text = json.dumps(file)
    for one in file.get("policies", ()):
        _aim(file, one)
    if file.get("tcpRoutes"):
        file["gateways"]["streams"] = {"port": 8084, "listeners": [{"protocol": "TCP"}]}
        for one in file["tcpRoutes"]:
            one["gateways"] = "streams"
            if one.get("hostnames"):
                file["gateways"]["streams"] = {"port": 8084, "listeners": [{"protocol": "TLS"}]}
    for bind in file.get("binds", ()):
        for one in bind["listeners"]:
            if "tcpRoutes" in one:
                one["protocol"] = "TLS" if any("hostnames" in route for route in one["tcpRoutes"]) else "TCP"
    if '"internal"' in text and "mode" not in text:
        inner = {"routes": [{"policies": {"directResponse": {"status": 204}}}]}
        file.setdefault("binds", []).append({"port": 8090, "mode": "internal", "listeners": [inner]})
    if '"routeGroup"' in text:
        file["routeGroups"] = [{"name": "abc", "routes": [{"backends": [{"host": "a.test:87"}]}]}]
    for one in (*file.get("routes", ()), *file.get("backends", ())):
        _suit(one)
    for section in (file.get("llm"), *(one.get("llm") for one in file.get("backends", ()))):
        if section is not None:
            _fit_models(section)
    _lead_to_models(file)
    if "entra" in text:
        file = json.loads(text.replace("https://idp.test", "https://login.microsoftonline.com/a-b/v2.0"))
        file["gateways"] = {"default": {"port": 8080}}
    if "spiffe" in text:
        file["config"] = {"spiffe": {"endpoint": "unix:///run/spire.sock"}}
    if "workloads" in file:
        file.setdefault("services", [_CART])
    if "workloadUid" in text:
        file["workloads"] = [_CART_0]
        file["services"][0] |= {name: _CART[name] for name in ("name", "namespace", "hostname", "ports")}
    known = {one["name"] for one in file.get("backends", ())}
    if "abc" not in known and any(f'"backend": {one}' in text for one in ('"abc"', '{"name": "abc"', '{"backend"')):
        file.setdefault("backends", []).append({"name": "abc", "host": "a.test:81"})
    if _SERVICE in text or '"service": {"hostname"' in text:
        file.setdefault("services", [_CART])
        file.setdefault("workloads", [_CART_0])
    if '"custom"' in text and '"hostOverride"' not in text and '"models"' not in text:
        file = json.loads(text.replace('"provider": {"custom"', '"hostOverride": "a.test:82", "provider": {"custom"'))
        return _complete(file)
    return file


_SERVER: Final = {"mcp": {"targets": [{"name": "abc", "mcp": {"host": "a.test:85"}}]}}
_MODEL: Final = {"ai": {"groups": [{"providers": [{"name": "abc", "provider": {"openAI": {}}}]}]}}


def _suit(one: Any) -> None:
    """Give a route, or a named backend, a backend that its policies have a meaning for."""
    policies = one.get("policies", {})
    wanted = _SERVER if policies.keys() & {"mcpAuthorization", "mcpGuardrails"} else _MODEL if "ai" in policies else None
    if "mcpAuthentication" in policies:
        wanted = _SERVER
    if wanted is None and "a2a" in policies:
        wanted = {"host": "a.test:88"}
    if "host" in one and wanted is not None:
        del one["host"]
        one |= wanted
    elif "name" not in one and "backends" not in one and wanted is not None:
        one["backends"] = [wanted]


def _fit_models(section: Any) -> None:
    """Give models, and what they refer to, a provider that their parameters are for."""
    for one in section["models"]:
        if one.get("params", {}).keys() - {"model"} and "reference" in one["provider"]:
            one["provider"] = "groq"
        elif "reference" in one["provider"]:
            section.setdefault("providers", [{"name": "abc", "provider": "groq"}])
    for one in section.get("providers", ()):
        if "reference" in one["provider"]:
            one["provider"] = "groq"
        _fit_provider(one)
    if "providers" in section and isinstance(section["models"][0]["provider"], str):
        section["models"][0]["provider"] = {"reference": section["providers"][0]["name"]}
    for one in section["models"]:
        if "params" in one or "custom" in one["provider"]:
            _fit_provider(one)


def _fit_provider(one: Any) -> None:
    params = one.setdefault("params", {})
    if any(name.startswith("azure") for name in params):
        one["provider"], params["azureResourceType"] = "azure", "foundry"
        params.setdefault("azureResourceName", "abc")
    elif any(name.startswith("vertex") for name in params):
        one["provider"] = "vertex"
        params.setdefault("vertexProject", "abc")
    elif params.keys() & {"awsRegion", "guardrailIdentifier", "guardrailVersion"}:
        one["provider"] = "bedrock"
        params.setdefault("awsRegion", "eu-west-1")
        if "guardrailIdentifier" in params or "guardrailVersion" in params:
            params |= {"guardrailIdentifier": "abc", "guardrailVersion": "1"}
    elif "custom" in one["provider"]:
        params.setdefault("baseUrl", "http://a.test/v1")


def _lead_to_models(file: Any) -> None:
    """Let a route lead to a named backend with models."""
    for one in file.get("backends", ()):
        if "llm" in one:
            file.setdefault("routes", [{"backends": [{"backend": one["name"]}]}])


def _aim(file: Any, policy: Any) -> None:
    """Give a targeted policy what it targets, and what has a meaning there."""
    said, target = policy.get("policy", {}), policy["target"]
    if "frontend" in policy:
        policy["target"] = {"gateway": {"gatewayName": "default", "gatewayNamespace": "default"}}
        return
    backend: Any = {"host": "a.test:86"}
    if said.keys() & {"mcpAuthorization", "mcpGuardrails", "mcpAuthentication"} or "section" in json.dumps(target):
        backend = _SERVER
    elif "ai" in said:
        backend = _MODEL
    if said.keys() & {"http", "tcp", "health", "sessionAffinity"}:
        policy["phase"] = "backend"
    if "backend" in target:
        policy["policy"] = {"backendAuth": {"passthrough": {}}}
        file.setdefault("backends", []).append({"name": "abc", **backend})
        service = {"service": {"name": _SERVICE, "port": 80}}
        reference = service if "service" in target["backend"] else {"backend": "abc"}
        file.setdefault("routes", [{"backends": [reference]}])
    else:
        file.setdefault("routes", [{"name": "abc", "ruleName": "abc", "backends": [backend]}])


_CART: Final = {"name": "cart", "namespace": "shop", "hostname": "cart.shop.svc.cluster.local", "ports": {"80": 8080}}
_CART_0: Final = {
    "uid": "cart-0", "name": "cart-0", "namespace": "shop", "workloadIps": ["10.0.0.1"], "services": {_SERVICE: {"80": 8080}},
}  # fmt: skip


def _built(shape: Shape, chain: Chain) -> Any:
    match shape:
        case Ref():
            return _built(shape.target(), chain)
        case Scalar():
            return _SCALARS.get(shape.name, shape.facets.get("minimum", 1) or 1)
        case WordChoice():
            return next(one for one in shape.words if one not in shape.later)
        case Anything():
            return {"a": 1}
        case ListOf():
            return [_built(shape.item, chain) for _ in range(max(shape.least, 1))]
        case MapOf():
            return {"x-a": _built(shape.item, chain)}
        case Union():
            return _case(shape, chain)
        case Object():
            return _object(shape, chain)


def _case(shape: Union, chain: Chain) -> Any:
    cases = [one.shape if isinstance(one, Case) else one for one in shape.cases]
    if chain:
        for one in cases:
            if any(inner.name == chain[0][0] for inner in _inside(one)):
                return _built(one, chain)
    fitting = [one for one in cases if not (isinstance(one, WordChoice) and one.later)]
    last = shape.cases[-1]
    return _built(last if isinstance(last, Object) else fitting[0], chain)


def _object(shape: Object, chain: Chain) -> dict[str, Any]:
    wanted = chain[0][1] if chain and chain[0][0] == shape.name else None
    names = [name for name, field in shape.fields.items() if field.required or name == wanted]
    for group, optional in ((shape.one_of, shape.one_of_optional), (shape.any_of, False)):
        if group and not optional and not set(group) & set(names):
            names.append(next((one for one in _PREFERRED if one in group), group[0]))
    found = {}
    for name in names:
        given = VALUES.get(f"{shape.name}.{name}")
        inner = chain[1:] if name == wanted else ()
        found[name] = given if given is not None and not inner else _built(shape.fields[name].shape, inner)
    always = {} if wanted == "spiffe" else _ALWAYS.get(shape.name, {})
    if shape.name == "Redis" and "tls" in found:
        found["url"] = "rediss://127.0.0.1:1"
    for name, more in (always | _BESIDE.get(f"{shape.name}.{wanted}", {})).items():
        found.setdefault(name, more)
    return found


# What a field needs beside it.
_BESIDE: Final[dict[str, dict[str, Any]]] = {
    "BackendTls.cert": {"key": "key.pem"}, "BackendTls.key": {"cert": "cert.pem"},
    "RedisTls.cert": {"key": "key.pem"}, "RedisTls.key": {"cert": "cert.pem"}, "RedisTls.root": {"insecure": False},
    "BedrockProvider.guardrailIdentifier": {"guardrailVersion": "1"},
    "BedrockProvider.guardrailVersion": {"guardrailIdentifier": "a"},
    **{f"{name}.includeRequestHeaders": {"protocol": {"http": {}}} for name in ("ExtAuthz", "ExtAuthzWithCondition")},
    "PrivateKeyJwt.certificateHeader": {"certificate": {"file": "cert.pem"}},
    "OtlpMetrics.path": {"protocol": "http"}, "Redis.tls": {"url": "rediss://127.0.0.1:1"},
    "DiscoveredWorkload.services": {"workloadIps": ["10.0.0.1"]},
    "AwsSessionTag.key": {"value": "b"}, "ServerTls.clientValidation": {"root": "ca.pem"},
    "McpAuthentication.clientSecret": {"clientId": "a", "provider": {"entra": {}}},
    "McpAuthentication.redirectUris": {"clientId": "a"},
}
# What every object of a kind needs beside its fields.
_ALWAYS: Final[dict[str, dict[str, Any]]] = {
    "BedrockGuard": {"guardrailIdentifier": "a", "guardrailVersion": "1"},
    "ModerationGuard": {"policies": {"backendAuth": {"key": "k"}}},
    "ServerTls": {"cert": "cert.pem", "key": "key.pem"}, "McpAuthentication": {"jwks": JWKS},
    "Cors": {"maxAge": "5s"}, "RequestRedirect": {"authority": {"port": 8443}},
    "Health": {"unhealthyExpression": "response.code == 500"},
    "LocalRateLimit": {"tokensPerFill": 1, "maxTokens": 3}, "McpGuardrail": {"methods": {"tools/call": "full"}},
    "LocalRateLimitWithCondition": {"tokensPerFill": 1, "maxTokens": 3},
    "Transformation": {"request": {"set": {"x-a": "request.path"}}},
    "ProcessTracing": {"otlpEndpoint": "http://127.0.0.1:1"}, "RedisTls": {"insecure": True},
    "UrlRewrite": {"authority": {"full": "a.test"}}, "Timeout": {"requestTimeout": "5s"},
    "JwtSign": {"alg": "ES256"}, "PrivateKeyJwt": {"alg": "ES256"},
    "Bind": {"port": 8081}, "Gateway": {"port": 8082},
}
