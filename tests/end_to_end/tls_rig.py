"""What tests of tls and others share."""

from __future__ import annotations

import ssl
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec


@pytest.fixture
def authority(tmp_path):
    found = trustme.CA()
    found.cert_pem.write_to_path(tmp_path / "ca.pem")
    return found


def issue(authority: trustme.CA, folder: Path, name: str, host: str) -> None:
    cert = authority.issue_cert(host)
    new = folder / f"{name}.pem.new"
    new.write_bytes(b"".join(blob.bytes() for blob in cert.cert_chain_pems))
    cert.private_key_pem.write_to_path(folder / f"{name}.key")
    new.rename(folder / f"{name}.pem")


def bare_certificate(folder: Path, name: str, common_name: str | None, spiffe: str | None) -> None:
    """A certificate of its own root, which says no more than it is given: `<name>.pem`, `<name>.key`."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([] if common_name is None else [x509.NameAttribute(x509.NameOID.COMMON_NAME, common_name)])
    now = datetime.now(UTC)
    issuer = x509.Name([x509.NameAttribute(x509.NameOID.ORGANIZATION_NAME, f"root of {name}")])
    root_key = ec.generate_private_key(ec.SECP256R1())

    def signed(owner: x509.Name, public: ec.EllipticCurvePublicKey, extensions: list[tuple[x509.ExtensionType, bool]]) -> bytes:
        found = x509.CertificateBuilder().subject_name(owner).issuer_name(issuer).public_key(public)
        found = found.serial_number(x509.random_serial_number())
        found = found.not_valid_before(now - timedelta(hours=1)).not_valid_after(now + timedelta(days=1))
        for extension, critical in extensions:
            found = found.add_extension(extension, critical)
        return found.sign(root_key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)

    names: list[tuple[x509.ExtensionType, bool]] = []
    if spiffe is not None:
        names = [(x509.SubjectAlternativeName([x509.UniformResourceIdentifier(spiffe)]), common_name is None)]
    (folder / f"{name}-root.pem").write_bytes(signed(issuer, root_key.public_key(), [(x509.BasicConstraints(True, None), True)]))
    (folder / f"{name}.pem").write_bytes(signed(subject, key.public_key(), names))
    plain = serialization.NoEncryption()
    (folder / f"{name}.key").write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
    )


def tls_upstream(authority: trustme.CA, host: str, curve: str | None = None) -> int:
    import http.server

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            body = f"secure {self.headers['host']}".encode()
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.send_header("x-connection", str(self.client_address[1]))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_arguments: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(host).configure_cert(context)
    if curve is not None:
        context.set_ecdh_curve(curve)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return int(server.server_address[1])
