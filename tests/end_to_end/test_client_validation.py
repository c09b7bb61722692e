"""Listeners that admit clients without a valid certificate."""

from __future__ import annotations

import socket
import ssl
from pathlib import Path

import pytest
import trustme
from manifests import Json, entries, gateway_class, http_route, listener
from manifests import gateway as gateway_manifest
from tests.end_to_end.running import free_port
from tests.end_to_end.tls_rig import authority, issue  # noqa: F401

from headgate.cluster.snapshot import ObjectKey, Snapshot
from headgate.cluster.translate.everything import everything
from headgate.cluster.translate.fragments import assembled
from headgate.document.write import write

pytestmark = pytest.mark.warm

CONFIG = """
gateways:
  default:
    port: {port}
    listeners:
    - name: known
      hostname: known.test
      tls: {cert: FOLDER/known.pem, key: FOLDER/known.key, root: FOLDER/clients.pem, clientValidation: MODE}
routes:
- name: who
  matches: [{path: {pathPrefix: /who}}]
  policies:
    directResponse: {status: 200, body: hello}
    transformations:
      response:
        set:
          x-said: '[source.subject, source.issuer, source.subjectCn, source.subjectAltNames, source.spiffeId, source.identity,
            source.certificate].map(one, one == null ? "null" : "known").join(",")'
          x-sni: destination.hostname
- name: guarded
  policies:
    directResponse: {status: 200, body: within}
    authorization: {rules: ['"me.test" in source.subjectAltNames']}
"""
FALLBACK = CONFIG.replace("MODE", "AllowInsecureFallback")


def context_of(folder: Path, pair: trustme.LeafCert | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(folder / "ca.pem"))
    if pair is not None:
        with pair.private_key_and_cert_chain_pem.tempfile() as name:
            context.load_cert_chain(name)
    return context


def asked(port: int, context: ssl.SSLContext, path: str, session: ssl.SSLSession | None = None) -> tuple[str, ssl.SSLSession | None, bool]:
    """One request; returns the answer, the session behind it, and whether one was resumed."""
    with (
        socket.create_connection(("127.0.0.1", port), timeout=60) as sock,
        context.wrap_socket(sock, server_hostname="known.test", session=session) as secure,
    ):
        secure.sendall(f"GET {path} HTTP/1.1\r\nhost: known.test\r\nconnection: close\r\n\r\n".encode())
        data = b""
        while more := secure.recv(65536):
            data += more
        return data.decode(), secure.session, bool(secure.session_reused)


@pytest.fixture
def clients(authority, tmp_path) -> dict[str, ssl.SSLContext]:
    """Contexts by what the client shows."""
    issue(authority, tmp_path, "known", "known.test")
    trusted = trustme.CA()
    trusted.cert_pem.write_to_path(tmp_path / "clients.pem")
    return {
        "a valid one": context_of(tmp_path, trusted.issue_cert("me.test", common_name="web")),
        "one of a stranger": context_of(tmp_path, trustme.CA().issue_cert("me.test", common_name="web")),
        "none": context_of(tmp_path),
    }


def test_strangers_are_admitted_and_nothing_of_them_is_believed(gateway, clients, tmp_path) -> None:
    running = gateway(FALLBACK.replace("FOLDER", str(tmp_path)), workers=2)
    for name, context in clients.items():
        valid = name == "a valid one"
        session = None
        for resumed in (False, True):
            answer, session, again = asked(running.port, context, "/who", session)
            assert again is resumed, name
            assert answer.startswith("HTTP/1.1 200 "), name
            said = ["known"] * 4 + ["null", "null", "known"] if valid else ["null"] * 7
            assert f"x-said: {','.join(said)}\r\n" in answer, name
            assert "x-sni: known.test\r\n" in answer
        # Rules about the client do not hold for a stranger.
        assert asked(running.port, context, "/")[0].split(" ")[1] == ("200" if valid else "403"), name
    running.wait_log("src.identity=me.test")
    running.wait_log_count("tls.sni=known.test", 9)
    lines = [line for line in running.log().splitlines() if "tls.sni=known.test" in line]
    assert sorted("src.identity=me.test" in line for line in lines) == [False] * 6 + [True] * 3
    running.wait_log("clientValidation: clients are admitted without a valid certificate")


