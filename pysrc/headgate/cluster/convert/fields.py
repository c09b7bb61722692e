"""Which fields of the file cannot be converted to resources, and why.

`headgate convert` reports each of them. `python -m headgate.cluster.convert.fields > docs/cluster-fields.md` writes
the page. A field is named `<object>.<field>`, as in the JSON schema of the file. Everything inside
such a field cannot be converted either.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Final

from headgate.cluster.translate.client_side import REFUSED
from headgate.config.shape.root import ROOT
from headgate.config.shape.vocabulary import Case, ListOf, MapOf, Object, Ref, Shape, Union

# Sections of the file as a whole.
WHOLE: Final = ("ui", "virtualKeys")

_LISTENER_TLS: Final = "resources set it for a whole Gateway: use frontendPolicies.tls"
_NO_HEADERS: Final = "GatewayBackend has no such field: use backendRefs of an HTTPRoute, or transformations"
_NO_REJECTION: Final = "only guards with patterns can set the response"
_NO_RESOURCES: Final = "GatewayModels only serve requests that name a model"
_NO_FILTER: Final = "GatewayPolicy has no such field: use a filter of an HTTPRoute rule"
_WORKLOAD: Final = "EndpointSlices only have address, port, readiness, zone and node"
_SERVICE: Final = "Services have no such field that the controller reads"
# The file has it, and a resource has no field for it.
REASONS: Final[dict[str, str]] = {
    "Headgate.virtualKeys": "virtual keys are stored in a database: set config.database in GatewayParameters",
    "ApiKeyAuth.virtualKeys": "keys of a GatewayPolicy are in Secrets",
    "Headgate.ui": "in a cluster, the admin page is only on the admin port",
    "AccessLog.database": "the database is a setting of the process: set config.database in GatewayParameters",
    "AiNamedProvider.streamTimeouts": "providers of a GatewayBackend have no such field",
    "AiNamedProvider.tokenize": "providers of a GatewayBackend have no such field",
    "AiProvider.copilot": "its credential is that of a person, not of a cluster",
    "ApiKey.allowedModels": "keys in Secrets only have key, keyHash and metadata; a rule can read the metadata",
    "AzureAuth.developerImplicit": "the login is that of a developer, not of a cluster",
    "BackendPolicies.authorization": "a GatewayPolicy authorizes requests before the backend is chosen",
    "BackendPolicies.inferenceRouting": "an InferencePool names its own endpoint picker",
    "BackendPolicies.proxyProtocol": "GatewayBackend has no such field",
    "BackendPolicies.sessionAffinity": "GatewayBackend has no such field",
    "TcpBackendPolicies.proxyProtocol": "GatewayBackend has no such field",
    "AttachedPolicies.sessionAffinity": "GatewayBackend has no such field",
    **dict.fromkeys(
        ("RoutePolicies.usageHeaders", "AttachedPolicies.usageHeaders", "LlmPolicies.usageHeaders",
         *(f"UsageHeaders.{name}" for name in ("cost", "tokens", "overhead", "generation"))),
        "GatewayPolicy has no such field",
    ),
    **dict.fromkeys((f"{name}.resources" for name in ("Llm", "LlmBackend")), _NO_RESOURCES),
    **dict.fromkeys((f"LlmResources.{name}" for name in ("defaultProvider", "providers", "lists", "authorization")),
                    _NO_RESOURCES),
    **dict.fromkeys((f"{owner}.{name}" for owner in ("Model", "ProviderDefaults") for name in (
        "defaults", "overrides", "streamTimeouts", "promptCaching", "unsupportedParameters",
    )), "GatewayModel has no such field"),
    **dict.fromkeys(("Model.passthrough", "Model.matches", "ModelMatch.headers"), "GatewayModel has no such field"),
    **dict.fromkeys((f"ModelParams.{name}" for name in ("hostOverride", "pathOverride", "pathPrefix")),
                    "GatewayModel has baseURL instead"),
    "ModelParams.tokenize": "GatewayModel has no such field",
    "LlmPolicies.oidc": "resources can verify tokens, but have no browser login",
    "AttachedPolicies.requestRedirect": _NO_FILTER,
    "AttachedPolicies.requestMirror": _NO_FILTER,
    "AttachedPolicies.a2a": "use a GatewayBackend with a2a",
    "CustomProvider.providerOverride": "a custom provider has the name of its GatewayBackend",
    "DenyWithStatus.denyWithStatus": "resources cannot set the status of a refusal",
    "ExtAuthzBody.allowPartialMessage": "resources cannot truncate bodies: a larger body is refused",
    "ExtAuthzBody.packAsBytes": "resources always send bodies as text",
    "FrontendPolicies.networkExtAuthz": "resources only have external authorization of requests, not of connections",
    "RequestGuard.rejection": _NO_REJECTION,
    "ResponseGuard.rejection": _NO_REJECTION,
    **dict.fromkeys((f"GuardStreamSettings.{name}" for name in ("masks", "overlapBytes", "windowBytes")),
                    "resources can only turn guards of streams on or off"),
    **dict.fromkeys((f"{name}.baseUrl" for name in ("BedrockGuard", "ModelArmorGuard", "ModerationGuard")),
                    "resources always use the vendor's host"),
    "McpAuthentication.jwtValidationOptions": "require the claim in an authorization rule instead",
    "McpAuthentication.redirectUris": "GatewayPolicy has no such field",
    "McpAuthentication.clientSecret": "a GatewayPolicy that serves metadata has no such field",
    "JwtProvider.jwtValidationOptions": "require the claim in an authorization rule instead",
    "JwtSingle.jwtValidationOptions": "require the claim in an authorization rule instead",
    "JwtOptions.requiredClaims": "require the claim in an authorization rule instead",
    "McpBackend.dnsRebindingProtection": "GatewayBackend has no such field: use hostnames of its routes",
    "Mcp.dnsRebindingProtection": "GatewayBackend has no such field: use hostnames of its routes",
    **dict.fromkeys(("McpGuardrail.grpc", "GuardrailMethods.checkRequest", "GuardrailMethods.checkResponse"),
                    "a GatewayPolicy always calls the standard methods"),
    "McpTarget.openapi": "targets of a GatewayBackend must be MCP servers",
    "McpTarget.stdio": "a cluster cannot start the process: run it as a separate server",
    "NamedBackend.internal": "a Gateway cannot have internal ports",
    "RouteBackend.internal": "a Gateway cannot have internal ports",
    "Bind.mode": "a Gateway cannot have internal ports",
    "Bind.tunnelProtocol": "listeners of a Gateway cannot be tunnels",
    "Retry.budget": "neither GatewayPolicy nor HTTPRoute has such a field",
    "CatalogSource.file": "it is a file on this machine: use ConfigMaps in GatewayParameters.modelCatalog",
    "RedisTls.cert": "it is a file on this machine, and GatewayParameters cannot mount files",
    "RedisTls.key": "it is a file on this machine, and GatewayParameters cannot mount files",
    "RedisTls.root": "it is a file on this machine, and GatewayParameters cannot mount files",
    "OtlpMetrics.service": "rawConfig cannot refer to services or backends: use host",
    "OtlpMetrics.backend": "rawConfig cannot refer to services or backends: use host",
    "ServerTls.cipherSuites": _LISTENER_TLS,
    "ServerTls.keyExchangeGroups": _LISTENER_TLS,
    "ServerTls.minTLSVersion": _LISTENER_TLS,
    "ServerTls.minTlsVersion": _LISTENER_TLS,
    "ServerTls.maxTLSVersion": _LISTENER_TLS,
    "ServerTls.maxTlsVersion": _LISTENER_TLS,
    "ServerTls.spiffe": "listeners of a Gateway take their certificate from a Secret",
    "SimplePolicies.requestHeaderModifier": _NO_HEADERS,
    "BedrockGuardPolicies.requestHeaderModifier": _NO_HEADERS,
    "BedrockGuardPolicies.transformations": "guards have no such field",
    "TcpRoutePolicies.backendTLS": "TCP routes have no policies: use tls of the GatewayBackend",
    "Transform.replace": "resources only have set, add and remove",
    **dict.fromkeys((f"{name}.oidc" for name in (
        "Gateway", "GatewayListener", "GatewayPolicies", "RoutePolicies", "AttachedPolicies",
    )), "resources can verify tokens, but have no browser login"),
    **dict.fromkeys((f"DiscoveredService.{name}" for name in (
        "endpoints", "ipFamilies", "loadBalancer", "subjectAltNames", "vips",
    )), _SERVICE),
    **dict.fromkeys((f"DiscoveredWorkload.{name}" for name in (
        "canonicalName", "canonicalRevision", "capacity", "clusterId", "hostname", "network", "networkMode", "protocol",
        "serviceAccount", "trustDomain", "workloadName", "workloadType",
    )), _WORKLOAD),
}  # fmt: skip
# Can be converted only in backendRefs of routes.
PARTLY: Final[dict[str, str]] = dict.fromkeys((f"BackendPolicies.{name}" for name in (
    "requestHeaderModifier", "requestRedirect", "responseHeaderModifier",
)), _NO_HEADERS)  # fmt: skip
_OTHERS: Final = "no resource has such a field"


def reason(shape: str, field: str) -> str:
    """Return why a field of an object of the file cannot be converted, or only in some places."""
    name = f"{shape}.{field}"
    return REASONS.get(name) or PARTLY.get(name) or _OTHERS


def fields() -> Iterator[str]:
    """Yield every field of the file as `<object>.<field>`, in the order of the tables."""
    known: set[str] = set()
    waiting: list[Shape | Case] = [ROOT]
    while waiting:
        match waiting.pop(0):
            case Ref() as one:
                waiting.append(one.target())
            case Case() as one:
                waiting.append(one.shape)
            case ListOf() | MapOf() as one:
                waiting.append(one.item)
            case Union() as one:
                waiting += one.cases
            case Object() as one if one.name not in known:
                known.add(one.name)
                yield from (f"{one.name}.{name}" for name, field in one.fields.items() if not field.later)
                waiting += [field.shape for field in one.fields.values() if not field.later]


_HEAD: Final = """\
# Fields that cannot be converted to Kubernetes resources

