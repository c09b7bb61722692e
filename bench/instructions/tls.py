"""Counts what a proxy spends on TLS: instructions in user space (callgrind) for a request and for a handshake, CPU time
of a handshake, and the memory of an idle connection.

Usage: python -m bench.instructions.tls [--cases get,post-16k,p256,x25519,resumed] [--peers nginx,headgate]
                                        [--requests 200] [--idle 400] [--profile FOLDER] [--no-cpu]

TLS 1.3 with AES-256-GCM and an ECDSA P-256 certificate, the defaults of both; plain HTTP/1.1 to the backend. Both link
the same libssl. A handshake is counted with the request that it carries and the end of its connection. The C library is
told to copy with vector instructions: valgrind takes one `rep movsb` for as many instructions as it copies bytes.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import re
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from bench.instructions.run import COUNTED, PEERS, running
from bench.macro import peers, settings

CASES = ("get", "post-16k", "p256", "x25519", "resumed")
HOST = "bench.test"
BODY = b"x" * 16384
REQUESTS = {
    "get": b"GET /small HTTP/1.1\r\nHost: bench.test\r\n\r\n",
    "post-16k": b"POST /16k HTTP/1.1\r\nHost: bench.test\r\ncontent-length: 16384\r\n\r\n" + BODY,
}
LENGTH = re.compile(rb"\r\ncontent-length: *([0-9]+)", re.IGNORECASE)
# A kept connection is used for this many requests before the count begins.
WARM = 20


def certificate(folder: Path) -> None:
    """Write cert.pem and key.pem: self-signed, ECDSA P-256."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, HOST)])
    now = datetime.datetime.now(datetime.UTC)
    cert = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=30))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(HOST)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    (folder / "cert.pem").write_bytes(cert.public_bytes(serialization.Encoding.PEM))
    encoding, kind = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    (folder / "key.pem").write_bytes(key.private_bytes(encoding, kind, serialization.NoEncryption()))


def nginx(folder: Path, port: int, backend: int) -> list[str]:
    """A TLS listener of nginx in one process, with tickets and without a session cache."""
    path = settings.nginx(folder, "plain", port, backend)
    tls = f"""ssl_certificate {folder}/cert.pem; ssl_certificate_key {folder}/key.pem; ssl_protocols TLSv1.2 TLSv1.3;
  ssl_ecdh_curve X25519:prime256v1:secp384r1; """
    text = path.read_text().replace("backlog=4096;", f"ssl backlog=4096; {tls}")
    path.write_text("master_process off;\n" + text)
    return [shutil.which("nginx") or "nginx", "-e", "/dev/null", "-c", str(path), "-p", str(folder)]


def headgate(folder: Path, port: int, backend: int) -> list[str]:
    """A TLS listener of the gateway in one process."""
    path = settings.headgate(folder, "plain", port, backend)
    tls = f"{{port: {port}, tls: {{cert: {folder}/cert.pem, key: {folder}/key.pem}}}}"
    path.write_text(path.read_text().replace(f"{{port: {port}}}", tls))
    return [sys.executable, "-m", "bench.instructions.serve", str(path)]


COMMANDS = {"nginx": nginx, "headgate": headgate}


class Client:
    """Opens connections and asks over them."""

    def __init__(self, port: int, group: str = "") -> None:
        self._port = port
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self._context.check_hostname = False
        self._context.verify_mode = ssl.CERT_NONE
        self._context.minimum_version = ssl.TLSVersion.TLSv1_3
        if group:
            self._context.set_ecdh_curve(group)

    def open(self, session: ssl.SSLSession | None = None) -> ssl.SSLSocket:
        """A connection behind its handshake."""
        plain = socket.create_connection(("127.0.0.1", self._port), 120)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return self._context.wrap_socket(plain, server_hostname=HOST, session=session)


def ask(secure: ssl.SSLSocket, request: bytes) -> None:
    """One request and its whole answer. Raises OSError for a status other than 200."""
    secure.sendall(request)
    data = b""
    while (end := data.find(b"\r\n\r\n")) < 0:
        more = secure.recv(65536)
        if not more:
            raise OSError("the connection was closed")
        data += more
    if not data.startswith(b"HTTP/1.1 200 "):
        raise OSError(repr(data[:80]))
    found = LENGTH.search(data, 0, end + 2)
    assert found is not None
    while len(data) - end - 4 < int(found[1]):
        data += secure.recv(65536)


