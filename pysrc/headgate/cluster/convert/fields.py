"""Which fields of the file no resource has, and why.

`headgate convert` tells it of each place. `python -m headgate.cluster.convert.fields > docs/cluster-fields.md` writes
the page. A field is named `<object>.<field>`, as in the JSON schema of the file. What stands in such a field has no
form either.
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

_LISTENER_TLS: Final = "resources say it for a whole Gateway: frontendPolicies.tls has it"
_NO_HEADERS: Final = "GatewayBackends have none: references of HTTPRoutes have, and transformations can"
_NO_REJECTION: Final = "a guard with patterns has a response, others refuse with the gateway's own answer"
_NO_RESOURCES: Final = "GatewayModels take requests that name a model, and no others"
_NO_FILTER: Final = "a GatewayPolicy has none: a rule of an HTTPRoute has"
_WORKLOAD: Final = "EndpointSlices say address, port, readiness, zone and node alone"
_SERVICE: Final = "a Service has it nowhere that the controller reads"
# The file has it, and a resource has no field for it.
REASONS: Final[dict[str, str]] = {
    "Headgate.virtualKeys": "keys that are given out stand in a database: GatewayParameters have its config.database",
    "ApiKeyAuth.virtualKeys": "keys of a GatewayPolicy stand in Secrets",
    "Headgate.ui": "a gateway of a cluster has its page at the admin port alone",
    "AccessLog.database": "a database belongs to one process: the file of GatewayParameters has config.database",
    "AiNamedProvider.streamTimeouts": "providers of a GatewayBackend have none",
    "AiNamedProvider.tokenize": "providers of a GatewayBackend have none",
    "AiProvider.copilot": "its credential is a person's, which belongs to no cluster",
    "ApiKey.allowedModels": "keys in Secrets have key, keyHash and metadata, which a rule can read",
    "AzureAuth.developerImplicit": "the login of a developer belongs to no cluster",
    "BackendPolicies.authorization": "GatewayPolicies authorize requests before a backend is chosen",
    "BackendPolicies.inferenceRouting": "an InferencePool names its endpoint picker itself",
    "BackendPolicies.proxyProtocol": "GatewayBackends have none",
    "BackendPolicies.sessionAffinity": "GatewayBackends have none",
    "TcpBackendPolicies.proxyProtocol": "GatewayBackends have none",
    "AttachedPolicies.sessionAffinity": "GatewayBackends have none",
    **dict.fromkeys(
        ("RoutePolicies.usageHeaders", "AttachedPolicies.usageHeaders", "LlmPolicies.usageHeaders",
         *(f"UsageHeaders.{name}" for name in ("cost", "tokens", "overhead", "generation"))),
        "a GatewayPolicy has none",
    ),
    **dict.fromkeys((f"{name}.resources" for name in ("Llm", "LlmBackend")), _NO_RESOURCES),
    **dict.fromkeys((f"LlmResources.{name}" for name in ("defaultProvider", "providers", "lists", "authorization")),
                    _NO_RESOURCES),
    **dict.fromkeys((f"{owner}.{name}" for owner in ("Model", "ProviderDefaults") for name in (
        "defaults", "overrides", "streamTimeouts", "promptCaching", "unsupportedParameters",
    )), "a GatewayModel has none"),
    **dict.fromkeys(("Model.passthrough", "Model.matches", "ModelMatch.headers"), "a GatewayModel has none"),
    **dict.fromkeys((f"ModelParams.{name}" for name in ("hostOverride", "pathOverride", "pathPrefix")),
                    "a GatewayModel has a baseURL"),
    "ModelParams.tokenize": "a GatewayModel has none",
    "LlmPolicies.oidc": "resources verify tokens, and log nobody in",
    "AttachedPolicies.requestRedirect": _NO_FILTER,
    "AttachedPolicies.requestMirror": _NO_FILTER,
    "AttachedPolicies.a2a": "an agent is a GatewayBackend of the kind a2a",
    "CustomProvider.providerOverride": "a custom provider is named by its GatewayBackend",
    "DenyWithStatus.denyWithStatus": "resources refuse with the gateway's own status",
    "ExtAuthzBody.allowPartialMessage": "a larger body is refused, not cut",
    "ExtAuthzBody.packAsBytes": "bodies are sent as texts",
    "FrontendPolicies.networkExtAuthz": "a service is asked about requests, not about connections",
    "RequestGuard.rejection": _NO_REJECTION,
    "ResponseGuard.rejection": _NO_REJECTION,
    **dict.fromkeys((f"GuardStreamSettings.{name}" for name in ("masks", "overlapBytes", "windowBytes")),
                    "resources say whether streams are guarded, and no more"),
    **dict.fromkeys((f"{name}.baseUrl" for name in ("BedrockGuard", "ModelArmorGuard", "ModerationGuard")),
                    "resources call the vendor's own host"),
    "McpAuthentication.jwtValidationOptions": "a rule of an authorization can require a claim",
    "McpAuthentication.redirectUris": "a GatewayPolicy has none",
    "McpAuthentication.clientSecret": "a GatewayPolicy that serves metadata has none",
    "JwtProvider.jwtValidationOptions": "a rule of an authorization can require a claim",
    "JwtSingle.jwtValidationOptions": "a rule of an authorization can require a claim",
    "JwtOptions.requiredClaims": "a rule of an authorization can require a claim",
    "McpBackend.dnsRebindingProtection": "a GatewayBackend has none: host names are those of its routes",
    "Mcp.dnsRebindingProtection": "a GatewayBackend has none: host names are those of its routes",
    **dict.fromkeys(("McpGuardrail.grpc", "GuardrailMethods.checkRequest", "GuardrailMethods.checkResponse"),
                    "a GatewayPolicy asks a service by the usual methods"),
    "McpTarget.openapi": "targets of a GatewayBackend are servers of MCP",
    "McpTarget.stdio": "a process is started by nobody in a cluster: let it be a server of its own",
    "NamedBackend.internal": "a Gateway has no ports without a socket",
    "RouteBackend.internal": "a Gateway has no ports without a socket",
    "Bind.mode": "a Gateway has no ports without a socket",
    "Bind.tunnelProtocol": "a listener of a Gateway is no tunnel",
    "Retry.budget": "neither GatewayPolicies nor HTTPRoutes have one",
    "CatalogSource.file": "a file of this machine is on no other: GatewayParameters.modelCatalog names ConfigMaps",
    "RedisTls.cert": "a file of this machine is on no other, and GatewayParameters mount none",
    "RedisTls.key": "a file of this machine is on no other, and GatewayParameters mount none",
    "RedisTls.root": "a file of this machine is on no other, and GatewayParameters mount none",
    "OtlpMetrics.service": "rawConfig cannot name what is delivered later: say its host",
    "OtlpMetrics.backend": "rawConfig cannot name what is delivered later: say its host",
    "ServerTls.cipherSuites": _LISTENER_TLS,
    "ServerTls.keyExchangeGroups": _LISTENER_TLS,
    "ServerTls.minTLSVersion": _LISTENER_TLS,
    "ServerTls.minTlsVersion": _LISTENER_TLS,
    "ServerTls.maxTLSVersion": _LISTENER_TLS,
    "ServerTls.maxTlsVersion": _LISTENER_TLS,
    "ServerTls.spiffe": "a listener of a Gateway has the certificate of a Secret",
    "SimplePolicies.requestHeaderModifier": _NO_HEADERS,
    "BedrockGuardPolicies.requestHeaderModifier": _NO_HEADERS,
    "BedrockGuardPolicies.transformations": "calls of a guard have none",
    "TcpRoutePolicies.backendTLS": "connections have no policies: a GatewayBackend has tls",
    "Transform.replace": "resources say set, add and remove",
    **dict.fromkeys((f"{name}.oidc" for name in (
        "Gateway", "GatewayListener", "GatewayPolicies", "RoutePolicies", "AttachedPolicies",
    )), "resources verify tokens, and log nobody in"),
    **dict.fromkeys((f"DiscoveredService.{name}" for name in (
        "endpoints", "ipFamilies", "loadBalancer", "subjectAltNames", "vips",
    )), _SERVICE),
    **dict.fromkeys((f"DiscoveredWorkload.{name}" for name in (
        "canonicalName", "canonicalRevision", "capacity", "clusterId", "hostname", "network", "networkMode", "protocol",
        "serviceAccount", "trustDomain", "workloadName", "workloadType",
    )), _WORKLOAD),
}  # fmt: skip
# Resources have a form at some places: these at references of routes to their backends.
PARTLY: Final[dict[str, str]] = dict.fromkeys((f"BackendPolicies.{name}" for name in (
    "requestHeaderModifier", "requestRedirect", "responseHeaderModifier",
)), _NO_HEADERS)  # fmt: skip
_OTHERS: Final = "no resource has a field for it"


def reason(shape: str, field: str) -> str:
    """Return why a field of an object of the file has no form, or has none at some places."""
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
# Fields of the file that no resource says

Made from tables: `python -m headgate.cluster.convert.fields > docs/cluster-fields.md`.

`headgate convert` writes a [configuration file](policies.md) as resources of a cluster, and resources as a file. Of the
{all} fields of the file, those below have no form among the resources; all others have one that comes to the same
configuration, which a test shows for each. What stands in such a field has no form either. Objects have the names of
the [JSON schema](schema/config.schema.json).

Settings of the process (`config`) are `rawConfig` of GatewayParameters. What is secret there comes from the
environment, out of a Secret.

"""


_REFUSED: Final = """\
## Fields of resources that are refused

An API server takes these. The status of the object says that they are not in force, and why; the other parts are.

| resource | field | of | why |
|---|---|---|---|
"""


def page() -> str:
    """Return the page about the fields."""
    every = list(fields())
    found = [_HEAD.format(all=len(every))]
    tables = {"Without a form": REASONS, "With a form at some places": PARTLY}
    for title, table in tables.items():
        found.append(f"## {title}\n\n| object | field | why |\n|---|---|---|\n")
        for name in every:
            if name in table:
                shape, _, field = name.partition(".")
                found.append(f"| {shape} | `{field}` | {table[name]} |\n")
        found.append("\n")
    found.append(_REFUSED)
    for (part, place), why in REFUSED.items():
        found.append(f"| GatewayPolicy | `frontend.{part}` | {place or 'anything'} | {why} |\n")
    return "".join(found).rstrip("\n") + "\n"


if __name__ == "__main__":
    sys.stdout.write(page())
