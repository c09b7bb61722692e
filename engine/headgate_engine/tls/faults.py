"""Why handshakes fail, in words that a metric can have as a label."""

from __future__ import annotations

from typing import Final

# Reason to what it means; documented in docs/operate.md.
REASONS: Final[dict[str, str]] = {
    "alert": "the peer refused it with an alert",
    "alpn": "no common protocol of ALPN",
    "certificate": "the peer's certificate is missing or was not accepted",
    "cipher": "no common cipher suite, group or signature algorithm",
    "closed": "the connection ended",
    "identity": "there is no certificate for the listener: none has come, or none may be made for the name",
    "name": "no listener has the server name",
    "overload": "too many connections are open",
    "plain": "what came is no TLS",
    "protocol": "another fault of the protocol",
    "timeout": "the handshake took too long",
    "version": "no common version of TLS",
}
# Reason codes of OpenSSL 3 (openssl/sslerr.h).
CODES: Final[dict[int, str]] = {
    101: "cipher",  # no suitable key share
    109: "cipher",  # no shared sigalgs in OpenSSL 1.1; kept by some distributions
    118: "cipher",  # no suitable signature algorithm
    134: "certificate",  # certificate verify failed
    156: "plain",  # http request
    193: "cipher",  # no shared cipher
    199: "certificate",  # peer did not return a certificate
    207: "plain",  # https proxy request
    235: "alpn",  # no application protocol
    258: "version",  # unsupported protocol
    267: "version",  # wrong version number
    276: "cipher",  # no shared signature algorithms
    296: "cipher",  # no suitable groups
    376: "cipher",  # no shared signature algorithms
    410: "cipher",  # no shared groups
}
# Alerts of the peer are numbered from here.
FIRST_ALERT: Final = 1000


def reason_of(code: int) -> str:
    """Return the reason of an error code of OpenSSL's SSL library."""
    return "alert" if code >= FIRST_ALERT else CODES.get(code, "protocol")
