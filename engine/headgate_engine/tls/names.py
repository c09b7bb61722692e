"""Names of TLS versions, cipher suites and key exchange groups as a configuration has them, and as OpenSSL has them."""

from __future__ import annotations

from typing import Final

VERSIONS: Final[dict[str, int]] = {"TLS_V1_2": 0x0303, "TLS_V1_3": 0x0304}
# In the default order of preference. The last one of each is used only where it is listed.
SUITES_1_3: Final[dict[str, str]] = {
    "TLS13_AES_256_GCM_SHA384": "TLS_AES_256_GCM_SHA384",
    "TLS13_AES_128_GCM_SHA256": "TLS_AES_128_GCM_SHA256",
    "TLS13_CHACHA20_POLY1305_SHA256": "TLS_CHACHA20_POLY1305_SHA256",
}
SUITES_1_2: Final[dict[str, str]] = {
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384": "ECDHE-ECDSA-AES256-GCM-SHA384",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384": "ECDHE-RSA-AES256-GCM-SHA384",
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256": "ECDHE-ECDSA-AES128-GCM-SHA256",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256": "ECDHE-RSA-AES128-GCM-SHA256",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-ECDSA-CHACHA20-POLY1305",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-RSA-CHACHA20-POLY1305",
}
SUITES: Final[dict[str, str]] = SUITES_1_3 | SUITES_1_2
# Other spellings of the same suites: OpenSSL's, and those of RFC 8446 for TLS 1.3.
SUITE_ALIASES: Final[dict[str, str]] = {theirs: ours for ours, theirs in SUITES.items()}
# In the default order of preference. X25519MLKEM768 needs OpenSSL 3.5.
GROUPS: Final[dict[str, str]] = {
    "X25519": "X25519",
    "P-256": "P-256",
    "P-384": "P-384",
    "X25519_MLKEM768": "X25519MLKEM768",
}
