"""Names of suites and groups."""

from __future__ import annotations

import ssl

from headgate_engine.tls.names import SUITE_ALIASES, SUITES, SUITES_1_2, SUITES_1_3

SPECIFIED = {
    "TLS13_AES_256_GCM_SHA384", "TLS13_AES_128_GCM_SHA256", "TLS13_CHACHA20_POLY1305_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256", "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
}  # fmt: skip


def test_the_suites_of_the_specification_and_no_others() -> None:
    assert SUITES.keys() == SPECIFIED
    assert not SUITES_1_2.keys() & SUITES_1_3.keys()
    assert {SUITE_ALIASES[theirs] for theirs in SUITES.values()} == SPECIFIED


def test_openssl_knows_them() -> None:
    known = {cipher["name"] for cipher in ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).get_ciphers()}
    assert set(SUITES.values()) <= known
