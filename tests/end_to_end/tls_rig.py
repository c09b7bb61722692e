"""What tests of tls and others share."""

from __future__ import annotations

import ssl
import threading
from pathlib import Path

import pytest
import trustme


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
