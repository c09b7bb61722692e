"""X25519_MLKEM768 with an OpenSSL that has it (3.5 and later): `make mlkem` takes one out of a wheel, whatever the machine has."""

from __future__ import annotations

import os
import queue
import socket
import subprocess
import sys

import pytest
from tests.end_to_end.running import PATIENCE, free_port
from tests.end_to_end.tls_rig import authority, issue  # noqa: F401

# The folder of libssl.so.3 and libcrypto.so.3.
LIBRARY = os.environ.get("HEADGATE_OPENSSL", "")
pytestmark = pytest.mark.skipif(not LIBRARY, reason="make mlkem brings an OpenSSL that has the group")

CONFIG = """
gateways:
  default: {port: {port}}
  secure:
    port: SECURE
    listeners:
    - {name: a, hostname: a.test, protocol: HTTPS, tls: {cert: FOLDER/a.pem, key: FOLDER/a.key, keyExchangeGroups: [GROUPS]}}
routes:
- {name: made, gateways: secure, policies: {directResponse: {status: 200, body: made here}}}
- name: same
  gateways: default
  matches: [{path: {pathPrefix: /same}}]
  policies: {urlRewrite: {authority: {full: a.test}}}
  backends: [{host: "127.0.0.1:BACKEND", policies: {backendTLS: {root: FOLDER/ca.pem, hostname: a.test, keyExchangeGroups: [OFFERED]}}}]
- name: older
  gateways: default
  matches: [{path: {pathPrefix: /older}}]
  policies: {urlRewrite: {authority: {full: a.test}}}
  backends: [{host: "127.0.0.1:SECURE", policies: {backendTLS: {root: FOLDER/ca.pem, hostname: a.test, keyExchangeGroups: [X25519]}}}]
"""

# Prints which group the ServerHello names (RFC 8446 section 4.2.8), and the answer to a request.
CLIENT = """
import socket, ssl, sys

def group(hello):
    at = 9 + 2 + 32                                          # record, handshake, version, random
    at += 1 + hello[at] + 3                                  # session, cipher suite, compression
    end = at + 2 + int.from_bytes(hello[at:at + 2], "big")
    at += 2
    while at < end:
        kind, size = int.from_bytes(hello[at:at + 2], "big"), int.from_bytes(hello[at + 2:at + 4], "big")
        if kind == 51:
            return int.from_bytes(hello[at + 4:at + 6], "big")
        at += 4 + size

incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
client = ssl.create_default_context(cafile=sys.argv[2]).wrap_bio(incoming, outgoing, server_hostname="a.test")
sock, seen = socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=60), b""

def until(call, *arguments):
    global seen
    while True:
        try:
            found = call(*arguments)
        except ssl.SSLWantReadError:
            found = None
        sock.sendall(outgoing.read())
        if found is not None or call == client.do_handshake and client.version() and client.cipher():
            return found
        data = sock.recv(65536)
        if not data:
            raise SystemExit("closed")
        seen += data
        incoming.write(data)

until(client.do_handshake)
until(client.write, b"GET / HTTP/1.1\\r\\nhost: a.test\\r\\nconnection: close\\r\\n\\r\\n")
print(hex(group(seen)), until(client.read, 65536).split(b"\\r\\n")[0].decode())
"""
NUMBER = "0x11ec"       # X25519MLKEM768, of IANA's registry


def filled(folder, port: int, groups: str, backend: int = 0, offered: str = "X25519_MLKEM768") -> str:
    """backend: 0 is the gateway itself."""
    words = {"FOLDER": folder, "SECURE": port, "GROUPS": groups, "BACKEND": backend or port, "OFFERED": offered}
    text = CONFIG
    for word, value in words.items():
        text = text.replace(word, str(value))
    return text


def asked(port: int, folder) -> str:
    done = subprocess.run(
        [sys.executable, "-c", CLIENT, str(port), str(folder / "ca.pem")], capture_output=True, text=True, check=False,
        timeout=PATIENCE, env={**os.environ, "LD_LIBRARY_PATH": LIBRARY})
    return done.stdout.strip() or done.stderr[-300:]


def test_clients_and_backends_agree_on_the_group(gateway, authority, tmp_path) -> None:
    issue(authority, tmp_path, "a", "a.test")
    port = free_port()
    running = gateway(filled(tmp_path, port, "X25519_MLKEM768"), environment={"LD_LIBRARY_PATH": LIBRARY})
    assert asked(port, tmp_path) == f"{NUMBER} HTTP/1.1 200 OK"
    assert running.fetch(f"{running.url}/same") == (200, "made here")
    # Who has other groups only is told, on both sides.
    assert running.fetch(f"{running.url}/older")[0] == 503
    running.wait_log("TLS handshake failed")


@pytest.mark.parametrize("groups", [("X25519", "X25519_MLKEM768"), ("X25519_MLKEM768", "X25519")])
def test_backends_are_offered_the_groups_in_order(gateway, upstream, authority, tmp_path, groups: tuple[str, str]) -> None:
    issue(authority, tmp_path, "a", "a.test")
    hellos: queue.SimpleQueue[bytes] = queue.SimpleQueue()

    def script(connection: socket.socket) -> None:
        data = connection.recv(65536)
        while len(data) < 5 or len(data) < 5 + int.from_bytes(data[3:5], "big"):
            data += connection.recv(65536)
        hellos.put(data)

    text = filled(tmp_path, free_port(), "X25519", upstream(script), ", ".join(groups))
    running = gateway(text, environment={"LD_LIBRARY_PATH": LIBRARY})
    assert running.fetch(f"{running.url}/same")[0] == 503
    numbers = {"X25519": b"\x00\x1d", "X25519_MLKEM768": b"\x11\xec"}
    # supported_groups (RFC 8446 section 4.2.7): its number, two lengths, and these two groups.
    assert b"\x00\x0a\x00\x06\x00\x04" + b"".join(numbers[group] for group in groups) in hellos.get(timeout=PATIENCE)
