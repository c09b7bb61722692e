"""Names of header fields that belong to a connection or to a proxy, for the engine and the Python code.

All names are in lower case. The engine uses sets of bytes, as it reads names from the bytes of a head.
"""

from __future__ import annotations

# Fields of one connection, not of the message: those of RFC 9110 section 7.6.1, the two of RFC 9112 sections 6.1 and
# 7.1.2 that frame a body, and proxy-connection, which old clients send (RFC 9112 appendix C.2.2).
HOP_BY_HOP = frozenset(
    ("connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade")
)
# Fields that a connection writes itself: never copied from one message to another, never edited by steps.
MESSAGE_FRAMING = HOP_BY_HOP | {"content-length"}
# The same for requests: the host is the authority of the target (RFC 9112 section 3.2).
REQUEST_FRAMING = MESSAGE_FRAMING | {"host"}
# Challenge and credentials between a client and the next proxy (RFC 9110 section 11.7).
PROXY_AUTHENTICATE = "proxy-authenticate"
PROXY_AUTHORIZATION = "proxy-authorization"

# Fields in which a proxy describes its client: RFC 7239, and the older fields for the same purpose.
FORWARDED = "forwarded"
X_FORWARDED = "x-forwarded-"
X_FORWARDED_FOR = X_FORWARDED + "for"
X_FORWARDED_HOST = X_FORWARDED + "host"
X_FORWARDED_PROTO = X_FORWARDED + "proto"

# What a trailer must not say (RFC 9110 section 6.5.1): some receivers merge trailers into the head. Framing, routing,
# credentials, modifiers of the request, controls of the response, the format of the content, who the client is.
FORBIDDEN_TRAILERS = REQUEST_FRAMING | frozenset(
    (PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, "authorization", "www-authenticate", "cookie", "set-cookie",
     "content-encoding", "content-type", "content-range", "cache-control", "expect", "max-forwards", "pragma", "range",
     "if-match", "if-none-match", "if-modified-since", "if-unmodified-since", "if-range",
     "age", "date", "expires", "location", "retry-after", "vary", "warning",
     FORWARDED, X_FORWARDED_FOR, X_FORWARDED_HOST, X_FORWARDED_PROTO, "x-real-ip")
)  # fmt: skip


def encoded(names: frozenset[str]) -> frozenset[bytes]:
    """Return the names as bytes, for the engine."""
    return frozenset(name.encode("ascii") for name in names)
