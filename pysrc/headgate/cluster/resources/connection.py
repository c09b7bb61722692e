"""How backends are reached: TCP, TLS, HTTP, proxies; and what backends and calls to services both can be given."""

from __future__ import annotations

from typing import Final

from headgate.cluster.resources.credentials import AUTH
from headgate.cluster.resources.formats import (
    CA_REF,
    CONNECT_TIMEOUT,
    ONE_ENDPOINT,
    REQUEST_TIMEOUT,
    SECONDS,
    SECRET_REF,
    SHORT,
    TINY,
    endpoint,
)
from headgate.cluster.resources.schema import (
    Json,
    at_least_one,
    at_most_one,
    default,
    described,
    listed,
    record,
    rule,
    text,
    words,
)
from headgate.cluster.resources.shapes import entry, like, of, words_of
from headgate.config.shape.upstream import HTTP as HTTP_SHAPE
from headgate.config.shape.upstream import KEEPALIVE, KEY_GROUPS

# Whether to send any is said by whether the block is there.
KEEPALIVE_FIELDS: Final = like(KEEPALIVE, {"time": SECONDS, "interval": SECONDS}, without=("enabled",))
TCP: Final = record({"keepalive": KEEPALIVE_FIELDS, "connectTimeout": CONNECT_TIMEOUT})

SERVER_NAME: Final = text(1, 253, r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$")
TLS: Final = record(
    {
        "certificateSource": default(words("Inline", "SPIFFE"), "Inline"),
        "mtlsCertificateRef": described(
            listed(SECRET_REF, 0, 1),
            "A Secret with tls.key, tls.crt and, for the server's authority, ca.cert or ca.crt.",
        ),
        "caCertificateRefs": described(
            listed(CA_REF, 0, 1),
            "ca.crt there is trusted, before that of mtlsCertificateRef. Unset: the system's.",
        ),
        "insecureSkipVerify": described(
            words("All", "Hostname"), "All: no verification. Hostname: the authority is checked, the name is not."
        ),
        "sni": described(SERVER_NAME, "The name that is asked for and verified. Unset: the destination's host."),
        "verifySubjectAltNames": listed(SHORT, 1, 16),
        "alpnProtocols": listed(TINY, 1, 16),
        "keyExchangeGroups": listed(words_of(KEY_GROUPS), 1, len(KEY_GROUPS.words)),
    },
    rules=(
        at_most_one("insecureSkipVerify", "verifySubjectAltNames"),
        rule(
            "!has(self.insecureSkipVerify) || self.insecureSkipVerify != 'All' || !has(self.caCertificateRefs)",
            "insecureSkipVerify All may not be set together with caCertificateRefs",
        ),
        rule(
            "self.certificateSource != 'SPIFFE' || !(has(self.mtlsCertificateRef) || has(self.caCertificateRefs) || "
            "has(self.insecureSkipVerify))",
            "certificateSource SPIFFE may not be set together with mtlsCertificateRef, caCertificateRefs or "
            "insecureSkipVerify",
        ),
    ),
)
HTTP: Final = record(
    {"version": of(entry(HTTP_SHAPE, "version")), "requestTimeout": REQUEST_TIMEOUT},
    rules=(at_least_one("version", "requestTimeout"),),
)
TUNNEL: Final = described(record(endpoint(path=False), rules=(ONE_ENDPOINT,)), "A proxy on the way to the backend.")

SIMPLE_FIELDS: Final[dict[str, Json]] = {"tcp": TCP, "tls": TLS, "http": HTTP, "tunnel": TUNNEL, "auth": AUTH}
SIMPLE: Final = record(SIMPLE_FIELDS, rules=(at_least_one(*SIMPLE_FIELDS),))

FRONTEND_TCP: Final = record({"keepalive": KEEPALIVE_FIELDS}, required=("keepalive",))
