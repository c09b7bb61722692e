"""Custom resources that an API server takes, and what is wrong with others that differ from them in one thing."""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

Spec = dict[str, Any]
GONE = object()

ROUTE = [{"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "name": "web"}]
GATEWAY = [{"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "main"}]
BACKEND = [{"group": "headgate.dev", "kind": "GatewayBackend", "name": "models"}]
SERVICE = [{"group": "", "kind": "Service", "name": "shop"}]
REF = {"name": "auth", "port": 9000}
SECRET = {"name": "keys"}

CLIENT = {"clientId": "me", "secretRef": SECRET}
KEY_CLIENT = {"clientId": "me", "method": "PrivateKeyJwt", "privateKeyJwt": {"signingKeyRef": SECRET, "assertionAudience": "a"}}
EXCHANGE = {
    "url": "https://sts.test/token",
    "grantType": "TokenExchange",
    "audiences": ["a"],
    "subjectToken": {"source": {"header": {"name": "authorization"}}, "tokenType": "AccessToken"},
    "actorToken": {"source": {"expression": "request.headers['x']"}, "tokenType": "Jwt", "mayAct": "Required"},
    "requestedTokenType": "Jwt",
    "clientAuth": CLIENT,
    "cache": {"inMemory": {"maxEntries": 10, "defaultTtl": "5m"}},
}
CROSS_APP = {
    "identityProvider": {"url": "https://idp.test/token", "clientAuth": KEY_CLIENT},
    "resourceAuthorizationServer": {"backendRef": REF, "path": "/token", "clientAuth": CLIENT},
    "audience": "https://as.test",
}
JWT_SIGN = {"signingKeyRef": SECRET, "alg": "ES256", "claims": {"sub": "me", "groups": ["a"]}, "ttl": "300s"}
GUARDS = {
    "streaming": "Enabled",
    "request": [
        {"scope": ["ToolInput"], "regex": {"action": "Reject", "matches": ["secret", {"pattern": "x+", "name": "xs"}], "builtins": ["Ssn"]}},
        {"webhook": {"backendRef": REF, "headers": {"x": "jwt.sub"}, "forwardHeaderMatches": [{"name": "x", "value": "y"}]}},
        {"openAIModeration": {"policies": {"auth": {"secretRef": SECRET}}}},
        {"regex": {"builtins": ["Email", "CreditCard"], "response": {}}},
    ],
    "response": [
        {"bedrockGuardrails": {"identifier": "i", "version": "1", "region": "eu-west-1"}},
        {"googleModelArmor": {"templateId": "t", "projectId": "p"}},
    ],
}
AI = {
    "prompt": {"prepend": [{"role": "system", "content": "Be brief."}]},
    "promptGuard": GUARDS,
    "promptCaching": {},
    "defaults": [{"field": "temperature", "value": 0.5}, {"field": "stop", "value": ["a"]}],
    "overrides": [{"field": "metadata", "value": {"a": 1}}],
    "transformations": [{"field": "user", "expression": "jwt.sub"}],
    "modelAliases": {"fast": "gpt-5-mini"},
    "routes": {"/v1/chat/completions": "Completions", "/v1/count": "GeminiCountTokens"},
}
TLS = {"caCertificateRefs": [{"name": "ca"}], "sni": "api.test", "verifySubjectAltNames": ["api.test"], "alpnProtocols": ["h2"], "keyExchangeGroups": ["X25519", "P-256"]}
MCP_POLICY = {
    "authorization": {"action": "Deny", "policy": {"matchExpressions": ["mcp.tool.name == 'rm'"]}},
    "guardrails": {"processors": [{"remote": {"url": "http://guard.test:1"}, "methods": {"tools/*": "Full", "*": "Off"}}]},
}
EXT_AUTH = {"backendRef": REF, "http": {"path": "'/check'"}, "cache": {"key": ["request.path"], "ttl": "duration('1m')"}}

KINDS = {
    "backend": "GatewayBackend", "policy": "GatewayPolicy", "model": "GatewayModel", "parameters": "GatewayParameters",
}  # fmt: skip
# By kind and name: specs that are right.
BASES: dict[str, Spec] = {
    "backend/static": {"static": {"host": "shop.test", "port": 8080}, "policies": {"tcp": {"keepalive": {"retries": 3}}}},
    "backend/unix": {"static": {"unixPath": "/run/shop.sock"}},
    "backend/dynamic": {"dynamicForwardProxy": {}},
    "backend/a2a": {"a2a": {"host": "agent.test", "port": 443}},
    "backend/aws": {"aws": {"agentCore": {"agentRuntimeArn": "arn:aws:bedrock-agentcore:eu-west-1:1:runtime/x"}}},
    "backend/ai": {
        "ai": {"provider": {"openai": {"model": "gpt-5"}, "host": "proxy.test", "port": 443, "pathPrefix": "/v2"}},
        "policies": {"ai": AI, "tls": {}, "health": {"eviction": {}}},
    },
    "backend/bedrock": {"ai": {"provider": {"bedrock": {"guardrail": {"identifier": "g", "version": "1"}}}}},
    "backend/custom": {"ai": {"provider": {"custom": {"backendRef": {"name": "vllm", "port": 8000}, "formats": [{"type": "Completions", "path": "/c"}]}}}},
    "backend/groups": {
        "ai": {
            "groups": [
                {"providers": [{"name": "a", "anthropic": {}}, {"name": "b", "vertexai": {"projectId": "p"}}]},
                {"providers": [{"name": "c", "azure": {"resourceName": "r", "resourceType": "OpenAI"}, "policies": {"ai": {"prompt": AI["prompt"]}}}]},
            ]
        }
    },
    "backend/mcp": {
        "mcp": {
            "targets": [
                {"name": "files", "static": {"host": "files.test", "port": 80, "protocol": "SSE", "policies": {"auth": {"key": "k"}}}},
                {"name": "search", "static": {"backendRef": {"name": "search"}, "port": 8080}},
                {"name": "all", "selector": {"services": {"matchLabels": {"mcp": "yes"}}, "namespaces": {"matchExpressions": [{"key": "a", "operator": "Exists"}]}}},
            ],
            "sessionRouting": "Stateless",
            "prefixMode": "Always",
        },
        "policies": {"mcp": MCP_POLICY},
    },
    "policy/traffic": {
        "targetRefs": ROUTE,
        "strategy": {"inheritance": "Override"},
        "traffic": {
            "jwtAuthentication": {"providers": [{"issuer": "https://idp.test", "jwks": {"remote": {"url": "https://idp.test/keys"}}}], "mcp": {"provider": "Okta"}},
            "apiKeyAuthentication": {"secretSelector": {"matchLabels": {"keys": "yes"}}},
            "basicAuthentication": {"users": ["me:$2y$05$x"]},
            "authorization": {"policy": {"matchExpressions": ["jwt.sub == 'me'"]}},
            "cors": {"allowOrigins": ["https://*.shop.test", "https://a.test:8443"], "allowMethods": ["GET", "POST"], "allowHeaders": ["*"]},
            "csrf": {"additionalOrigins": ["https://a.test"]},
            "extAuth": EXT_AUTH,
            "extProc": {"url": "http://proc.test:9", "processingOptions": {}, "requestAttributes": {"a": "request.path"}, "metadataContext": {"a": {"b": "jwt.sub"}}},
            "rateLimit": {
                "local": [{"requests": 10, "unit": "Seconds", "burst": 5}, {"tokens": 1000, "unit": "Hours"}],
                "global": {"domain": "d", "backendRef": REF, "descriptors": [{"entries": [{"name": "a", "expression": "request.path"}], "unit": "Tokens"}]},
            },
            "transformation": {"request": {"set": [{"name": ":path", "value": "'/x'"}], "remove": ["x-a"]}},
            "headerModifiers": {"response": {"add": [{"name": "x-b", "value": "1"}]}},
            "hostRewrite": {"mode": "None"},
            "timeouts": {"request": "5s"},
            "retry": {"attempts": 2, "backoff": "100ms", "codes": [503]},
            "delay": {"duration": "'2s'"},
            "buffer": {"request": {"maxBytes": "2Mi"}, "response": {"maxBytes": 65536, "failureMode": "FailOpen"}},
            "directResponse": {"status": 418, "body": "no", "headers": [{"name": "x-c", "value": "'1'"}]},
        },
    },
    "policy/conditional": {
        "targetSelectors": [{"group": "gateway.networking.k8s.io", "kind": "GRPCRoute", "matchLabels": {"a": "b"}, "sectionName": "rule"}],
        "traffic": {
            "directResponse": {"conditional": [{"condition": "request.path == '/'", "policy": {"status": 204}}, {"policy": {"status": 404, "bodyExpression": "'x'"}}]},
            "rateLimit": {"conditional": [{"condition": "true", "policy": {"local": [{"requests": 1, "unit": "Minutes"}]}}]},
            "extAuth": {"conditional": [{"policy": EXT_AUTH}]},
        },
    },
    "policy/early": {"targetRefs": GATEWAY, "traffic": {"phase": "PreRouting", "cors": {"allowOrigins": ["*"]}, "authorization": {"action": "Require", "policy": {"matchExpressions": ["true"]}}}},
    "policy/frontend": {
        "targetRefs": GATEWAY,
        "frontend": {
            "tcp": {"keepalive": {"time": "60s"}},
            "tls": {"handshakeTimeout": "1s", "minProtocolVersion": "1.2", "maxProtocolVersion": "1.3", "cipherSuites": ["TLS13_AES_256_GCM_SHA384"]},
            "http": {"maxBufferSize": "1Mi", "http1MaxHeaders": 100, "http1HeaderCase": "Preserve", "http2FrameSize": 16384},
            "networkAuthorization": {"policy": {"matchExpressions": ["source.port > 0"]}},
            "proxyProtocol": {},
            "connect": {"mode": "Tunnel"},
            "accessLog": {"filter": "true", "attributes": {"add": [{"name": "a", "expression": "request.path"}]}, "otlp": {"url": "http://otel.test:4318/v1/logs", "protocol": "HTTP"}},
            "tracing": {"backendRef": REF, "randomSampling": "0.1"},
            "metrics": {"attributes": {"add": [{"name": "a", "expression": "request.path"}]}},
        },
    },
    "policy/port": {"targetRefs": [{**GATEWAY[0], "port": 8080}], "frontend": {"connect": {"mode": "Deny"}}},
    "policy/listener": {"targetRefs": [{**GATEWAY[0], "sectionName": "web"}], "frontend": {"accessLog": {"filter": "true"}}},
    "policy/backend": {
        "targetRefs": BACKEND,
        "backend": {
            "tcp": {"connectTimeout": "1s"},
            "tls": TLS,
            "http": {"version": "HTTP2", "requestTimeout": "10s"},
            "tunnel": {"url": "https://proxy.test:3128"},
            "auth": {"secretRef": SECRET, "location": {"header": {"name": "x-key", "prefix": "Key "}}, "credentials": [{"location": {"queryParameter": {"name": "k"}}, "secretRef": SECRET}]},
            "ai": AI,
            "mcp": MCP_POLICY,
            "transformation": {"response": {"set": [{"name": "x", "value": "'1'"}]}},
            "health": {"unhealthyCondition": "response.code == 500", "eviction": {"consecutiveFailures": 3, "healthThreshold": 50}},
            "extAuth": {"url": "http://auth.test:1", "grpc": {"contextExtensions": {"a": "b"}}, "forwardBody": {"maxSize": "8Ki"}},
        },
    },
    "policy/ai": {"targetRefs": BACKEND, "ai": {"promptEnrichment": AI["prompt"], "promptGuard": GUARDS}},
    "policy/mcp-login": {"targetRefs": BACKEND, "backend": {"mcp": {"authentication": {"issuer": "https://idp.test", "jwks": {"backendRef": REF, "jwksPath": "/keys"}}}}},
    "policy/service": {"targetRefs": [{**SERVICE[0], "sectionName": "8080"}], "backend": {"auth": {"passthrough": {}}}},
    "policy/clouds": {"targetRefs": BACKEND, "backend": {"auth": {"aws": {"assumeRole": {"roleArn": "arn:aws:iam::1:role/x", "sessionName": "me", "tags": [{"key": "a", "value": "b"}]}}}}},
    "policy/gcp": {"targetRefs": BACKEND, "backend": {"auth": {"gcp": {"type": "IdToken", "audience": "a"}}}},
    "policy/azure": {"targetRefs": BACKEND, "backend": {"auth": {"azure": {"managedIdentity": {"clientId": "x"}}}}},
    "policy/exchange": {"targetRefs": BACKEND, "backend": {"auth": {"oauthTokenExchange": EXCHANGE}}},
    "policy/cross-app": {"targetRefs": BACKEND, "backend": {"auth": {"crossAppAccess": CROSS_APP}}},
    "policy/sign": {"targetRefs": BACKEND, "backend": {"auth": {"jwtSign": JWT_SIGN}}},
    "policy/pool": {"targetRefs": [{"group": "inference.networking.k8s.io", "kind": "InferencePool", "name": "p"}], "traffic": {"timeouts": {"request": "1ms"}}},
    "model/openai": {
        "parentRefs": [{"name": "main"}],
        "match": {"model": "gpt-*"},
        "provider": "OpenAI",
        "policies": {"auth": {"secretRef": SECRET}, "promptGuard": GUARDS, "headers": {"request": {"set": [{"name": "x", "value": "y"}]}}},
    },
    "model/own": {"parentRefs": [{"name": "main", "sectionName": "llm"}], "provider": "Ollama", "baseURL": "http://ollama.ai.svc:11434/v1", "visibility": "Internal"},
    "model/vertex": {"parentRefs": [{"name": "main"}], "provider": "VertexAI", "vertexai": {"projectId": "p"}},
    "model/bedrock": {"parentRefs": [{"name": "main"}], "provider": "Bedrock", "bedrock": {}},
    "model/azure": {"parentRefs": [{"name": "main"}], "provider": "Azure", "azure": {"resourceName": "r", "resourceType": "Foundry", "projectName": "p"}},
    "model/custom": {"parentRefs": [{"name": "main", "kind": "HTTPRoute"}], "provider": "Custom", "baseURL": "https://llm.test", "custom": {"formats": [{"type": "Messages"}]}},
    "model/weighted": {"parentRefs": [{"name": "main"}], "match": {"model": "best"}, "virtualModel": {"weighted": {"targets": [{"modelRef": "a"}, {"modelRef": "b", "weight": 3}]}}},
    "model/failover": {"parentRefs": [{"name": "main"}], "match": {"model": "sure"}, "virtualModel": {"failover": {"targets": [{"modelRef": "a", "priority": 0}]}}},
    "model/conditional": {"parentRefs": [{"name": "main"}], "match": {"model": "mine"}, "virtualModel": {"conditional": {"targets": [{"modelRef": "a", "when": "true"}, {"modelRef": "b", "model": "x"}]}}},
    "parameters/all": {
        "workload": {"kind": "Deployment"},
        "logging": {"level": "info,headgate.net=debug", "format": "json"},
        "rawConfig": {"config": {"workerThreads": 2}},
        "image": {"registry": "registry.test", "repository": "headgate", "tag": "1.0", "digest": "sha256:" + "0" * 64, "pullPolicy": "Always"},
        "env": [{"name": "A", "value": "b"}, {"name": "B", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}],
        "resources": {"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": 1}},
        "shutdown": {"min": 5, "max": 30},
        "istio": {"trustDomain": "cluster.local"},
        "spiffe": {"source": {"csi": {}}},
        "modelCatalog": {"sources": [{"configMap": {"name": "prices"}}]},
        "deployment": {"spec": {"template": {"spec": {"tolerations": [{"$patch": "replace"}]}}}, "metadata": {"labels": {"a": "b"}}},
        "podDisruptionBudget": {"spec": {"minAvailable": 1}},
        "horizontalPodAutoscaler": {"spec": {"maxReplicas": 3}},
    },
    "parameters/daemon": {"workload": {"kind": "DaemonSet"}, "daemonSet": {"metadata": {"annotations": {"a": "b"}}}, "spiffe": {"source": {"hostPath": {"path": "/run/spire"}}}},
}  # fmt: skip


class Written(NamedTuple):
    """A default that the API server writes: where, in which base."""

    base: str
    path: str
    value: Any


DEFAULTS = [
    Written("policy/traffic", "traffic.jwtAuthentication.mode", "Strict"),
    Written("policy/traffic", "traffic.jwtAuthentication.providers.0.jwks.remote.cacheDuration", "5m"),
    Written("policy/traffic", "traffic.apiKeyAuthentication.mode", "Strict"),
    Written("policy/traffic", "traffic.basicAuthentication.mode", "Strict"),
    Written("policy/traffic", "traffic.authorization.action", "Allow"),
    Written("policy/traffic", "traffic.cors.maxAge", 5),
    Written("policy/traffic", "traffic.extAuth.backendRef.group", ""),
    Written("policy/traffic", "traffic.extAuth.backendRef.kind", "Service"),
    *(
        Written("policy/traffic", f"traffic.extProc.processingOptions.{name}", value)
        for name, value in {
            "requestHeaderMode": "Send", "responseHeaderMode": "Send", "requestTrailerMode": "Send", "responseTrailerMode": "Send",
            "requestBodyMode": "FullDuplexStreamed", "responseBodyMode": "FullDuplexStreamed", "allowModeOverride": False,
        }.items()
    ),
    Written("policy/frontend", "frontend.networkAuthorization.action", "Allow"),
    Written("policy/frontend", "frontend.proxyProtocol.mode", "Strict"),
    Written("policy/frontend", "frontend.proxyProtocol.version", "V2"),
    Written("policy/frontend", "frontend.tracing.protocol", "GRPC"),
    Written("policy/mcp-login", "backend.mcp.authentication.mode", "Strict"),
    Written("policy/backend", "backend.tls.certificateSource", "Inline"),
    Written("policy/backend", "backend.tls.caCertificateRefs.0.kind", "ConfigMap"),
    Written("policy/backend", "backend.health.eviction.duration", "3s"),
    Written("backend/ai", "policies.health.eviction.duration", "3s"),
    Written("policy/ai", "ai.promptGuard.request.1.webhook.forwardHeaderMatches.0.type", "Exact"),
    Written("policy/ai", "ai.promptGuard.request.2.openAIModeration.model", "omni-moderation-latest"),
    Written("policy/ai", "ai.promptGuard.request.3.regex.action", "Mask"),
    Written("policy/ai", "ai.promptGuard.request.3.regex.response.message", "The request was rejected due to inappropriate content"),
    Written("policy/ai", "ai.promptGuard.request.3.regex.response.statusCode", 403),
    Written("policy/ai", "ai.promptGuard.response.1.googleModelArmor.location", "us-central1"),
    *(
        Written("backend/ai", f"policies.ai.promptCaching.{name}", value)
        for name, value in {
            "cacheSystem": True, "cacheMessages": True, "cacheTools": False, "minTokens": 1024, "cacheMessageOffset": 0,
        }.items()
    ),
    Written("backend/bedrock", "ai.provider.bedrock.region", "us-east-1"),
    Written("backend/groups", "ai.groups.0.providers.1.vertexai.region", "global"),
    Written("model/openai", "visibility", "Public"),
    Written("model/openai", "parentRefs.0.kind", "Gateway"),
    Written("model/openai", "parentRefs.0.group", "gateway.networking.k8s.io"),
    Written("model/bedrock", "bedrock.region", "us-east-1"),
    Written("model/vertex", "vertexai.region", "global"),
    Written("model/weighted", "virtualModel.weighted.targets.0.weight", 1),
    Written("parameters/all", "modelCatalog.sources.0.configMap.key", "catalog.json"),
    Written("parameters/all", "spiffe.source.csi.driver", "csi.spiffe.io"),
    Written("parameters/all", "spiffe.mountPath", "/spiffe-workload-api"),
    Written("parameters/all", "spiffe.socketName", "spire-agent.sock"),
]  # fmt: skip


def at(spec: Spec, path: str) -> Any:
    """Return what stands at a path such as `traffic.retry.codes.0`."""
    found: Any = spec
    for part in path.split("."):
        found = found[int(part)] if isinstance(found, list) else found[part]
    return found


def changed(spec: Spec, changes: dict[str, Any]) -> Spec:
    """Return a copy with values put at paths; GONE takes one away."""
    found = copy.deepcopy(spec)
    for path, value in changes.items():
        *way, last = path.split(".")
        holder: Any = found
        for part in way:
            holder = holder[int(part)] if isinstance(holder, list) else holder.setdefault(part, {})
        if value is GONE:
            del holder[int(last) if isinstance(holder, list) else last]
        elif isinstance(holder, list):
            holder[int(last)] = copy.deepcopy(value)
        else:
            holder[last] = copy.deepcopy(value)
    return found


def document(base: str, spec: Spec) -> dict[str, Any]:
    """Return a whole resource."""
    kind, name = base.split("/")
    return {"apiVersion": "headgate.dev/v1alpha1", "kind": KINDS[kind], "metadata": {"name": name}, "spec": spec}
