"""Objects of a cluster with faults: golden files say which conditions tell of them. With a table of all conditions."""

from __future__ import annotations

from typing import Any, Final

from manifests import (
    Json,
    entries,
    gateway,
    gateway_class,
    http_route,
    listener,
    listener_set,
    made,
    model,
    of_models,
    own,
    service,
    to,
)

MAIN = {"name": "main", "namespace": "edge"}
BASE = [gateway_class(), service()]
LATER = {"creationTimestamp": "2026-02-01T00:00:00Z"}
OTHER = {"group": "other.test", "kind": "Other", "name": "x"}


def at(section: str, **more: Any) -> Json:
    return {**MAIN, "sectionName": section, **more}


def secured(name: str, port: int, **reference: Any) -> Json:
    return listener(name, port, "HTTPS", tls={"certificateRefs": [{"name": "gone", **reference}]})


def demanding(*references: Json, mode: str = "AllowValidOnly") -> Json:
    return {"validation": {"caCertificateRefs": list(references), "mode": mode}}


def ca(name: str = "gone", kind: str = "ConfigMap", **more: Any) -> Json:
    return {"group": "", "kind": kind, "name": name, **more}


def with_spec(document: Json, **more: Any) -> Json:
    return {**document, "spec": {**document["spec"], **more}}


def backend_tls(name: str, target: str, *references: Json, age: str = "2026-01-01T00:00:00Z", **validation: str) -> Json:
    known = {"caCertificateRefs": list(references)} if references else {"wellKnownCACertificates": "System"}
    said = {"hostname": "cart.test", **known, **validation}
    spec = {"targetRefs": [{"group": "", "kind": "Service", "name": target}], "validation": said}
    return made("BackendTLSPolicy", name, spec, creationTimestamp=age)


def rewrite(**more: Any) -> Json:
    return {"type": "URLRewrite", "urlRewrite": more}