Made from tables: `python -m headgate.cluster.convert.fields > docs/cluster-fields.md`.

`headgate convert` converts a [configuration file](policies.md) to resources of a cluster, and back. For example, it
reports that a browser login has no equivalent:

```
not converted: routes[1].policies.oidc: resources can verify tokens, but have no browser login (config.yaml:16)
```

The file has {all} fields. Those below, with everything inside them, cannot be converted. A test shows for each of the
others that it becomes the same configuration. Objects have their names in the [JSON schema](schema/config.schema.json).

Settings of the process (`config`) become `rawConfig` of GatewayParameters. Secret values there become environment
variables from a Secret.

"""


_REFUSED: Final = """\
## Fields of resources that are refused

An API server accepts these fields, but the controller does not apply them. The status of the object gives the reason.
The other fields of the object are applied.

| Resource | Field | Where | Reason |
|---|---|---|---|
"""


def page() -> str:
    """Return the page about the fields."""
    every = list(fields())
    found = [_HEAD.format(all=len(every))]
    tables = {"Fields that cannot be converted": REASONS, "Fields that can be converted in some places": PARTLY}
    for title, table in tables.items():
        found.append(f"## {title}\n\n| Object | Field | Reason |\n|---|---|---|\n")
        for name in every:
            if name in table:
                shape, _, field = name.partition(".")
                found.append(f"| {shape} | `{field}` | {table[name]} |\n")
        found.append("\n")
    found.append(_REFUSED)
    for (part, place), why in REFUSED.items():
        found.append(f"| GatewayPolicy | `frontend.{part}` | {place or 'everywhere'} | {why} |\n")
    return "".join(found).rstrip("\n") + "\n"


if __name__ == "__main__":
    sys.stdout.write(page())
