"""Certificates that are made for each server name, and those that stand in the configuration itself."""

from __future__ import annotations

import contextlib
import http.client
import re
import socket
import ssl
import subprocess
import textwrap
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from tests.end_to_end.gwctl_rig import gwctl
from tests.end_to_end.running import Gateway, free_port
from tests.end_to_end.spiffe_rig import usage
from tests.end_to_end.tls_rig import (
    authority,  # noqa: F401
    issue,
    tls_upstream,
)
from tests.end_to_end.tracing import wait_for

PEM = serialization.Encoding.PEM
DYNAMIC = """
gateways:
  default:
    port: {port}
    listeners:
    - {name: any, protocol: HTTPS, tls: {mode: dynamicCa, cert: FOLDER/own.pem, key: FOLDER/own.key}}
    - {name: shop, hostname: "*.shop.test", protocol: HTTPS, tls: {mode: dynamicCa, cert: FOLDER/own.pem, key: FOLDER/own.key}}
    - {name: fixed, hostname: fixed.test, protocol: HTTPS, tls: {mode: dynamicCa, cert: FOLDER/own.pem, key: FOLDER/own.key}}
routes:
- name: who
  gateways: [default]
  policies: {directResponse: {status: 200, body: made}}
"""


class Authority:
    """An authority of the test: `own.pem` has its certificate, `own.key` its key."""

    def __init__(self, folder: Path, limits: x509.NameConstraints | None = None, *, rsa_bits: int = 0) -> None:
        self.folder = folder
        self.key = rsa.generate_private_key(65537, rsa_bits) if rsa_bits else ec.generate_private_key(ec.SECP256R1())
        now = datetime.now(UTC)
        name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "made here")])
        built = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(self.key.public_key())
        built = built.serial_number(x509.random_serial_number())
        built = built.not_valid_before(now - timedelta(days=1)).not_valid_after(now + timedelta(days=1, hours=6))
        built = built.add_extension(x509.BasicConstraints(True, 0), critical=True)
        built = built.add_extension(usage(signs=True), critical=True)
        built = built.add_extension(x509.SubjectKeyIdentifier.from_public_key(self.key.public_key()), critical=False)
        if limits is not None:
            built = built.add_extension(limits, critical=True)
        self.certificate = built.sign(self.key, hashes.SHA256())
        (folder / "own.pem").write_bytes(self.certificate.public_bytes(PEM))
        plain = serialization.NoEncryption()
        (folder / "own.key").write_bytes(self.key.private_bytes(PEM, serialization.PrivateFormat.PKCS8, plain))

    def context(self, version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3) -> ssl.SSLContext:
        found = ssl.create_default_context(cafile=str(self.folder / "own.pem"))
        found.maximum_version = version
        return found


def test_an_authority_with_a_long_key(gateway, tmp_path) -> None:
    """A thread signs, and handshakes wait: several for one name, and others beside them."""
    authority = Authority(tmp_path, rsa_bits=4096)
    running = gateway(DYNAMIC.replace("FOLDER", str(tmp_path)))
    names = ["a.test", "a.test", "b.test", "c.shop.test", "d.test", "b.test"]
    with ThreadPoolExecutor(len(names)) as pool:
        found = list(pool.map(lambda name: shown(running, authority.context(), name)[0], names))
    serials = [one.serial_number for one in found]
    assert (serials[0], serials[2]) == (serials[1], serials[5])
    assert len(set(serials)) == 4
    assert shown(running, authority.context(), "a.test")[0].serial_number == serials[0]


def shown(running: Gateway, context: ssl.SSLContext, name: str, session: ssl.SSLSession | None = None) -> tuple[x509.Certificate, ssl.SSLSession, bool]:
    """The certificate that a client gets for a name; its session, and whether it was resumed."""
    with (
        socket.create_connection(("127.0.0.1", running.port), timeout=60) as sock,
        context.wrap_socket(sock, server_hostname=name, session=session) as secure,
    ):
        secure.sendall(f"GET / HTTP/1.1\r\nhost: {name}\r\nconnection: close\r\n\r\n".encode())
        answer = http.client.HTTPResponse(secure)
        answer.begin()
        assert (answer.status, answer.read()) == (200, b"made")
        der = secure.getpeercert(binary_form=True)
        assert der is not None
        assert secure.session is not None
        return x509.load_der_x509_certificate(der), secure.session, bool(secure.session_reused)


