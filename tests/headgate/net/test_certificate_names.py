"""Which of several certificates of a listener is shown."""

from __future__ import annotations

import trustme

from headgate.document.secret import Secret
from headgate.ir.tls import ServerPair, ServerTls
from headgate.net.certificate_names import NamedCertificates, names_of
from headgate_engine.tls.context import TlsContext

AUTHORITY = trustme.CA()


def pair(*names: str, common: str | None = None) -> tuple[bytes, Secret]:
    found = AUTHORITY.issue_cert(*names, common_name=common)
    return b"".join(one.bytes() for one in found.cert_chain_pems), Secret(found.private_key_pem.bytes().decode())


def test_the_name_of_the_client_chooses() -> None:
    pairs = [pair("a.test"), pair("b.test", "*.b.test"), pair("b.test", "c.test"), pair("x.b.test")]
    others = tuple(ServerPair(cert_file=None, key_file=None, cert_pem=cert, key_pem=key) for cert, key in pairs[1:])
    tls = ServerTls(cert_file=None, key_file=None, cert_pem=pairs[0][0], key_pem=pairs[0][1], key="k", others=others)
    made: list[TlsContext] = []

    def make(cert: bytes, key: bytes, number: int) -> TlsContext:
        assert (cert, key.decode()) == (pairs[number][0], pairs[number][1].reveal())
        made.append(TlsContext(server=True, cert=cert, key=key))
        return made[-1]

    found = NamedCertificates(tls, make)
    wanted = {
        "a.test": 0, "b.test": 1, "any.b.test": 1, "c.test": 2, "x.b.test": 3, "far.any.b.test": 0, "other.test": 0, None: 0,
    }  # fmt: skip
    assert {name: made.index(found.find(name)) for name in wanted} == wanted


def test_names_of_a_certificate() -> None:
    assert list(names_of(pair("A.test", "*.b.test")[0])) == ["a.test", "*.b.test"]
    # An address is no name that a client can ask for.
    assert list(names_of(pair("127.0.0.1")[0])) == []
