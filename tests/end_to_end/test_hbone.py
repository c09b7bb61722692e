"""HBONE: tunnels of a mesh, HTTP/2 CONNECT over mutual TLS, that lead to other ports of the gateway."""

from __future__ import annotations

import json
import socket
import ssl
from pathlib import Path

import pytest
from tests import forked_rig
from tests.end_to_end.http2_tunnels_rig import TunnelClient, TunnelSocket, secured
from tests.end_to_end.running import free_port
from tests.end_to_end.tcp_rig import named
from tests.end_to_end.tls_rig import authority, bare_certificate, issue  # noqa: F401

pytestmark = pytest.mark.warm

GET = b"GET / HTTP/1.1\r\nhost: a.test\r\n\r\n"
TRUSTED = "spiffe://cluster.local/ns/shop/sa/cart"
WINDOWS = "hbone: {windowSize: 1048576, connectionWindowSize: 8388608, frameSize: 65536}"

CONFIG = """
binds:
- port: {port}
  tunnelProtocol: hboneGateway
  listeners:
  - {name: mesh, protocol: HBONE, tls: {cert: FOLDER/gate.pem, key: FOLDER/gate.key, root: FOLDER/mesh-root.pem}}
- port: PLAIN
  listeners:
  - name: plain
    routes:
    - name: plain
      policies:
        authorization: {rules: ['source.identity.namespace == "shop"']}
        transformations: {response: {set: {x-account: source.identity.serviceAccount, x-spiffe: source.spiffeId}}}
        directResponse: {status: 200, body: plain}
- mode: internal
  listeners: [{name: rest, protocol: TCP, tcpRoutes: [{name: rest, backends: [{host: "127.0.0.1:BACKEND"}]}]}]
"""


def mesh_context(folder: Path, name: str | None) -> ssl.SSLContext:
    """A client that trusts the gateway, with the certificate of that name."""
    context = ssl.create_default_context(cafile=str(folder / "ca.pem"))
    if name is not None:
        context.load_cert_chain(folder / f"{name}.pem", folder / f"{name}.key")
    return context


@pytest.fixture
def started(gateway, upstream, authority, tmp_path):
    issue(authority, tmp_path, "gate", "gate.test")
    bare_certificate(tmp_path, "mesh", None, TRUSTED)
    bare_certificate(tmp_path, "other", None, "spiffe://cluster.local/ns/shop/sa/stranger")
    plain = free_port()
    text = CONFIG.replace("FOLDER", str(tmp_path)).replace("PLAIN", str(plain))
    text = text.replace("BACKEND", str(upstream(named(b"db"))))
    return gateway(text, settings=WINDOWS), plain


def test_tunnels_of_the_mesh(started, tmp_path) -> None:
    running, plain = started
    with secured(running.port, mesh_context(tmp_path, "mesh"), "gate.test") as sock:
        client = TunnelClient(sock)
        tunnel = client.connect(f"10.0.0.7:{plain}", ("baggage", "k8s.namespace.name=shop"))
        assert tunnel.status == 200
        # What config.hbone says of windows and frames.
        settings = client.h2.remote_settings
        assert (settings.initial_window_size, settings.max_frame_size) == (1_048_576, 65_536)
        client.send(tunnel, GET)
        answer = client.until(tunnel, b"plain")
        assert b"\r\nx-account: cart\r\n" in answer
        assert f"\r\nx-spiffe: {TRUSTED}\r\n".encode() in answer
        inner = TunnelClient(TunnelSocket(client, client.connect(f"10.0.0.7:{plain}")))  # type: ignore[arg-type]
        assert inner.get().data == b"plain"
        other = client.connect("10.0.0.9:5432")
        client.send(other, b"x" * 2_000_000)
        while len(other.data) < 2_000_003:
            client.read()
        assert other.data.startswith(b"db\nxx")
        # Tunnels only.
        assert client.get().status == 405
    running.wait_log(f"src.identity={TRUSTED} bytes.received=0 bytes.sent=0 http.method=CONNECT http.host=10.0.0.7")
    dump = json.loads(running.fetch(f"http://127.0.0.1:{running.admin}/config_dump")[1])
    bind = next(bind for bind in dump["binds"] if bind["key"] == f"bind/{running.port}")
    assert (bind["protocol"], bind["tunnelProtocol"]) == ("tls", "hboneGateway")
    assert [set(listener["protocol"]) for listener in bind["listeners"].values()] == [{"HBONE"}]


@pytest.mark.parametrize("name", [None, "other"])
def test_clients_of_another_authority_are_refused(started, tmp_path, name) -> None:
    running, plain = started
    # With TLS 1.3 the client hears of it when it reads.
    with (
        pytest.raises((ssl.SSLError, ConnectionError, AssertionError)),
        secured(running.port, mesh_context(tmp_path, name), "gate.test") as sock,
    ):
        TunnelClient(sock).connect(f"10.0.0.7:{plain}")
    running.wait_log("TLS handshake failed")
    with socket.create_connection(("127.0.0.1", running.port)) as sock:
        sock.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
        assert sock.recv(100) == b""


REFUSED = {
    "tls": ("protocol: HBONE", "hboneGateway", "protocol HBONE requires tls with cert, key and root"),
    "root": ("protocol: HBONE, tls: {cert: gate.pem, key: gate.key}", "hboneGateway", "requires tls with cert, key and root"),
    "plain bind": ("protocol: HBONE, tls: {cert: gate.pem, key: gate.key, root: ca.pem}", "direct",
                   "protocol HBONE is only for binds with tunnelProtocol hboneGateway"),
    "routes": ("protocol: HBONE, tls: {cert: gate.pem, key: gate.key, root: ca.pem}, routes: [{}]", "hboneGateway",
               "protocol HBONE cannot have routes"),
    "other protocol": ("protocol: HTTP", "hboneGateway", "tunnelProtocol hboneGateway needs listeners of protocol HBONE"),
    "waypoint": ("protocol: HBONE", "hboneWaypoint", "not supported yet: binds[0].tunnelProtocol = hboneWaypoint"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_is_refused_at_load(authority, tmp_path, case) -> None:
    listener, tunnel, message = REFUSED[case]
    issue(authority, tmp_path, "gate", "gate.test")
    path = tmp_path / "config.yaml"
    path.write_text(f"binds:\n- port: 15008\n  tunnelProtocol: {tunnel}\n  listeners:\n  - {{name: mesh, {listener}}}\n")
    done = forked_rig.run("headgate.cli.main", "--validate-only", "-f", str(path))
    assert done.returncode != 0
    assert message in done.stdout + done.stderr