def wait(port: int) -> None:
    """Return when the port answers over TLS."""
    deadline = time.monotonic() + 120
    while True:
        try:
            with Client(port).open() as secure:
                ask(secure, REQUESTS["get"])
            return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def load(case: str, port: int) -> tuple[int, Iterator[int]]:
    """How much is done at a time, and what does it: each step makes one request, or one connection."""
    if case in REQUESTS:
        secure = Client(port).open()

        def requests() -> Iterator[int]:
            with secure:
                while True:
                    ask(secure, REQUESTS[case])
                    yield 1

        return WARM, requests()
    client = Client(port, "prime256v1" if case == "p256" else "")

    def handshakes() -> Iterator[int]:
        session = None
        while True:
            with client.open(session) as secure:
                ask(secure, REQUESTS["get"])
                if case == "resumed":
                    assert session is None or secure.session_reused
                    session = secure.session
            yield 1

    return WARM, handshakes()


def instructions(peer: str, case: str, folder: Path, backend: int, options: argparse.Namespace) -> float:
    """Instructions in user space per request or handshake."""
    port = peers.free_port()
    out = folder / "callgrind.out"
    words = ["env", "GLIBC_TUNABLES=glibc.cpu.x86_rep_movsb_threshold=1073741824", "valgrind", "--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={out}"]
    with running(words + COMMANDS[peer](folder, port, backend), folder) as pid:
        wait(port)
        warm, steps = load(case, port)
        for _ in range(warm):
            next(steps)
        subprocess.run(["callgrind_control", "-i", "on", str(pid)], capture_output=True, check=True)
        made = sum(next(steps) for _ in range(options.requests))
        subprocess.run(["callgrind_control", "-i", "off", str(pid)], capture_output=True, check=True)
        subprocess.run(["callgrind_control", "-d", str(pid)], capture_output=True, check=True)
        with contextlib.suppress(AttributeError):
            steps.close()  # type: ignore[attr-defined]
    (dump,) = folder.glob("callgrind.out.*")
    if options.profile:
        Path(options.profile).mkdir(parents=True, exist_ok=True)
        shutil.copy(dump, Path(options.profile) / f"{peer}-tls-{case}.callgrind")
    text = subprocess.run(["callgrind_annotate", str(dump)], capture_output=True, text=True, check=True).stdout
    found = COUNTED.search(text)
    assert found is not None
    return int(found[1].replace(",", "")) / made


def spent(pid: int) -> float:
    """CPU seconds of a process, kernel included."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9


def memory(pid: int) -> int:
    """Private memory of a process in bytes."""
    text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    return 1024 * sum(int(line.split()[1]) for line in text.splitlines() if line.startswith("Private_"))


def cpu(peer: str, case: str, folder: Path, backend: int, options: argparse.Namespace) -> tuple[float, float]:
    """CPU microseconds per request or handshake, kernel included, and bytes of an idle connection."""
    port = peers.free_port()
    with running(COMMANDS[peer](folder, port, backend), folder) as pid:
        wait(port)
        warm, steps = load(case, port)
        for _ in range(warm):
            next(steps)
        before = spent(pid)
        made = sum(next(steps) for _ in range(10 * options.requests))
        taken = spent(pid) - before
        idle = 0.0
        if case == "get" and options.idle:
            client = Client(port)
            opened = []
            for _ in range(2 * options.idle):
                opened.append(client.open())
                ask(opened[-1], REQUESTS["get"])
                if len(opened) == options.idle:
                    idle = memory(pid)
            idle = (memory(pid) - idle) / options.idle
            for one in opened:
                one.close()
    return 1e6 * taken / made, idle


def main(arguments: list[str] | None = None) -> None:
    """Count and print, one line per case and peer."""
    parser = argparse.ArgumentParser(prog="python -m bench.instructions.tls", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--peers", default=",".join(PEERS))
    parser.add_argument("--requests", type=int, default=200)
    parser.add_argument("--idle", type=int, default=400, help="connections that are held open; 0: none")
    parser.add_argument("--profile", default="", help="folder for callgrind's files")
    parser.add_argument("--no-cpu", action="store_true", help="count instructions only")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="headgate-bench-") as name:
        top = Path(name)
        (top / "backend").mkdir()
        backend = peers.start_backend("web", top / "backend")
        try:
            for case in options.cases.split(","):
                for peer in options.peers.split(","):
                    folder = top / f"{peer}-{case}"
                    folder.mkdir()
                    certificate(folder)
                    counted = instructions(peer, case, folder, backend.port, options)
                    line = f"{case:10} {peer:9} {counted:11.0f} instructions"
                    if not options.no_cpu:
                        taken, idle = cpu(peer, case, folder, backend.port, options)
                        line += f"  {taken:7.1f} us CPU" + (f"  {idle / 1024:6.1f} KiB idle" if idle else "")
                    print(line, flush=True)
        finally:
            backend.stop()


if __name__ == "__main__":
    main()
