"""A trust domain of the tests, and a SPIFFE Workload API that gives its certificates out."""

from __future__ import annotations

import http.server
import queue
import ssl
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import grpc
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID

DER, PEM = serialization.Encoding.DER, serialization.Encoding.PEM


class Pair(NamedTuple):
    """A chain, the leaf first, and its key."""

    chain: tuple[x509.Certificate, ...]
    key: ec.EllipticCurvePrivateKey

    @property
    def serial(self) -> int:
        return self.chain[0].serial_number

    def key_bytes(self, encoding: serialization.Encoding) -> bytes:
        plain = serialization.NoEncryption()
        return self.key.private_bytes(encoding, serialization.PrivateFormat.PKCS8, plain)

    def write(self, folder: Path, name: str) -> None:
        """`<name>.pem` and `<name>.key`."""
        (folder / f"{name}.pem").write_bytes(b"".join(one.public_bytes(PEM) for one in self.chain))
        (folder / f"{name}.key").write_bytes(self.key_bytes(PEM))


def usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs, content_commitment=False, key_encipherment=False, data_encipherment=False,
        key_agreement=False, key_cert_sign=signs, crl_sign=signs, encipher_only=False, decipher_only=False,
    )  # fmt: skip


class TrustDomain:
    """An authority that signs X.509-SVIDs."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._subject = x509.Name([x509.NameAttribute(x509.NameOID.ORGANIZATION_NAME, name)])
        self.root = self._signed(self._subject, self._key, f"spiffe://{name}", 3600, signs=True)

    def issue(self, spiffe_id: str, seconds: float = 3600, *, signs: bool = False) -> Pair:
        key = ec.generate_private_key(ec.SECP256R1())
        return Pair((self._signed(x509.Name([]), key, spiffe_id, seconds, signs=signs),), key)

    def _signed(
        self, subject: x509.Name, key: ec.EllipticCurvePrivateKey, spiffe_id: str, seconds: float, *, signs: bool
    ) -> x509.Certificate:
        now = datetime.now(UTC)
        uri = x509.SubjectAlternativeName([x509.UniformResourceIdentifier(spiffe_id)])
        built = x509.CertificateBuilder().subject_name(subject).issuer_name(self._subject)
        built = built.public_key(key.public_key()).serial_number(x509.random_serial_number())
        built = built.not_valid_before(now - timedelta(hours=1)).not_valid_after(now + timedelta(seconds=seconds))
        built = built.add_extension(uri, critical=not list(subject)).add_extension(usage(signs=signs), critical=True)
        built = built.add_extension(x509.BasicConstraints(signs, None), critical=True)
        if not signs:
            both = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
            built = built.add_extension(x509.ExtendedKeyUsage(both), critical=False)
        return built.sign(self._key, hashes.SHA256())


def _field(number: int, data: bytes) -> bytes:
    """A field with a length (https://protobuf.dev/programming-guides/encoding/)."""
    length, size = b"", len(data)
    while size > 127:
        length += bytes((size & 127 | 128,))
        size >>= 7
    return bytes((number << 3 | 2,)) + length + bytes((size,)) + data


def response(pair: Pair, domain: TrustDomain, federated: tuple[TrustDomain, ...] = ()) -> bytes:
    """An X509SVIDResponse with one SVID."""
    uri = pair.chain[0].extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    [spiffe_id] = uri.get_values_for_type(x509.UniformResourceIdentifier)
    svid = _field(1, spiffe_id.encode()) + _field(2, b"".join(one.public_bytes(DER) for one in pair.chain))
    svid += _field(3, pair.key_bytes(DER)) + _field(4, domain.root.public_bytes(DER))
    others = b"".join(
        _field(3, _field(1, f"spiffe://{one.name}".encode()) + _field(2, one.root.public_bytes(DER))) for one in federated
    )
    return _field(1, svid) + others


class WorkloadApi:
    """An agent. Every stream gets the latest response, and those that come after it; without one it is refused."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.latest: bytes | None = None
        self.streams = 0
        self.idle = threading.Event()
        self._waiting: list[queue.SimpleQueue[bytes | None]] = []
        self._lock = threading.Lock()
        self._server: Any = None

    @property
    def uri(self) -> str:
        return f"unix://{self.path}"

    def start(self) -> None:
        self._server = grpc.server(ThreadPoolExecutor(8))
        handler = grpc.unary_stream_rpc_method_handler(self._fetch)
        self._server.add_generic_rpc_handlers((
            grpc.method_handlers_generic_handler("SpiffeWorkloadAPI", {"FetchX509SVID": handler}),
        ))  # fmt: skip
        self._server.add_insecure_port(f"unix:{self.path}")
        self._server.start()

    def stop(self) -> None:
        """End all streams, and the socket."""
        server, self._server = self._server, None
        self._tell(None)
        if server is not None:
            server.stop(0).wait()
        self.path.unlink(missing_ok=True)

    def give(self, message: bytes) -> None:
        with self._lock:
            self.latest = message
        self._tell(message)

    def _tell(self, message: bytes | None) -> None:
        with self._lock:
            for one in self._waiting:
                one.put(message)

    def _fetch(self, request: bytes, context: grpc.ServicerContext) -> Iterator[bytes]:
        if ("workload.spiffe.io", "true") not in context.invocation_metadata():
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, "security header missing from request")
        assert request == b""
        inbox: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        with self._lock:
            self.streams += 1
            self._waiting.append(inbox)
            if self.latest is not None:
                inbox.put(self.latest)
        if self.latest is None:
            context.abort(grpc.StatusCode.PERMISSION_DENIED, "no identity issued")
        context.add_callback(lambda: inbox.put(None))
        while (message := inbox.get()) is not None:
            yield message
        with self._lock:
            self._waiting.remove(inbox)
            self.idle.set()

    def wait_idle(self) -> None:
        """Wait until a stream has ended."""
        assert self.idle.wait(60)


def client(folder: Path, domain: TrustDomain, name: str | None) -> ssl.SSLContext:
    """A client with the SVID that `<name>.pem` has, which trusts the authority."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.load_verify_locations(cadata=domain.root.public_bytes(PEM).decode())
    if name is not None:
        context.load_cert_chain(folder / f"{name}.pem", folder / f"{name}.key")
    return context


def backend(folder: Path, domain: TrustDomain, name: str) -> int:
    """A server with the SVID of `<name>.pem`, which demands one of the trust domain and says whose it was; its port."""
    return backend_of(folder / f"{name}.pem", folder / f"{name}.key", [domain.root])


def backend_of(chain: Path, key: Path, roots: list[x509.Certificate]) -> int:
    """The same with a certificate, its key, and the authorities of clients."""

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            connection: Any = self.connection
            certificate = x509.load_der_x509_certificate(connection.getpeercert(binary_form=True))
            names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
            body = " ".join(names.get_values_for_type(x509.UniformResourceIdentifier)).encode()
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.send_header("x-serial", str(certificate.serial_number))
            self.send_header("x-connection", str(self.client_address[1]))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_arguments: object) -> None:
            pass

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(chain, key)
    context.load_verify_locations(cadata="".join(one.public_bytes(PEM).decode() for one in roots))
    context.verify_mode = ssl.CERT_REQUIRED
    server = Quiet(("127.0.0.1", 0), Handler)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return int(server.server_address[1])


class Quiet(http.server.ThreadingHTTPServer):
    def handle_error(self, *_arguments: object) -> None:
        """A client that refuses the certificate is no fault."""