REDIRECT = {"type": "RequestRedirect", "requestRedirect": {"hostname": "a.test"}}
PATTERN = {"matches": [{"path": {"type": "RegularExpression", "value": "("}}], "backendRefs": [to()]}
POOL = {"group": "inference.networking.k8s.io", "kind": "InferencePool", "name": "models"}
TLS: Final = {
    "frontend": {
        "default": demanding(ca(), mode="AllowInsecureFallback"),
        "perPort": [
            {"port": 8444, "tls": demanding(ca(kind="Other"))}, {"port": 8445, "tls": demanding(ca(namespace="store"))},
        ],
    },
    "backend": {"clientCertificateRef": {"name": "gone"}},
}  # fmt: skip
FAULT_CASES: Final[dict[str, list[Json]]] = {
    "faults-of-listeners": [
        *BASE,
        with_spec(gateway(
            listener(), listener("same", 80), listener("other", 80, "TCP"), listener("udp", 5353, "UDP"), listener("own", 15021),
            listener("kinds", 81, allowedRoutes={"namespaces": {"from": "All"}, "kinds": [{"kind": "TCPRoute"}]}),
            secured("gone", 8443), secured("kind", 8444), secured("away", 8445), secured("grant", 8446, namespace="store"),
            sets="All",
        ), tls=TLS),
        listener_set("shop/some", listener("fine", 8080), listener("udp", 5353, "UDP")), listener_set("shop/none", listener("udp", 5354, "UDP")),
        listener_set("shop/late", listener("same", 8080), listener("other", 8080, "TCP"), **LATER),
    ],
    "faults-of-gateways": [
        *BASE, with_spec(gateway(), addresses=[{"type": "other.test/Kind", "value": "x"}], allowedListeners={"namespaces": {"from": "All"}}), listener_set("shop/more"),
    ],
    "faults-of-addresses": [*BASE, with_spec(gateway(), addresses=[{"type": "Hostname", "value": "a.test"}], tls={"backend": {"clientCertificateRef": {"name": "gone", "namespace": "store"}}})],
    "faults-of-routes": [
        *BASE, gateway(listener(), listener("named", 81, hostname="a.test"), listener("same", 82, allowedRoutes={"namespaces": {"from": "Same"}})),
        http_route("shop/section", parent=at("gone")), http_route("shop/space", parent=at("same")), http_route("shop/name", parent=at("named"), hostnames=("b.test",)),
        http_route("shop/pattern", PATTERN), http_route("shop/some", PATTERN, {"backendRefs": [to()]}),
        http_route("shop/both", {"filters": [REDIRECT, rewrite(hostname="b.test")], "backendRefs": [to()]}),
        http_route("shop/gone", {"backendRefs": [to("gone")]}), http_route("shop/kind", {"backendRefs": [OTHER]}),
        http_route("shop/outside", {"backendRefs": [to("outside")]}), service("shop/outside", type="ExternalName", externalName="a.test"),
    ],
    "faults-of-backend-tls": [
        *BASE, gateway(), http_route(), service("shop/a"), service("shop/b"), service("shop/c"), entries("ConfigMap", "shop/none"),
        http_route("shop/more", {"backendRefs": [to("a"), to("b"), to("c")]}),
        backend_tls("shop/fine", "cart"), backend_tls("shop/late", "cart", age="2026-02-01T00:00:00Z"), backend_tls("shop/kind", "a", ca(kind="Other")),
        backend_tls("shop/gone", "b", ca("none")), backend_tls("shop/word", "c", wellKnownCACertificates="Other"),
    ],
    "faults-of-policies": [
        *BASE, gateway(), http_route(),
        made("GatewayPolicy", "shop/bad", {"targetRefs": [{"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "name": "cart"}],
                                           "traffic": {"retry": {"attempts": 1, "condition": "request.("}}}, "headgate.dev/v1alpha1"),
        made("GatewayPolicy", "edge/metrics", {"targetRefs": [{"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "main"}],
                                               "frontend": {"metrics": {"attributes": {"add": [{"name": "a", "expression": "request.path"}]}}}}, "headgate.dev/v1alpha1"),
    ],
    "faults-of-models": [
        *BASE, gateway(listener("ai", **of_models("HTTPRoute"))),
        http_route("shop/chat", {"name": "team", "backendRefs": [own("*", "GatewayModel")]}),
        model("shop/first", match={"model": "m"}), model("shop/second", match={"model": "m"}),
        model("shop/bad", match={"model": "n"}, policies={"auth": {"secretRef": {"name": "gone"}}}),
        model("shop/lost", {"kind": "HTTPRoute", "name": "chat", "sectionName": "gone"}, match={"model": "o"}),
        model("store/away", {"kind": "HTTPRoute", "name": "chat", "namespace": "shop"}, match={"model": "p"}),
        model("shop/pattern", match={"model": "q-*"}),
        model("shop/virtual", match={"model": "v"}, virtualModel={"weighted": {"targets": [{"modelRef": "pattern"}]}}),
    ],
    "faults-of-pools": [
        *BASE, gateway(), http_route("shop/models", {"backendRefs": [POOL]}),
        made("InferencePool", "shop/models", {"selector": {"matchLabels": {"app": "m"}}, "targetPorts": [{"number": 80}],
                                              "endpointPickerRef": {"name": "gone", "port": {"number": 9002}}}, "inference.networking.k8s.io/v1"),
    ],
}  # fmt: skip

GOLDEN = "golden/cluster/translate"
# Of what a test is: who makes the condition, and the file that shows it.
_PROCESS, _DEPLOY = "headgate/cluster/controller/test_process.py", "headgate/cluster/deploy/test_deployer.py"
_GATEWAY, _POLICIES = "headgate/cluster/translate/test_gateway.py", "headgate/cluster/translate/test_policies.py"
_TLS_OF_GATEWAY = "headgate/cluster/translate/test_gateway_tls.py"
_ROUTES = ("HTTPRoute", "GRPCRoute", "TLSRoute", "TCPRoute")


def _rows(kind: str, type_: str, status: str, *reasons: str, test: str = GOLDEN) -> list[tuple[str, str, str, str, str]]:
    return [(kind, type_, status, reason, test) for reason in reasons]


# Each condition with its reason: kind (and `/listener`), type, status, reason, and where it is shown.
CONDITIONS: Final = [
    *_rows("GatewayClass", "Accepted", "True", "Accepted", test="headgate/cluster/translate/test_against_api_server.py"),
    *_rows("Gateway", "Accepted", "True", "Accepted", "ListenersNotValid"),
    *_rows("Gateway", "Accepted", "False", "UnsupportedAddress"),
    *_rows("Gateway", "Accepted", "False", "ListenersNotValid", test=_GATEWAY),
    *_rows("Gateway", "Accepted", "False", "InvalidParameters", test=_DEPLOY),
    *_rows("Gateway", "Programmed", "True", "Programmed"),
    *_rows("Gateway", "Programmed", "False", "Invalid", "AddressNotUsable"),
    *_rows("Gateway", "Programmed", "False", "Pending", "AddressNotAssigned", "DeploymentFailed", test=_PROCESS),
    *_rows("Gateway", "ResolvedRefs", "False", "InvalidClientCertificateRef", "RefNotPermitted"),
    *_rows("Gateway", "ResolvedRefs", "True", "ResolvedRefs", test=_TLS_OF_GATEWAY),
    *_rows("Gateway", "InsecureFrontendValidationMode", "True", "ConfigurationChanged"),
    *[
        row
        for kind in ("Gateway/listener", "ListenerSet/listener")
        for row in (
            *_rows(kind, "Accepted", "True", "Accepted"),
            *_rows(kind, "Accepted", "False", "UnsupportedProtocol", "HostnameConflict", "ProtocolConflict"),
            *_rows(kind, "Conflicted", "False", "NoConflicts"),
            *_rows(kind, "Conflicted", "True", "HostnameConflict", "ProtocolConflict"),
            *_rows(kind, "ResolvedRefs", "True", "ResolvedRefs"),
            *_rows(kind, "Programmed", "True", "Programmed"),
            *_rows(kind, "Programmed", "False", "Invalid", "HostnameConflict", "ProtocolConflict"),
        )
    ],
    *_rows("Gateway/listener", "Accepted", "False", "NoValidCACertificate"),
    *_rows("Gateway/listener", "ResolvedRefs", "False", "InvalidCertificateRef", "RefNotPermitted", "InvalidRouteKinds"),
    *_rows("Gateway/listener", "ResolvedRefs", "False", "InvalidCACertificateRef", "InvalidCACertificateKind", test=_TLS_OF_GATEWAY),
    *_rows("Gateway/listener", "Programmed", "False", "AddressNotUsable"),
    *_rows("ListenerSet", "Accepted", "True", "Accepted", "ListenersNotValid"),
    *_rows("ListenerSet", "Accepted", "False", "NotAllowed", "ListenersNotValid", "ParentNotAccepted"),
    *_rows("ListenerSet", "Programmed", "True", "Programmed"),
    *_rows("ListenerSet", "Programmed", "False", "NotAllowed", "ListenersNotValid", "ParentNotAccepted"),
    *[row for kind in _ROUTES for row in _rows(kind, "Accepted", "True", "Accepted")],
    *_rows("HTTPRoute", "Accepted", "False", "NoMatchingParent", "NotAllowedByListeners", "NoMatchingListenerHostname", "UnsupportedValue",
           "IncompatibleFilters"),
    *_rows("TLSRoute", "Accepted", "False", "HostnameConflict"),
    *_rows("HTTPRoute", "PartiallyInvalid", "True", "UnsupportedValue"),
    *[row for kind in ("HTTPRoute", "TLSRoute") for row in _rows(kind, "ResolvedRefs", "True", "ResolvedRefs")],
    *_rows("HTTPRoute", "ResolvedRefs", "False", "BackendNotFound", "InvalidKind", "RefNotPermitted", "UnsupportedValue", "Invalid"),
    *[row for kind in ("GRPCRoute", "TCPRoute") for row in _rows(kind, "ResolvedRefs", "False", "BackendNotFound")],
    *_rows("GatewayPolicy", "Accepted", "True", "Valid", "PartiallyValid"),
    *_rows("GatewayPolicy", "Accepted", "False", "Invalid"),
    *_rows("GatewayPolicy", "Attached", "True", "Attached"),
    *_rows("GatewayPolicy", "Attached", "False", "Pending"),
    *_rows("GatewayPolicy", "StatusSummarized", "True", "StatusSummarized", test=_POLICIES),
    *_rows("GatewayBackend", "Accepted", "True", "Accepted"),
    *_rows("GatewayBackend", "Accepted", "False", "TranslationError"),
    *_rows("GatewayModel", "Accepted", "True", "Accepted"),
    *_rows("GatewayModel", "Accepted", "False", "Conflicted", "UnsupportedValue", "NoMatchingParent", "RefNotPermitted"),
    *_rows("GatewayModel", "ResolvedRefs", "True", "ResolvedRefs"),
    *_rows("GatewayModel", "ResolvedRefs", "False", "BackendNotFound", "UnsupportedValue"),
    *_rows("BackendTLSPolicy", "Accepted", "True", "Accepted"),
    *_rows("BackendTLSPolicy", "Accepted", "False", "NoValidCACertificate", "Conflicted", "Invalid"),
    *_rows("BackendTLSPolicy", "ResolvedRefs", "True", "ResolvedRefs"),
    *_rows("BackendTLSPolicy", "ResolvedRefs", "False", "InvalidKind", "InvalidCACertificateRef"),
    *_rows("InferencePool", "Accepted", "True", "Accepted"),
    *_rows("InferencePool", "ResolvedRefs", "True", "ResolvedRefs"),
    *_rows("InferencePool", "ResolvedRefs", "False", "InvalidExtensionRef"),
]  # fmt: skip
