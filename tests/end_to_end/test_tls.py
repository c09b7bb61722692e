"""TLS on both sides."""

from __future__ import annotations

import shutil
import socket
import ssl
import subprocess
from pathlib import Path

import pytest
from tests.end_to_end.asking import ask
from tests.end_to_end.tls_rig import (
    authority,  # noqa: F401
    issue,
    tls_upstream,
)

pytestmark = pytest.mark.warm

CONFIG = """
gateways:
  default:
    port: {port}
    listeners:
    - {name: a, hostname: a.test, protocol: HTTPS, tls: {cert: FOLDER/a.pem, key: FOLDER/a.key}}
    - {name: b, hostname: "*.b.test", protocol: HTTPS, tls: {cert: FOLDER/b.pem, key: FOLDER/b.key}}
routes:
- name: who
  gateways: [default/a]
  policies: {directResponse: {status: 200, body: a}}
- name: who-b
  gateways: [default/b]
  policies: {directResponse: {status: 200, body: b}}
frontendPolicies: {accessLog: {add: {asked: destination.hostname, scheme: request.scheme}}}
"""






def https(running, folder: Path, host: str) -> str:
    done = subprocess.run(
        [
            "curl",
            "-s",
            "--max-time",
            "60",
            "--cacert",
            str(folder / "ca.pem"),
            "--resolve",
            f"{host}:{running.port}:127.0.0.1",
            f"https://{host}:{running.port}/",
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout if done.returncode == 0 else f"curl {done.returncode}"


def serial(running, host: str) -> str:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    with (
        socket.create_connection(("127.0.0.1", running.port)) as sock,
        context.wrap_socket(sock, server_hostname=host) as secure,
    ):
        certificate = secure.getpeercert(binary_form=True)
    assert certificate is not None
    return certificate.hex()


def test_the_listener_is_chosen_by_sni_and_renewed_files_are_taken_up(gateway, authority, tmp_path) -> None:
    issue(authority, tmp_path, "a", "a.test")
    issue(authority, tmp_path, "b", "x.b.test")
    running = gateway(CONFIG.replace("FOLDER", str(tmp_path)))
    assert https(running, tmp_path, "a.test") == "a"
    assert https(running, tmp_path, "x.b.test") == "b"
    running.wait_log("asked=x.b.test scheme=https")
    assert https(running, tmp_path, "c.test").startswith("curl")
    for name in ("a", "b"):
        labels = f'{{bind="bind/{running.port}",gateway="default/default",listener="{name}",protocol="https"}}'
        assert running.metric(f"gw_downstream_connections_total{labels}") == 1
        assert running.metric(f"gw_tls_handshake_duration_seconds_count{labels}") == 1
        assert running.metric(f"gw_downstream_sent_bytes_total{labels}") == 1
    before = serial(running, "a.test")
    issue(authority, tmp_path, "a", "a.test")
    running.wait_log("configuration reloaded")
    assert serial(running, "a.test") != before
    assert https(running, tmp_path, "a.test") == "a"




BACKEND = """
gateways:
  default: {port: {port}}
routes:
- name: trusted
  matches: [{path: {exact: /trusted}}]
  backends: [{host: "localhost:BACKEND", policies: {backendTLS: {root: FOLDER/ca.pem}}}]
- name: other-name
  matches: [{path: {exact: /other-name}}]
  backends: [{host: "localhost:BACKEND", policies: {backendTLS: {root: FOLDER/ca.pem, hostname: other.test}}}]
- name: name-ignored
  matches: [{path: {exact: /name-ignored}}]
  backends: [{host: "localhost:BACKEND", policies: {backendTLS: {root: FOLDER/ca.pem, hostname: other.test, insecureHost: true}}}]
- name: untrusted
  matches: [{path: {exact: /untrusted}}]
  backends: [{host: "localhost:BACKEND", policies: {backendTLS: {}}}]
- name: unchecked
  matches: [{path: {exact: /unchecked}}]
  backends: [{host: "localhost:BACKEND", policies: {backendTLS: {insecure: true}}}]
"""


def test_backends_are_verified_as_configured(gateway, authority, tmp_path) -> None:
    port = tls_upstream(authority, "localhost")
    running = gateway(BACKEND.replace("BACKEND", str(port)).replace("FOLDER", str(tmp_path)))
    good = (200, f"secure localhost:{port}")
    assert running.fetch(f"{running.url}/trusted") == good
    assert running.fetch(f"{running.url}/name-ignored") == good
    assert running.fetch(f"{running.url}/unchecked") == good
    for path in ("/other-name", "/untrusted"):
        status, body = running.fetch(f"{running.url}{path}")
        assert status == 503, path
        assert "upstream call failed" in body


def test_connections_are_kept(gateway, authority, tmp_path) -> None:
    port = tls_upstream(authority, "localhost")
    running = gateway(BACKEND.replace("BACKEND", str(port)).replace("FOLDER", str(tmp_path)))
    used = [ask(running, path="/trusted").headers["x-connection"] for _ in range(8)]
    assert len(set(used)) == 1


def test_a_certificate_that_does_not_fit_its_key_is_a_configuration_error(authority, tmp_path) -> None:
    import sys

    issue(authority, tmp_path, "a", "a.test")
    issue(authority, tmp_path, "b", "b.test")
    shutil.copy(tmp_path / "b.key", tmp_path / "a.key")
    path = tmp_path / "config.yaml"
    path.write_text(CONFIG.replace("FOLDER", str(tmp_path)).replace("{port}", "3000"))
    done = subprocess.run(
        [sys.executable, "-m", "headgate.cli.main", "-f", str(path), "--validate-only"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "key" in done.stderr


def agreed(running, version: ssl.TLSVersion) -> str | None:
    """The version of a handshake by a client that has this one only; None when there is none."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.minimum_version = context.maximum_version = version
    try:
        with (
            socket.create_connection(("127.0.0.1", running.port), timeout=10) as sock,
            context.wrap_socket(sock, server_hostname="a.test") as secure,
        ):
            return secure.version()
    except OSError:
        return None


@pytest.mark.parametrize(
    ("listener", "common", "found"),
    [
        ("", "", ["TLSv1.2", "TLSv1.3"]),
        (", minTLSVersion: TLS_V1_3", "", [None, "TLSv1.3"]),
        (", maxTlsVersion: TLS_V1_2", "", ["TLSv1.2", None]),
        ("", "minVersion: TLS_V1_3", [None, "TLSv1.3"]),
        (", minTlsVersion: TLS_V1_2", "minVersion: TLS_V1_3", ["TLSv1.2", "TLSv1.3"]),
    ],
)
def test_only_the_versions_that_are_allowed(gateway, authority, tmp_path, listener: str, common: str, found) -> None:
    issue(authority, tmp_path, "a", "a.test")
    running = gateway(
        f"""
        gateways:
          default: {{port: {{port}}, tls: {{cert: {tmp_path}/a.pem, key: {tmp_path}/a.key{listener}}}}}
        frontendPolicies: {{tls: {{{common}}}}}
        routes: [{{policies: {{directResponse: {{status: 200, body: a}}}}}}]
        """
    )
    assert [agreed(running, version) for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3)] == found
