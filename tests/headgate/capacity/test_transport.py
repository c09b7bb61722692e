"""Addresses, certificates and requests as the generator takes them."""

from __future__ import annotations

import socket
import ssl
from pathlib import Path

import pytest
import trustme

from headgate.capacity.errors import BenchError
from headgate.capacity.transport import Trust, address_of, python_context, requests_of, target_of
from headgate.capacity.workload import RequestSpec, TargetPlace

PLAIN = TargetPlace(False, "127.0.0.1", 80, "/")
SECURE = PLAIN._replace(secure=True, host="localhost")


def test_the_address_of_a_name_that_is_served(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.create_server(("127.0.0.1", 0)) as closed:
        port, other = listener.getsockname()[1], closed.getsockname()[1]
        closed.close()
        found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", number)) for number in (other, port)]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *words, **more: found)
        assert address_of(PLAIN) == (socket.AF_INET, ("127.0.0.1", port), True)
        del found[1]
        assert address_of(PLAIN) == (socket.AF_INET, ("127.0.0.1", other), False)


def test_a_plain_target() -> None:
    target = target_of(PLAIN, Trust(), True)
    assert (target.address, target.tls) == (("127.0.0.1", 80), None)


@pytest.mark.parametrize(("http2", "names"), [(False, (b"http/1.1",)), (True, (b"h2",))])
def test_a_target_with_tls(http2: bool, names: tuple[bytes, ...], tmp_path: Path) -> None:
    trustme.CA().cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    for trust in (Trust(), Trust(str(tmp_path / "ca.pem")), Trust(insecure=True)):
        target = target_of(SECURE, trust, http2)
        assert target.tls is not None
        assert (target.tls.alpn, target.tls.lacks_roots, target.server_name) == (names, False, "localhost")
        assert target.check_name is not trust.insecure


def test_certificates_that_cannot_be_read_are_told(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("no certificate")
    for path in (tmp_path / "ca.pem", tmp_path / "none"):
        with pytest.raises(BenchError):
            target_of(SECURE, Trust(str(path)), False)
        with pytest.raises(BenchError):
            python_context(Trust(str(path)))
    assert python_context(Trust(insecure=True)).verify_mode == ssl.CERT_NONE


def test_requests() -> None:
    stream = RequestSpec("POST", "/s", (("Host", "other"),), b"{}", judgement="stream", format="messages")
    call = RequestSpec("POST", "/c", (), b"1000000000", 0, "rpc")
    found = requests_of((stream, call, RequestSpec("GET", "/", ())), PLAIN)
    assert [one.judgement for one in found] == [1, 2, 0]
    for spec in (RequestSpec("G T", "/", ()), RequestSpec("GET", "/", (("a b", "c"),)), call._replace(number_at=3)):
        with pytest.raises(BenchError, match="cannot be sent"):
            requests_of((spec,), PLAIN)