def test_a_certificate_is_made_for_each_name(gateway, tmp_path) -> None:
    made = Authority(tmp_path)
    running = gateway(DYNAMIC.replace("FOLDER", str(tmp_path)), workers=1)
    context = made.context()
    first, _, _ = shown(running, context, "a.test")
    names = first.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    assert (names.value.get_values_for_type(x509.DNSName), names.critical) == (["a.test"], True)
    assert not first.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    first.verify_directly_issued_by(made.certificate)
    assert first.not_valid_after_utc <= made.certificate.not_valid_after_utc
    again, _, _ = shown(running, context, "a.test")
    other, _, _ = shown(running, context, "x.shop.test")
    assert again.serial_number == first.serial_number, "it is kept"
    assert other.serial_number != first.serial_number
    assert other.public_key() != first.public_key(), "each has a key of its own"

    done = subprocess.run(
        ["curl", "-s", "--cacert", tmp_path / "own.pem", "--resolve", f"c.test:{running.port}:127.0.0.1", f"https://c.test:{running.port}/"],
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert done.stdout == "made"
    with httpx.Client(verify=context, trust_env=False) as client:
        found = client.get(f"https://127.0.0.1:{running.port}/", headers={"host": "d.test"}, extensions={"sni_hostname": "d.test"})
    assert found.text == "made"
    done = subprocess.run(
        ["openssl", "s_client", "-connect", f"127.0.0.1:{running.port}", "-servername", "e.test", "-CAfile", tmp_path / "own.pem",
         "-verify_hostname", "e.test", "-x509_strict", "-verify_return_error"],
        input="", capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert "Verify return code: 0 (ok)" in done.stdout


def test_sessions_belong_to_a_name(gateway, tmp_path) -> None:
    made = Authority(tmp_path)
    running = gateway(DYNAMIC.replace("FOLDER", str(tmp_path)))
    context = made.context(ssl.TLSVersion.TLSv1_2)
    _, session, _ = shown(running, context, "a.test")
    assert shown(running, context, "a.test", session)[2]
    assert not shown(running, context, "b.test", session)[2]


def test_names_that_get_none(gateway, tmp_path) -> None:
    permitted, excluded = [x509.DNSName("test")], [x509.DNSName("bank.test")]
    made = Authority(tmp_path, x509.NameConstraints(permitted, excluded))
    running = gateway(DYNAMIC.replace("FOLDER", str(tmp_path)))
    context = made.context()
    assert shown(running, context, "a.test")[0]
    unnamed = made.context()
    unnamed.check_hostname = False
    for name, told in (
        ("www.bank.test", "the name constraints of the authority do not permit the name"),
        ("a.example", "the name constraints of the authority do not permit the name"),
        (None, "the client sent no server name"),
    ):
        sock = socket.create_connection(("127.0.0.1", running.port), timeout=60)
        with sock, pytest.raises(ssl.SSLError, match="internal error"):
            unnamed.wrap_socket(sock, server_hostname=name)
        running.wait_log(told)
    assert running.metric(f'gw_tls_handshake_failures_total{{bind="bind/{running.port}",reason="identity"}}') == 3


def test_no_more_than_so_many_are_kept(gateway, tmp_path) -> None:
    made = Authority(tmp_path)
    environment = {"DYNAMIC_CA_CERT_CACHE_CAPACITY": "2", "DYNAMIC_CA_CERT_CACHE_TTL": "1h"}
    running = gateway(DYNAMIC.replace("FOLDER", str(tmp_path)), environment=environment)
    context = made.context()
    first = {name: shown(running, context, f"{name}.test")[0].serial_number for name in "abc"}
    again = {name: shown(running, context, f"{name}.test")[0].serial_number for name in "cba"}
    assert (again["c"], again["b"]) == (first["c"], first["b"])
    assert again["a"] != first["a"], "it was the one used longest ago"


def test_they_are_made_anew(gateway, tmp_path) -> None:
    made = Authority(tmp_path)
    running = gateway(DYNAMIC.replace("FOLDER", str(tmp_path)), environment={"DYNAMIC_CA_CERT_CACHE_TTL": "1ms"})
    context = made.context()
    numbers = {shown(running, context, "a.test")[0].serial_number for _ in range(3)}
    assert len(numbers) == 3


# -- in the configuration itself -----------------------------------------------------------------------------------------
INLINE = """
gateways:
  default:
    port: {port}
    protocol: HTTPS
    tls:
      cert: |
CERT
      key: |
KEY
      root: |
ROOT
  plain: {port: PLAIN}
routes:
- name: who
  gateways: [default]
  policies: {directResponse: {status: 200, body: made}}
- name: upstream
  gateways: [plain]
  backends:
  - host: "localhost:BACKEND"
    policies:
      backendTLS:
        root: |
ROOT
        cert: |
CERT
        key: |
KEY
"""


def pem(text: bytes) -> str:
    return textwrap.indent(text.decode(), " " * 12)


def test_pairs_in_the_configuration(gateway, authority, tmp_path) -> None:
    issued = authority.issue_cert("a.test")
    key = issued.private_key_pem.bytes()
    port, plain = tls_upstream(authority, "localhost"), free_port()
    text = INLINE.replace("CERT", pem(issued.cert_chain_pems[0].bytes())).replace("ROOT", pem(authority.cert_pem.bytes()))
    text = text.replace("KEY", pem(key)).replace("BACKEND", str(port)).replace("PLAIN", str(plain))
    running = gateway(text, environment={"RUST_LOG": "debug"})
    context = ssl.create_default_context(cafile=str(tmp_path / "ca.pem"))
    (tmp_path / "mine.pem").write_bytes(issued.cert_chain_pems[0].bytes())
    (tmp_path / "mine.key").write_bytes(key)
    with pytest.raises((ssl.SSLError, OSError, http.client.HTTPException)):
        shown(running, context, "a.test")
    context.load_cert_chain(tmp_path / "mine.pem", tmp_path / "mine.key")
    assert shown(running, context, "a.test")[0]
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", plain, timeout=60)) as connection:
        connection.request("GET", "/")
        assert connection.getresponse().read().startswith(b"secure ")

    secret = [line for line in key.decode().splitlines() if line and not line.startswith("-")]
    base = f"http://127.0.0.1:{running.admin}"
    pages = {path: running.fetch(f"{base}/{path}")[1] for path in ("config_dump", "api/config", "debug/tasks")}
    for form in ("json", "yaml"):
        pages[form] = gwctl("proxy", "config", "all", "--local", "-p", str(running.admin), "-o", form).stdout
    for name in ("config_dump", "json", "yaml"):
        assert re.search(r'certificateSource"?: "?inline', pages[name]), name
    assert "<redacted>" in pages["api/config"]
    # A change that is refused, and one that is taken.
    running.put(running.path.read_text().replace("status: 200", "status: 20000"))
    running.wait_log("Failed to reload config")
    running.put(running.path.read_text().replace("status: 20000", "status: 201"))
    running.wait_log("configuration reloaded")
    pages["log"] = running.log()
    for name, page in pages.items():
        assert not any(line in page for line in secret), name
        assert not re.search("BEGIN [A-Z ]*PRIVATE KEY", page), name


SEVERAL = """
gateways:
  default:
    port: {port}
    protocol: HTTPS
    tls:
      cert: FOLDER/a.pem
      key: FOLDER/a.key
      moreCertificates: [{cert: FOLDER/b.pem, key: FOLDER/b.key}, {cert: FOLDER/c.pem, key: FOLDER/c.key}]
routes:
- name: who
  policies: {directResponse: {status: 200, body: made}}
"""


def test_a_listener_has_several_certificates(gateway, tmp_path, authority) -> None:
    for name, host in (("a", "a.test"), ("b", "b.test"), ("c", "*.c.test")):
        issue(authority, tmp_path, name, host)
    running = gateway(SEVERAL.replace("FOLDER", str(tmp_path)))
    context = ssl.create_default_context(cafile=str(tmp_path / "ca.pem"))
    for name in ("a.test", "b.test", "x.c.test"):
        _, session, _ = shown(running, context, name)
        assert shown(running, context, name, session)[2], "a session is resumed with the certificate that it began with"
    with pytest.raises(ssl.SSLCertVerificationError):
        shown(running, context, "other.test")
    # A file that changes is taken up, for its names alone.
    before = shown(running, context, "a.test")[0]
    issue(authority, tmp_path, "b", "new.test")
    wait_for(lambda: presented(running, context, "new.test"))
    assert shown(running, context, "a.test")[0] == before


def presented(running: Gateway, context: ssl.SSLContext, name: str) -> bool:
    with contextlib.suppress(ssl.SSLCertVerificationError):
        return bool(shown(running, context, name))
    return False