def test_a_session_of_a_stranger_is_no_certificate(gateway, clients, tmp_path) -> None:
    """Who was admitted while that was allowed is refused when it is no longer."""
    running = gateway(FALLBACK.replace("FOLDER", str(tmp_path)))
    kept = {name: asked(running.port, context, "/who")[1] for name, context in clients.items()}
    running.reload(CONFIG.replace("MODE", "allowValidOnly").replace("FOLDER", str(tmp_path)))
    answer, _, again = asked(running.port, clients["a valid one"], "/who", kept["a valid one"])
    assert (answer.startswith("HTTP/1.1 200 "), again) == (True, False)
    for name in ("none", "one of a stranger"):
        for session in (kept[name], None):
            with pytest.raises((ssl.SSLError, ConnectionResetError)):
                asked(running.port, clients[name], "/who", session)


NETWORK = """
binds:
- port: {port}
  listeners:
  - name: in
    protocol: TLS
    tls: {cert: FOLDER/known.pem, key: FOLDER/known.key, root: FOLDER/clients.pem, clientValidation: allowInsecureFallback}
    tcpRoutes: [{backends: [{host: "127.0.0.1:BACKEND"}]}]
frontendPolicies:
  networkAuthorization: {rules: ['source.subjectCn == "web"']}
"""


def test_rules_of_connections_do_not_hold_for_strangers(gateway, clients, echo, tmp_path) -> None:
    text = NETWORK.replace("FOLDER", str(tmp_path)).replace("BACKEND", str(echo))
    running = gateway(text)
    for name, context in clients.items():
        try:
            answer = asked(running.port, context, "/")[0]
        except (ssl.SSLError, ConnectionResetError):
            answer = ""
        assert answer[:13] == ("HTTP/1.1 200 " if name == "a valid one" else ""), name


# Stands for the port that a gateway is given.
PORT = 64_999


def test_the_frontend_of_a_gateway_in_a_cluster(gateway, clients, tmp_path) -> None:
    """The modes of two ports, as the Gateway API says them, served by a gateway (conformance test
    GatewayFrontendClientCertificateValidationInsecureFallback).
    """
    other = free_port()
    pair = {f"tls.{name}": (tmp_path / f"known.{ending}").read_text() for name, ending in (("crt", "pem"), ("key", "key"))}
    roots = entries("ConfigMap", "edge/clients", **{"ca.crt": (tmp_path / "clients.pem").read_text()})
    tls = {"certificateRefs": [{"name": "tls"}]}
    owner = gateway_manifest(listener("open", PORT, "HTTPS", tls=tls), listener("strict", other, "HTTPS", tls=tls))
    trust: Json = {"caCertificateRefs": [{"group": "", "kind": "ConfigMap", "name": "clients"}]}
    owner["spec"]["tls"] = {
        "frontend": {
            "default": {"validation": trust},
            "perPort": [{"port": PORT, "tls": {"validation": {**trust, "mode": "AllowInsecureFallback"}}}],
        }
    }
    redirect = {"filters": [{"type": "RequestRedirect", "requestRedirect": {"hostname": "else.test"}}]}
    secret, route = entries("Secret", "edge/tls", **pair), http_route("edge/r", redirect, parent={"name": "main"})
    world = everything(Snapshot.of([gateway_class(), owner, roots, secret, route]), {})
    text = write(assembled(world.gateways[ObjectKey("edge", "main")]))
    running = gateway(text.replace(f"port: {PORT}", "port: {port}"))
    for name, context in clients.items():
        assert asked(running.port, context, "/")[0].startswith("HTTP/1.1 302 "), name
        if name == "a valid one":
            assert asked(other, context, "/")[0].startswith("HTTP/1.1 302 ")
        else:
            with pytest.raises((ssl.SSLError, ConnectionResetError)):
                asked(other, context, "/")
