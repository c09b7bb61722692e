"""TLS on both sides."""

from __future__ import annotations

import json
import re
import shutil
import socket
import ssl
import subprocess
from pathlib import Path

import pytest
from tests import forked_rig
from tests.end_to_end.asking import ask
from tests.end_to_end.running import free_port
from tests.end_to_end.tls_rig import (
    authority,  # noqa: F401
    bare_certificate,
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

    issue(authority, tmp_path, "a", "a.test")
    issue(authority, tmp_path, "b", "b.test")
    shutil.copy(tmp_path / "b.key", tmp_path / "a.key")
    path = tmp_path / "config.yaml"
    path.write_text(CONFIG.replace("FOLDER", str(tmp_path)).replace("{port}", "3000"))
    done = forked_rig.run("headgate.cli.main", "-f", str(path), "--validate-only")
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


SETTINGS = """
gateways:
  default:
    port: {port}
    listeners:
    - {name: open, hostname: open.test, tls: {cert: FOLDER/open.pem, key: FOLDER/open.key}}
    - name: known
      hostname: known.test
      tls: {cert: FOLDER/known.pem, key: FOLDER/known.key, root: FOLDER/clients.pem}
    - name: narrow
      hostname: narrow.test
      tls: {cert: FOLDER/narrow.pem, key: FOLDER/narrow.key, cipherSuites: [TLS13_CHACHA20_POLY1305_SHA256], keyExchangeGroups: [P-384]}
routes:
- name: who
  policies:
    directResponse: {status: 200, body: hello}
    transformations:
      response:
        set:
          x-subject: source.subject
          x-cn: source.subjectCn
          x-names: source.subjectAltNames.join(",")
          x-spiffe: source.spiffeId
          x-account: source.identity.serviceAccount
          x-pem: source.certificate.substring(0, 27)
"""


def client_context(folder: Path, *, pair: str | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(folder / "ca.pem"))
    if pair is not None:
        context.load_cert_chain(folder / f"{pair}.pem", folder / f"{pair}.key")
    return context


def exchange(running, host: str, context: ssl.SSLContext, *, session=None, asked: str | None = None):
    """One request; returns (head, the socket's cipher, its session, whether one was resumed)."""
    with (
        socket.create_connection(("127.0.0.1", running.port), timeout=60) as sock,
        context.wrap_socket(sock, server_hostname=host, session=session) as secure,
    ):
        secure.sendall(f"GET / HTTP/1.1\r\nhost: {asked or host}\r\nconnection: close\r\n\r\n".encode())
        data = b""
        while more := secure.recv(65536):
            data += more
        return data.decode(), secure.cipher()[0], secure.session, secure.session_reused


def test_settings_of_listeners(gateway, authority, tmp_path) -> None:
    """Client certificates, suites, groups and resumption, of listeners of one port, with several workers."""
    import trustme
    from cryptography import x509

    clients = trustme.CA()
    clients.cert_pem.write_to_path(tmp_path / "clients.pem")
    for name in ("open", "known", "narrow"):
        issue(authority, tmp_path, name, f"{name}.test")
    issue(authority, tmp_path, "stranger", "stranger.test")
    mine = clients.issue_cert("me.test", common_name="web")
    (tmp_path / "mine.pem").write_bytes(b"".join(blob.bytes() for blob in mine.cert_chain_pems))
    mine.private_key_pem.write_to_path(tmp_path / "mine.key")
    subject = x509.load_pem_x509_certificate(mine.cert_chain_pems[0].bytes()).subject.rfc4514_string()
    running = gateway(SETTINGS.replace("FOLDER", str(tmp_path)), workers=3)

    # Sessions are resumed whichever worker it is.
    context, session, reused = client_context(tmp_path), None, []
    for _ in range(12):
        head, _, session, again = exchange(running, "open.test", context, session=session)
        assert head.startswith("HTTP/1.1 200 ")
        reused.append(again)
    assert reused == [False, *[True] * 11]
    running.wait_log("tls.sni=open.test")

    # A client certificate is demanded, checked and told.
    known = client_context(tmp_path, pair="mine")
    session = None
    for resumed in (False, True):
        head, _, session, again = exchange(running, "known.test", known, session=session)
        assert again is resumed
        assert f"x-subject: {subject}\r\n" in head
        assert "x-cn: web\r\n" in head
        assert "x-names: me.test\r\n" in head
        assert "x-pem: -----BEGIN CERTIFICATE-----\r\n" in head
        assert "x-spiffe" not in head
    running.wait_log("src.identity=me.test")
    # A session of the open listener, or its connection, opens nothing that needs a certificate.
    open_session = exchange(running, "open.test", context)[2]
    for options in ({"session": open_session}, {}):
        with pytest.raises((ssl.SSLError, ConnectionResetError)):
            exchange(running, "known.test", context, **options)
    assert exchange(running, "open.test", context, asked="known.test")[0].startswith("HTTP/1.1 421 ")
    with pytest.raises((ssl.SSLError, ConnectionResetError)):
        exchange(running, "known.test", client_context(tmp_path, pair="stranger"))
    running.wait_log("TLS handshake failed")
    failures = f'gw_tls_handshake_failures_total{{bind="bind/{running.port}",reason="certificate"}}'
    running.wait_metric(failures, 3)

    # Suites and groups.
    assert exchange(running, "narrow.test", context)[1] == "TLS_CHACHA20_POLY1305_SHA256"
    assert exchange(running, "open.test", context)[1] == "TLS_AES_256_GCM_SHA384"
    nist = client_context(tmp_path)
    nist.set_ecdh_curve("prime256v1")
    with pytest.raises(ssl.SSLError):
        exchange(running, "narrow.test", nist)
    assert exchange(running, "open.test", nist)[0].startswith("HTTP/1.1 200 ")
    running.wait_metric(failures.replace("certificate", "cipher"), 1)


# What expressions know of a connection; each is null where the connection has none.
OF_THE_CLIENT = ("spiffeId", "subjectAltNames", "issuer", "subject", "subjectCn", "certificate", "identity", "unverifiedWorkload", "connectHeaders")
CONNECTION = (*(f"source.{name}" for name in OF_THE_CLIENT), "destination.hostname")
ALWAYS = ("source.address", "source.port", "source.rawAddress", "source.rawPort", "destination.address", "destination.port")
NULLS = """
gateways:
  default:
    port: {port}
    listeners:
    - {name: open, hostname: open.test, tls: {cert: FOLDER/open.pem, key: FOLDER/open.key}}
    - {name: named, hostname: named.test, tls: {cert: FOLDER/open.pem, key: FOLDER/open.key, root: FOLDER/named-root.pem}}
    - {name: nameless, hostname: nameless.test, tls: {cert: FOLDER/open.pem, key: FOLDER/open.key, root: FOLDER/nameless-root.pem}}
    - {name: odd, hostname: odd.test, tls: {cert: FOLDER/open.pem, key: FOLDER/open.key, root: FOLDER/odd-root.pem}}
    - {name: any, tls: {cert: FOLDER/open.pem, key: FOLDER/open.key}}
  plain: {port: SPARE}
frontendPolicies: {accessLog: {add: {logged: '{NULLS}'}}}
routes:
- name: nulls
  gateways: [default, plain]
  policies: {directResponse: {status: 200, bodyExpression: '{NULLS}'}}
"""
SAID = {
    "plain": set(),
    "open": {"destination.hostname"},
    "unnamed": set(),
    "named": {"destination.hostname", "source.subject", "source.subjectCn", "source.issuer", "source.certificate"},
    "nameless": {"destination.hostname", "source.spiffeId", "source.subjectAltNames", "source.identity", "source.issuer", "source.certificate"},
    "odd": {"destination.hostname", "source.spiffeId", "source.subjectAltNames", "source.subject", "source.subjectCn", "source.issuer", "source.certificate"},
}  # fmt: skip


def test_what_a_connection_does_not_say_is_null(gateway, authority, tmp_path) -> None:
    """In plain text, without a name or a certificate, and with certificates that leave things out; over both versions of HTTP, and in the log."""
    issue(authority, tmp_path, "open", "*.test")
    bare_certificate(tmp_path, "named", "web", None)
    bare_certificate(tmp_path, "nameless", None, "spiffe://a.test/ns/shop/sa/web")
    bare_certificate(tmp_path, "odd", "web", "spiffe://a.test/other")
    names = ", ".join(f'"{name}": {name} != null' for name in (*CONNECTION, *ALWAYS))
    spare = free_port()
    text = NULLS.replace("SPARE", str(spare)).replace("FOLDER", str(tmp_path)).replace("NULLS", names)
    running = gateway(text)
    for case, said in SAID.items():
        for version in ("--http1.1", "--http2" if case != "plain" else "--http2-prior-knowledge"):
            words = ["curl", "-s", "--max-time", "60", "--insecure", version]
            if case == "plain":
                words += [f"http://127.0.0.1:{spare}/{case}"]
            elif case == "unnamed":
                words += [f"https://127.0.0.1:{running.port}/{case}"]
            else:
                words += ["--resolve", f"{case}.test:{running.port}:127.0.0.1", f"https://{case}.test:{running.port}/{case}"]
            if case in ("named", "nameless", "odd"):
                words += ["--cert", str(tmp_path / f"{case}.pem"), "--key", str(tmp_path / f"{case}.key")]
            done = subprocess.run(words, capture_output=True, text=True, check=False)
            assert done.returncode == 0, (case, version, done)
            found = {name for name, there in json.loads(done.stdout).items() if there}
            assert found == said | set(ALWAYS), (case, version)
            running.wait_log(f"http.path=/{case} ")
    lines = [line for line in running.log().splitlines() if "\trequest " in line]
    for case, said in SAID.items():
        for line in (line for line in lines if f"http.path=/{case} " in line):
            logged = json.loads(json.loads(re.search(r'logged=("(?:[^"\\]|\\.)*")', line)[1]))
            assert {name for name, there in logged.items() if there} == said | set(ALWAYS), line


UPSTREAM_SETTINGS = """
gateways:
  default: {port: {port}}
routes:
- name: named
  matches: [{path: {exact: /named}}]
  backends: [{host: "127.0.0.1:BACKEND", policies: {backendTLS: {root: FOLDER/ca.pem, subjectAltNames: [x.test, localhost]}}}]
- name: misnamed
  matches: [{path: {exact: /misnamed}}]
  backends: [{host: "localhost:BACKEND", policies: {backendTLS: {root: FOLDER/ca.pem, subjectAltNames: [x.test]}}}]
- name: grouped
  matches: [{path: {exact: /grouped}}]
  backends: [{host: "localhost:BACKEND", policies: {backendTLS: {root: FOLDER/ca.pem, keyExchangeGroups: [P-384, P-256]}}}]
- name: ungrouped
  matches: [{path: {exact: /ungrouped}}]
  backends: [{host: "localhost:BACKEND", policies: {backendTLS: {root: FOLDER/ca.pem, keyExchangeGroups: [X25519]}}}]
"""


def test_names_and_groups_of_backends(gateway, authority, tmp_path) -> None:
    port = tls_upstream(authority, "localhost", curve="secp384r1")
    running = gateway(UPSTREAM_SETTINGS.replace("BACKEND", str(port)).replace("FOLDER", str(tmp_path)))
    for path in ("/named", "/grouped"):
        status, body = running.fetch(f"{running.url}{path}")
        assert (status, body.startswith("secure ")) == (200, True), path
    for path in ("/misnamed", "/ungrouped"):
        status, body = running.fetch(f"{running.url}{path}")
        assert status == 503, path
        assert "upstream call failed: TLS: " in body


def test_certificates_are_renewed_under_load(gateway, authority, tmp_path) -> None:
    """Kept connections go on, new ones are accepted all the time, and have the new certificate in the end."""
    for name in ("open", "known", "narrow"):
        issue(authority, tmp_path, name, f"{name}.test")
    authority.cert_pem.write_to_path(tmp_path / "clients.pem")
    running = gateway(SETTINGS.replace("FOLDER", str(tmp_path)), workers=2)
    context, request = client_context(tmp_path), b"GET / HTTP/1.1\r\nhost: open.test\r\n\r\n"
    kept = [
        context.wrap_socket(socket.create_connection(("127.0.0.1", running.port), timeout=60), server_hostname="open.test")
        for _ in range(8)
    ]

    def ask_all() -> None:
        for one in kept:
            one.sendall(request)
        for one in kept:
            data = b""
            while not data.endswith(b"hello"):
                more = one.recv(65536)
                assert more, "a kept connection was lost"
                data += more
        assert exchange(running, "open.test", context)[0].startswith("HTTP/1.1 200 ")

    for _ in range(4):
        # Not by its number: another test may have had this gateway.
        before, reloads = serial(running, "open.test"), running.log().count("configuration reloaded")
        issue(authority, tmp_path, "open", "open.test")
        while running.log().count("configuration reloaded") == reloads:
            ask_all()
        assert serial(running, "open.test") != before
        ask_all()
    for one in kept:
        one.close()
    assert "TLS handshake failed" not in running.log()
