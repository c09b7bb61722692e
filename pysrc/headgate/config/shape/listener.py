"""Ports: gateways, binds, listeners and their TLS."""

from __future__ import annotations

from typing import Final

from headgate.config.shape.route import GATEWAY_PHASE, GATEWAY_POLICIES, ROUTE, TCP_ROUTE
from headgate.config.shape.scalars import HOSTNAME, KEY_OR_FILE, PORT, STRING, STRINGS, nothing
from headgate.config.shape.vocabulary import ListOf, Object, WordChoice, maybe, optional, required

TLS_VERSION: Final = WordChoice("TlsVersion", ("TLS_V1_0", "TLS_V1_1", "TLS_V1_2", "TLS_V1_3"))
LEAST_VERSION: Final = maybe(TLS_VERSION)
MOST_VERSION: Final = maybe(TLS_VERSION)

# Of a Gateway's certificateRefs there are 64 at most.
MORE_CERTIFICATES: Final = ListOf(
    Object("ServerPair", {"cert": required(STRING), "key": required(KEY_OR_FILE)}), least=1, most=63
)
SERVER_TLS: Final = Object(
    "ServerTls",
    {
        "mode": optional(WordChoice("ServerTlsMode", ("static", "dynamicCa"))),
        "cert": maybe(STRING),
        "key": maybe(KEY_OR_FILE),
        "moreCertificates": maybe(MORE_CERTIFICATES),
        "root": maybe(STRING),
        # Of the Gateway API (FrontendTLSValidation), with its words.
        "clientValidation": optional(WordChoice("ClientValidation", ("allowValidOnly", "allowInsecureFallback"))),
        "spiffe": maybe(nothing("ServerSpiffe")),
        "cipherSuites": maybe(STRINGS),
        "minTLSVersion": LEAST_VERSION,
        "minTlsVersion": LEAST_VERSION,
        "maxTLSVersion": MOST_VERSION,
        "maxTlsVersion": MOST_VERSION,
        "keyExchangeGroups": maybe(STRINGS),
    },
    apart=(("minTLSVersion", "minTlsVersion"), ("maxTLSVersion", "maxTlsVersion")),
)
BIND_PROTOCOL: Final = WordChoice("BindProtocol", ("HTTP", "HTTPS", "TLS", "TCP", "HBONE"))
GATEWAY_PROTOCOL: Final = WordChoice("GatewayProtocol", ("HTTP", "HTTPS", "TCP", "TLS"))
BIND: Final = Object(
    "Bind",
    {
        "port": maybe(PORT),
        "listeners": required(
            ListOf(
                Object(
                    "BindListener",
                    {
                        "name": maybe(STRING),
                        "namespace": maybe(STRING),
                        "hostname": maybe(HOSTNAME),
                        "protocol": optional(BIND_PROTOCOL),
                        "tls": maybe(SERVER_TLS),
                        "routes": maybe(ListOf(ROUTE)),
                        "tcpRoutes": maybe(ListOf(TCP_ROUTE)),
                        "policies": maybe(GATEWAY_POLICIES),
                    },
                )
            )
        ),
        "tunnelProtocol": optional(
            WordChoice(
                "TunnelProtocol",
                ("direct", "proxy", "connect", "hboneWaypoint", "hboneGateway"),
                ("hboneWaypoint",),  # who is served behind it is told by the control plane
            )
        ),
        "mode": optional(WordChoice("BindMode", ("standard", "internal"))),
    },
)
GATEWAY: Final = Object(
    "Gateway",
    {
        "port": maybe(PORT),
        "protocol": maybe(GATEWAY_PROTOCOL),
        "listeners": optional(
            ListOf(
                Object(
                    "GatewayListener",
                    {
                        "name": maybe(STRING),
                        "hostname": maybe(HOSTNAME),
                        "protocol": maybe(GATEWAY_PROTOCOL),
                        "tls": maybe(SERVER_TLS),
                        **GATEWAY_PHASE,
                    },
                )
            )
        ),
        "tls": maybe(SERVER_TLS),
        **GATEWAY_PHASE,
    },
)
