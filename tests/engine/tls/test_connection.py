"""The TLS of a connection, with Python's ssl on the other side."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime

import pytest
from tests.engine.tls.tls_rig import (
    A_TEST,
    CA,
    ENDED,
    FAILED,
    OPEN,
    ROOTS,
    OddClient,
    Peer,
    client,
    leave_a_fault,
    pair,
    python_client,
    python_server,
    server,
    shake,
)

from headgate_drivers.tls import cipher_suite, feed, finish, is_resumable, move_keys, send
from headgate_engine.tls.connection import TlsConnection
from headgate_engine.tls.context import KeptSession
from headgate_engine.tls.tickets import TicketKeys

VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}


def only(version: str):
    def configure(context: ssl.SSLContext) -> None:
        context.minimum_version = context.maximum_version = VERSIONS[version]

    return configure


@pytest.mark.parametrize("version", VERSIONS)
def test_both_sides_agree_and_bytes_pass(version: str) -> None:
    peer, ours = Peer(python_client(only(version))), TlsConnection(server())
    shake(ours, peer)
    assert (ours.state, ours.version(), peer.secure.version()) == (OPEN, version, version)
    assert cipher_suite(ours) == peer.secure.cipher()[0]
    for size in (1, 16384, 16385, 200_000):
        data = bytes(range(256)) * (size // 256 + 1)
        assert peer.receive(send(ours, data[:size])) == data[:size]
        assert feed(ours, peer.send(data[:size])) == (data[:size], b"")
    assert peer.receive(finish(ours)) == b""
    assert peer.secure.read(1) == b"", "the peer knows that it was the end"


@pytest.mark.parametrize("version", VERSIONS)
def test_every_split_of_the_bytes(version: str) -> None:
    """A handshake and what follows it come byte by byte, and in pieces of every size up to two heads of records."""
    for step in [*range(1, 12), 100, 517, 1400]:
        peer, ours = Peer(python_client(only(version))), TlsConnection(server())
        shake(ours, peer, step)
        assert ours.state == OPEN, step
        sent = peer.send(b"first") + peer.send(b"second" * 40)
        found = b"".join(feed(ours, sent[at : at + step])[0] for at in range(0, len(sent), step))
        assert found == b"first" + b"second" * 40


def test_each_place_of_a_cut() -> None:
    """Two records are cut in two, at each place."""
    peer, ours = Peer(python_client()), TlsConnection(server())
    shake(ours, peer)
    first = peer.send(b"one") + peer.send(b"two")
    assert feed(ours, first)[0] == b"onetwo"
    length = len(first)
    for at in range(length + 1):
        sent = peer.send(b"one") + peer.send(b"two")
        assert feed(ours, sent[:at])[0] + feed(ours, sent[at:])[0] == b"onetwo"


def test_bytes_behind_the_handshake_in_one_read() -> None:
    peer, ours = Peer(python_client()), TlsConnection(server())
    out = feed(ours, peer.feed(b""))[1]
    last = peer.feed(out) + peer.send(b"request")
    assert feed(ours, last)[0] == b"request"


def test_the_end_of_the_peer() -> None:
    peer, ours = Peer(python_client()), TlsConnection(server())
    shake(ours, peer)
    with pytest.raises(ssl.SSLWantReadError):
        peer.secure.unwrap()
    assert feed(ours, peer.feed(b""))[0] == b""
    assert ours.state == ENDED
    assert peer.receive(send(ours, b"still")) == b"still"


@pytest.mark.parametrize("version", VERSIONS)
def test_sessions_are_resumed_by_another_worker(version: str) -> None:
    number = TicketKeys.number_now()
    peer_context, session = python_client(only(version)), None
    for reused in (False, True, True):
        # Each time another context with keys of its own, derived from the same secret.
        ours = TlsConnection(server(tickets=TicketKeys(b"s" * 32, number), identity=b"a"))
        peer = Peer(peer_context, session=session)
        shake(ours, peer)
        peer.receive(send(ours, b"x"))
        assert (peer.secure.session_reused, ours.resumed) == (reused, reused)
        session = peer.secure.session
    for options in ({"tickets": TicketKeys(b"t" * 32, number), "identity": b"a"},
                    {"tickets": TicketKeys(b"s" * 32, number), "identity": b"b"}, {}):  # fmt: skip
        peer, ours = Peer(peer_context, session=session), TlsConnection(server(**options))
        shake(ours, peer)
        assert (ours.state, ours.resumed) == (OPEN, False)


@pytest.mark.parametrize("version", VERSIONS)
def test_tickets_of_the_period_before_are_taken_and_renewed(version: str) -> None:
    number = TicketKeys.number_now()
    peer_context = python_client(only(version))
    # An earlier period's keys are made by a process whose clock is behind: here, by counting the periods otherwise.
    for ahead, reused in ((0, True), (1, True), (2, False)):
        early = TicketKeys(b"s" * 32, number)
        ours, peer = TlsConnection(server(tickets=early)), Peer(peer_context)
        shake(ours, peer)
        peer.receive(send(ours, b"x"))
        late = TicketKeys(b"s" * 32, number)
        move_keys(late, (number + ahead) * late.period_s)
        ours = TlsConnection(server(tickets=late))
        again = Peer(peer_context, session=peer.secure.session)
        shake(ours, again)
        assert ours.resumed == reused, ahead


@pytest.mark.parametrize("version", VERSIONS)
def test_a_client_resumes(version: str) -> None:
    peer_context = python_server()
    only(version)(peer_context)
    ours_context, kept = client(), KeptSession()
    for reused in (False, True, True):
        ours, peer = TlsConnection(ours_context, server_name="a.test", session=kept), Peer(peer_context, server_side=True)
        shake(ours, peer)
        feed(ours, peer.send(b"x"))
        assert (ours.state, ours.resumed, peer.secure.session_reused) == (OPEN, reused, reused)
        del ours        # without a close_notify: the session stays good
    assert is_resumable(kept)


NAMES = {
    "the name": ("a.test", True, OPEN, None),
    "another name": ("b.test", True, FAILED, "certificate verify failed: hostname mismatch"),
    "another name, not checked": ("b.test", False, OPEN, None),
    "an address": ("127.0.0.1", True, FAILED, "certificate verify failed: IP address mismatch"),
    "an address, not checked": ("127.0.0.1", False, OPEN, None),
}


@pytest.mark.parametrize("case", NAMES)
def test_the_name_of_a_server(case: str) -> None:
    name, checked, state, fault = NAMES[case]
    ours = TlsConnection(client(), server_name=name, check_name=checked)
    shake(ours, Peer(python_server(), server_side=True))
    assert (ours.state, ours.fault) == (state, fault)


def test_addresses_are_checked_against_addresses() -> None:
    for names, wanted, state in (((["10.0.0.1"]), "10.0.0.1", OPEN), ((["::1"]), "::1", OPEN), ((["a.test"]), "10.0.0.1", FAILED)):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        CA.issue_cert(*names).configure_cert(context)
        ours = TlsConnection(client(), server_name=wanted)
        shake(ours, Peer(context, server_side=True))
        assert ours.state == state, names


def test_an_authority_that_is_not_trusted() -> None:
    ours = TlsConnection(client(roots=None, system_roots=True), server_name="a.test")
    shake(ours, Peer(python_server(), server_side=True))
    assert (ours.state, ours.reason) == (FAILED, "certificate")
    ours = TlsConnection(client(roots=None), server_name="a.test")
    shake(ours, Peer(python_server(), server_side=True))
    assert ours.state == OPEN


@pytest.mark.parametrize("version", VERSIONS)
def test_client_certificates(version: str, tmp_path) -> None:
    found = pair("someone@example.test")
    (tmp_path / "pem").write_bytes(found.cert + found.key)
    other = pair("a.test")

    def known(context: ssl.SSLContext) -> None:
        only(version)(context)
        context.load_cert_chain(tmp_path / "pem")

    ours, peer = TlsConnection(server(roots=ROOTS)), Peer(python_client(known))
    shake(ours, peer)
    assert ours.state == OPEN
    assert ours.peer_certificate() == ssl.PEM_cert_to_DER_cert(found.cert.decode().split("-----END")[0] + "-----END CERTIFICATE-----\n")
    # Nobody is asked for one, none is shown, and one of another authority.
    ours = TlsConnection(server())
    shake(ours, Peer(python_client(known)))
    assert (ours.state, ours.peer_certificate(), ours.verified_certificate()) == (OPEN, None, None)
    ours, peer = TlsConnection(server(roots=ROOTS)), Peer(python_client(only(version)))
    shake(ours, peer)
    assert (ours.state, ours.reason) == (FAILED, "certificate")
    assert ours.fault == "peer did not return a certificate"
    ours = TlsConnection(server(other, roots=type(CA)().cert_pem.bytes()))
    shake(ours, Peer(python_client(known)))
    assert (ours.state, ours.reason) == (FAILED, "certificate")
    assert (ours.fault or "").startswith("certificate verify failed: ")


@pytest.mark.parametrize("version", VERSIONS)
def test_strangers_are_admitted_and_never_verified(version: str, tmp_path) -> None:
    elsewhere = type(CA)()
    tickets = TicketKeys(b"s" * 32, TicketKeys.number_now())
    for name, issuer, options, verified in (
        ("ours", CA, {}, True),
        ("of another authority", elsewhere, {}, False),
        ("of the past", CA, {"not_after": datetime(2001, 1, 1, tzinfo=UTC)}, False),
        ("none", None, {}, False),
    ):
        made = None if issuer is None else issuer.issue_cert("someone@example.test", **options)
        context = python_client(only(version))
        if made is not None:
            (tmp_path / "pem").write_bytes(made.private_key_and_cert_chain_pem.bytes())
            context.load_cert_chain(tmp_path / "pem")
        session = None
        # What is resumed is as little verified as what began it.
        for resumed in (False, True, True):
            ours = TlsConnection(server(roots=ROOTS, strangers=True, tickets=tickets, identity=b"a"))
            peer = Peer(context, session=session)
            shake(ours, peer)
            assert peer.receive(send(ours, b"hello")) == b"hello", name
            session = peer.secure.session
            assert (ours.state, ours.resumed) == (OPEN, resumed), name
            assert (ours.verified_certificate() is not None) is verified, name
            assert (ours.peer_certificate() is None) is (made is None), name
        # A session of such a listener is none of one that demands a certificate.
        ours = TlsConnection(server(roots=ROOTS, tickets=tickets, identity=b"b"))
        shake(ours, Peer(context, session=session))
        assert (ours.state, ours.resumed) == (OPEN if verified else FAILED, False), name


def test_a_server_gets_our_certificate() -> None:
    found = pair("gateway.test")
    context = python_server()
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(cadata=ROOTS.decode())
    peer = Peer(context, server_side=True)
    ours = TlsConnection(client(cert=found.cert, key=found.key), server_name="a.test")
    shake(ours, peer)
    assert peer.secure.getpeercert()["subjectAltName"] == (("DNS", "gateway.test"),)


def offering(*names: str):
    return lambda context: context.set_alpn_protocols(list(names))


ALPN = {
    "ours first": ((b"h2", b"http/1.1"), ("http/1.1", "h2"), OPEN, "h2"),
    "the only common one": ((b"h2", b"http/1.1"), ("x", "http/1.1"), OPEN, "http/1.1"),
    "none in common": ((b"h2",), ("http/1.1", "h2c"), FAILED, None),
    "none offered": ((b"h2",), (), OPEN, None),
    "none spoken": ((), ("h2",), OPEN, None),
}


@pytest.mark.parametrize("case", ALPN)
def test_alpn(case: str) -> None:
    ours_names, offered, state, chosen = ALPN[case]
    ours = TlsConnection(server(alpn=ours_names))
    peer = Peer(python_client(offering(*offered) if offered else lambda _: None))
    shake(ours, peer)
    assert (ours.state, ours.selected_alpn_protocol()) == (state, chosen)
    if state == FAILED:
        assert ours.reason == "alpn"
        assert "alert no application protocol" in str(peer.fault)
    asked = TlsConnection(client(alpn=(b"http/1.1",)), server_name="a.test")
    shake(asked, Peer(server_with_alpn(), server_side=True))
    assert asked.selected_alpn_protocol() == "http/1.1"


def server_with_alpn() -> ssl.SSLContext:
    context = python_server()
    context.set_alpn_protocols(["http/1.1"])
    return context


REFUSALS = {
    "an old version": (only("TLSv1.2"), {"least": "TLS_V1_3"}, "version"),
    "no common group": (lambda context: context.set_ecdh_curve("secp384r1"), {"groups": ("X25519",)}, "cipher"),
    "no common suite": (
        lambda context: (only("TLSv1.2")(context), context.set_ciphers("ECDHE-ECDSA-AES128-GCM-SHA256")),
        {"suites": ("TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",)},
        "cipher",
    ),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_reasons_of_failed_handshakes(case: str) -> None:
    configure, options, reason = REFUSALS[case]
    ours = TlsConnection(server(**options))
    shake(ours, Peer(python_client(configure)))
    assert (ours.state, ours.reason) == (FAILED, reason), ours.fault


def test_what_is_no_tls_and_what_is_spoilt() -> None:
    for data, reason in ((b"GET / HTTP/1.1\r\n\r\n", "plain"), (b"\0" * 100, "version"), (b"\x16\x03\x01\0\x05\xff\0\0\1\0", "protocol")):
        ours = TlsConnection(server())
        feed(ours, data)
        assert (ours.state, ours.reason) == (FAILED, reason), (data, ours.fault)
        with pytest.raises(ValueError, match="nothing can be sent"):
            send(ours, b"x")
    peer, ours = Peer(python_client()), TlsConnection(server())
    shake(ours, peer)
    spoilt = bytearray(peer.send(b"request"))
    spoilt[-1] ^= 1
    assert feed(ours, bytes(spoilt))[0] == b""
    assert (ours.state, ours.fault) == (FAILED, "decryption failed or bad record mac")


def test_the_alert_of_a_peer_is_told() -> None:
    stranger = ssl.create_default_context()
    ours = TlsConnection(server(A_TEST))
    shake(ours, Peer(stranger))
    assert (ours.state, ours.reason, ours.fault) == (FAILED, "alert", "tlsv1 alert unknown ca")


def test_faults_of_others_are_none_of_ours() -> None:
    """The library keeps a list of errors for each thread, in which anything else in the process may leave some."""
    peer, ours = Peer(python_client()), TlsConnection(server())
    back = peer.feed(b"")
    half = len(back) // 2
    for piece in (back[:half], back[half:]):
        leave_a_fault()
        _, out = feed(ours, piece)
    last = peer.feed(out)
    leave_a_fault()
    _, tickets = feed(ours, last)
    assert ours.state == OPEN, ours.fault
    sent = peer.send(b"request")
    for at in range(len(sent)):
        leave_a_fault()
        feed(ours, sent[at : at + 1])
    leave_a_fault()
    assert peer.receive(tickets + send(ours, b"answer")) == b"answer"
    assert ours.state == OPEN, ours.fault


def test_new_keys() -> None:
    peer, ours = OddClient(), TlsConnection(server())
    out = feed(ours, peer.feed(b""))[1]
    assert peer.read(feed(ours, peer.feed(out))[1]) == b""
    assert peer.open
    for number in range(50):
        out = b""
        for _ in range(number + 1):
            found, answer = feed(ours, peer.update())
            assert (found, ours.state) == (b"", OPEN)
            out += answer
        assert peer.read(out + send(ours, b"%d" % number)) == b"%d" % number
    peer.close()


def test_another_handshake_within_a_connection_is_refused() -> None:
    peer, ours = OddClient(old=True), TlsConnection(server())
    out = peer.feed(b"")
    while not peer.open:
        out = peer.feed(feed(ours, out)[1])
    assert ours.version() == "TLSv1.2"
    for _ in range(3):
        found, answer = feed(ours, peer.hello())
        assert (found, ours.state, answer[:5]) == (b"", OPEN, b"\x15\3\3\0\x1a"), "a warning (RFC 5246 section 7.2.2)"
    peer.close()


def test_a_connection_that_was_never_set_up() -> None:
    bare = TlsConnection.__new__(TlsConnection)
    for call in (lambda: feed(bare, b"x"), lambda: send(bare, b"x")):
        with pytest.raises(ValueError):
            call()
    assert (bare.version(), cipher_suite(bare), bare.selected_alpn_protocol(), bare.peer_certificate(), bare.resumed) == (
        None, None, None, None, False)  # fmt: skip
    assert finish(bare) == b""
