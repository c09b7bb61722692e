"""Names of header fields that belong to a connection or to a forwarder, in one place for both halves of the gateway.

All names are in lower case. Sets of bytes are for the engine, which reads names as they lie in a head.
"""

from __future__ import annotations

# Fields of one connection, not of the message: RFC 9110 section 7.6.1 with the two of RFC 9112 sections 6.1 and 7.1.2
# that frame a body, and proxy-connection, which old clients send (RFC 9112 appendix C.2.2).
HOP_BY_HOP = frozenset(
    ("connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade")
)
# Fields that a connection writes itself from what it is told: never copied from one message to another, never edited.
MESSAGE_FRAMING = HOP_BY_HOP | {"content-length"}
# Those of a request: the host is the authority of its target (RFC 9112 section 3.2).
REQUEST_FRAMING = MESSAGE_FRAMING | {"host"}
# Challenge of, and credentials for, the next proxy (RFC 9110 section 11.7).
PROXY_AUTHENTICATE = "proxy-authenticate"
PROXY_AUTHORIZATION = "proxy-authorization"

# What a forwarder says about the client behind it: RFC 7239, and the older fields that do the same.
FORWARDED = "forwarded"
X_FORWARDED = "x-forwarded-"
X_FORWARDED_FOR = X_FORWARDED + "for"
X_FORWARDED_HOST = X_FORWARDED + "host"
X_FORWARDED_PROTO = X_FORWARDED + "proto"


def encoded(names: frozenset[str]) -> frozenset[bytes]:
    """Return the names as the engine reads them."""
    return frozenset(name.encode("ascii") for name in names)
