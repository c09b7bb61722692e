"""Settings of TLS."""

from __future__ import annotations

import os
import ssl
from pathlib import Path

import pytest
import trustme
from tests.engine.tls.tls_rig import (
    A_TEST,
    FAILED,
    OPEN,
    ROOTS,
    Peer,
    client,
    pair,
    python_client,
    python_server,
    server,
    shake,
)

from headgate_drivers.tls import cipher_suite, feed
from headgate_engine.errors import TlsError
from headgate_engine.tls.connection import TlsConnection
from headgate_engine.tls.context import TlsContext, read_system_roots, supports_group
from headgate_engine.tls.library import version
from headgate_engine.tls.names import GROUPS, SUITES, SUITES_1_2, SUITES_1_3

FAULTS = {
    "no certificate": ({"cert": None, "key": None}, "a listener needs a certificate and its key"),
    "an empty chain": ({"cert": b"text"}, "there is no certificate"),
    "no key": ({"key": b"text"}, "there is no readable, unencrypted private key"),
    "the key of another": ({"key": pair("b.test").key}, "the key does not belong to the certificate"),
    "no root": ({"roots": b"text"}, "there is no root certificate"),
    "no group": ({"groups": ("P-521",)}, "'P-521' is no key exchange group"),
    "no suite": ({"suites": ("TLS_RSA_WITH_RC4",)}, "'TLS_RSA_WITH_RC4' is no cipher suite"),
    "suites of a version that is not allowed": (
        {"suites": tuple(SUITES_1_2), "least": "TLS_V1_3"},
        "no cipher suite is left for the TLS versions that are allowed",
    ),
    "no version": ({"least": "TLS_V1_0"}, "no TLS versions: TLS_V1_0 to TLS_V1_3"),
    "an empty protocol": ({"alpn": (b"",)}, "a protocol name of ALPN has 1 to 255 bytes"),
}


@pytest.mark.parametrize("case", FAULTS)
def test_what_is_refused(case: str) -> None:
    options, message = FAULTS[case]
    given = {"cert": A_TEST.cert, "key": A_TEST.key, **options}
    with pytest.raises(TlsError) as refused:
        TlsContext(server=True, **given)
    assert str(refused.value).startswith(message)


@pytest.mark.parametrize("suite", SUITES)
def test_each_suite_alone(suite: str) -> None:
    rsa = "_RSA_" in suite
    found = pair("a.test", key_type=trustme.KeyType.RSA) if rsa else A_TEST
    ours, peer = TlsConnection(server(found, suites=(suite,))), Peer(python_client())
    shake(ours, peer)
    assert (ours.state, cipher_suite(ours)) == (OPEN, SUITES[suite])
    assert ours.version() == ("TLSv1.3" if suite in SUITES_1_3 else "TLSv1.2")


def test_the_order_of_suites_is_ours() -> None:
    for suites in (tuple(SUITES_1_3), tuple(reversed(SUITES_1_3))):
        ours, peer = TlsConnection(server(suites=suites)), Peer(python_client())
        shake(ours, peer)
        assert cipher_suite(ours) == SUITES[suites[0]]


def test_chacha_is_used_only_where_it_is_listed() -> None:
    def configure(context: ssl.SSLContext) -> None:
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        context.set_ciphers("ECDHE+CHACHA20")

    ours = TlsConnection(server())
    shake(ours, Peer(python_client(configure)))
    assert (ours.state, ours.reason) == (FAILED, "cipher")


@pytest.mark.parametrize("group", GROUPS)
def test_groups(group: str) -> None:
    if not supports_group(group):
        with pytest.raises(TlsError, match=f"^{version()} has no key exchange group {group}$"):
            server(groups=(group,))
        return
    ours, other = TlsConnection(server(groups=(group,))), TlsConnection(client(groups=(group,)), server_name="a.test")
    out = feed(other, b"")[1]
    for _ in range(4):
        out = feed(other, feed(ours, out)[1])[1]
    assert (ours.state, other.state) == (OPEN, OPEN)
    names = [name for name in GROUPS if name != group and supports_group(name)]
    ours, other = TlsConnection(server(groups=(group,))), TlsConnection(client(groups=(names[0],)), server_name="a.test")
    feed(ours, feed(other, b"")[1])
    assert (ours.state, ours.reason) == (FAILED, "cipher")


def test_an_intermediate_authority_may_be_a_root() -> None:
    top = trustme.CA()
    middle = top.create_child_ca()
    leaf = middle.issue_cert("a.test")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    leaf.configure_cert(context)
    ours = TlsConnection(client(roots=middle.cert_pem.bytes()), server_name="a.test")
    shake(ours, Peer(context, server_side=True))
    assert ours.state == OPEN


def test_a_chain_is_sent_whole() -> None:
    leaf = trustme.CA()
    middle = leaf.create_child_ca()
    made = middle.issue_cert("a.test")
    chain = b"".join(blob.bytes() for blob in made.cert_chain_pems)
    peer = Peer(ssl.create_default_context(cadata=leaf.cert_pem.bytes().decode()))
    ours = TlsConnection(TlsContext(server=True, cert=chain, key=made.private_key_pem.bytes()))
    shake(ours, peer)
    assert ours.state == OPEN


def test_a_context_is_set_up_once_and_before_it_is_used() -> None:
    with pytest.raises(ValueError, match="never set up"):
        TlsConnection(TlsContext.__new__(TlsContext))
    context = client()
    with pytest.raises(ValueError, match="once"):
        context.__init__(server=False)  # type: ignore[misc]
    assert context.verified
    assert not client(roots=None).verified


def test_roots_of_the_system_that_change_are_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = tmp_path / "roots.pem"
    store.write_bytes(trustme.CA().cert_pem.bytes())
    monkeypatch.setenv("SSL_CERT_FILE", str(store))
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path / "none"))

    def state() -> int:
        read_system_roots()
        context = client(roots=None, system_roots=True)
        context.trust_system()
        ours = TlsConnection(context, server_name="a.test")
        shake(ours, Peer(python_server(), server_side=True))
        return ours.state

    assert state() == FAILED
    store.write_bytes(ROOTS)
    written = store.stat().st_mtime_ns
    os.utime(store, ns=(written, written + 1_000_000_000))
    assert state() == OPEN
    store.unlink()
    assert state() == FAILED
