"""TLS with an X.509-SVID of the SPIFFE Workload API, on both sides."""

from __future__ import annotations

import contextlib
import http.client
import os
import signal
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from tests.end_to_end.running import Gateway, free_port
from tests.end_to_end.spiffe_rig import TrustDomain, WorkloadApi, backend, client, response

OWN, OTHER = "td.test", "partner.test"
EXPIRY = "gw_spiffe_svid_expiry_timestamp_seconds"
GATEWAY, SHOP, BANK = (f"spiffe://{OWN}/{path}" for path in ("gateway", "ns/shop/sa/web", "bank"))
ABROAD = f"spiffe://{OTHER}/api"

CONFIG = """
gateways:
  default:
    port: {port}
    protocol: HTTPS
    tls: {spiffe: {}}
  plain: {port: PLAIN}
routes:
- name: who
  gateways: [default]
  policies:
    transformations:
      response: {set: {x-spiffe: source.spiffeId, x-workload: source.identity.serviceAccount}}
    directResponse: {status: 200, body: in}
- name: any
  gateways: [plain]
  matches: [{path: {exact: /any}}]
  backends: [{host: "127.0.0.1:SHOP", policies: {backendTLS: {spiffe: {}}}}]
- name: named
  gateways: [plain]
  matches: [{path: {exact: /named}}]
  backends: [{host: "127.0.0.1:SHOP", policies: {backendTLS: {spiffe: {}, subjectAltNames: ["spiffe://td.test/ns/shop/sa/web"]}}}]
- name: other-name
  gateways: [plain]
  matches: [{path: {exact: /other-name}}]
  backends: [{host: "127.0.0.1:SHOP", policies: {backendTLS: {spiffe: {}, subjectAltNames: ["spiffe://td.test/bank"]}}}]
- name: abroad
  gateways: [plain]
  matches: [{path: {exact: /abroad}}]
  backends: [{host: "127.0.0.1:ABROAD", policies: {backendTLS: {spiffe: {}, subjectAltNames: ["spiffe://partner.test/api"]}}}]
- name: abroad-unnamed
  gateways: [plain]
  matches: [{path: {exact: /abroad-unnamed}}]
  backends: [{host: "127.0.0.1:ABROAD", policies: {backendTLS: {spiffe: {}}}}]
- name: liar
  gateways: [plain]
  matches: [{path: {exact: /liar}}]
  backends: [{host: "127.0.0.1:LIAR", policies: {backendTLS: {spiffe: {}}}}]
"""


@pytest.fixture
def own() -> TrustDomain:
    return TrustDomain(OWN)


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[WorkloadApi]:
    found = WorkloadApi(tmp_path / "agent.sock")
    found.start()
    yield found
    found.stop()


class Rig:
    """A gateway with its backends: `shop` of its own trust domain, `abroad` of the other one, and `liar`, of which the own
    authority says that it is of the other one.
    """

    def __init__(self, gateway, folder: Path, own: TrustDomain, other: TrustDomain, agent: WorkloadApi, **options) -> None:
        own.issue(SHOP).write(folder, "shop")
        other.issue(ABROAD).write(folder, "abroad")
        own.issue(ABROAD).write(folder, "liar")
        self.folder, self.own, self.plain_port = folder, own, free_port()
        text = CONFIG.replace("PLAIN", str(self.plain_port))
        for name in ("SHOP", "ABROAD", "LIAR"):
            text = text.replace(f"127.0.0.1:{name}", f"127.0.0.1:{backend(folder, own, name.lower())}")
        options.setdefault("settings", f"spiffe: {{endpoint: '{agent.uri}'}}")
        self.running: Gateway = gateway(text, **options)

    def connect(self, name: str | None) -> ssl.SSLSocket:
        """A connection of a client with the SVID of `<name>.pem`."""
        context = client(self.folder, self.own, name)
        return context.wrap_socket(socket.create_connection(("127.0.0.1", self.running.port), timeout=60))

    def get(self, name: str | None) -> tuple[int, dict[str, str], int]:
        """Status and fields of a request, and the serial number of the gateway's certificate."""
        with self.connect(name) as secure:
            return *request(secure), serial_of(secure)

    def plain(self, path: str) -> tuple[int, str, dict[str, str]]:
        """Status, body and fields of a request that goes to a backend."""
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.plain_port, timeout=60)) as connection:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read().decode(), {name.lower(): value for name, value in answer.getheaders()}

    def refused(self, name: str | None, reason: str) -> None:
        """A client gets no answer, and the reason is counted."""
        labels = f'{{bind="bind/{self.running.port}",reason="{reason}"}}'
        before = self.running.metric(f"gw_tls_handshake_failures_total{labels}")
        with contextlib.suppress(OSError):
            status, _, _ = self.get(name)
            raise AssertionError(f"answered with {status}")
        self.running.wait_metric(f"gw_tls_handshake_failures_total{labels}", before + 1)


def request(secure: ssl.SSLSocket) -> tuple[int, dict[str, str]]:
    secure.sendall(b"GET / HTTP/1.1\r\nhost: gateway.test\r\n\r\n")
    answer = http.client.HTTPResponse(secure)
    try:
        answer.begin()
    except http.client.HTTPException as error:
        raise ConnectionError("no answer") from error
    answer.read()
    return answer.status, {name.lower(): value for name, value in answer.getheaders()}


def serial_of(secure: ssl.SSLSocket) -> int:
    der = secure.getpeercert(binary_form=True)
    assert der is not None
    return x509.load_der_x509_certificate(der).serial_number


def test_both_sides_have_an_identity(gateway, own, agent, tmp_path) -> None:
    other, mine = TrustDomain(OTHER), own.issue(GATEWAY)
    agent.give(response(mine, own))
    own.issue(SHOP).write(tmp_path, "client")
    rig = Rig(gateway, tmp_path, own, other, agent, workers=2)
    status, fields, number = rig.get("client")
    assert (status, fields["x-spiffe"], fields["x-workload"], number) == (200, SHOP, "web", mine.serial)
    rig.running.wait_log(f"src.identity={SHOP}")
    for path in ("/any", "/named"):
        status, body, fields = rig.plain(path)
        assert (status, body, fields["x-serial"]) == (200, GATEWAY, str(mine.serial)), path
    for path, why in (("/other-name", "is not accepted"), ("/abroad-unnamed", "certificate verify failed")):
        status, body, _ = rig.plain(path)
        assert (status, why in body) == (503, True), (path, body)
    assert agent.streams == 1, "the supervisor asks, for all workers"


def test_openssl_is_a_client(gateway, own, agent, tmp_path) -> None:
    agent.give(response(own.issue(GATEWAY), own))
    own.issue(SHOP).write(tmp_path, "client")
    rig = Rig(gateway, tmp_path, own, TrustDomain(OTHER), agent)
    (tmp_path / "root.pem").write_bytes(own.root.public_bytes(Encoding.PEM))
    given = ["-cert", tmp_path / "client.pem", "-key", tmp_path / "client.key", "-CAfile", tmp_path / "root.pem"]
    command = ["openssl", "s_client", "-connect", f"127.0.0.1:{rig.running.port}", "-verify_return_error", "-quiet"]
    asked = "GET / HTTP/1.1\r\nhost: a.test\r\nconnection: close\r\n\r\n"
    done = subprocess.run([*command, *given], input=asked, capture_output=True, text=True, timeout=60, check=False)
    assert "HTTP/1.1 200" in done.stdout, done.stderr


def test_clients_need_an_svid_of_the_trust_domain(gateway, own, agent, tmp_path) -> None:
    other = TrustDomain(OTHER)
    agent.give(response(own.issue(GATEWAY), own, (other,)))
    for name, pair in {
        "abroad-client": other.issue(f"spiffe://{OTHER}/web"),
        "liar-client": own.issue(f"spiffe://{OTHER}/web"),
        "authority": own.issue(f"spiffe://{OWN}/web", signs=True),
        "nameless": own.issue(f"spiffe://{OWN}"),
        "expired": own.issue(SHOP, -60),
        "good": own.issue(BANK),
    }.items():
        pair.write(tmp_path, name)
    rig = Rig(gateway, tmp_path, own, other, agent)
    for name in (None, "abroad-client", "liar-client", "authority", "nameless", "expired"):
        rig.refused(name, "certificate")
    assert rig.get("good")[0] == 200
    rig.running.wait_log(f"the SPIFFE ID spiffe://{OTHER}/web is not of the trust domain {OWN}")


def test_sessions_are_not_resumed(gateway, own, agent, tmp_path) -> None:
    """What is resumed is not verified again."""
    agent.give(response(own.issue(GATEWAY), own))
    own.issue(SHOP).write(tmp_path, "client")
    rig = Rig(gateway, tmp_path, own, TrustDomain(OTHER), agent)
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        context = client(tmp_path, own, "client")
        context.maximum_version = version
        session = None
        for _ in range(2):
            sock = socket.create_connection(("127.0.0.1", rig.running.port), timeout=60)
            with context.wrap_socket(sock, session=session) as secure:
                assert request(secure)[0] == 200
                assert not secure.session_reused
                session = secure.session


def test_backends_of_other_trust_domains(gateway, own, agent, tmp_path) -> None:
    other = TrustDomain(OTHER)
    agent.give(response(own.issue(GATEWAY), own))
    rig = Rig(gateway, tmp_path, own, other, agent)
    status, body, _ = rig.plain("/abroad")
    assert (status, "no bundle for the trust domain partner.test" in body) == (503, True), body
    agent.give(response(own.issue(GATEWAY), own, (other,)))
    rig.running.wait_log_count("X.509-SVID received", 2)
    assert rig.plain("/abroad")[:2] == (200, GATEWAY)
    # An authority signs for its own trust domain only.
    status, body, _ = rig.plain("/liar")
    assert (status, f"is not of the trust domain {OWN}" in body) == (503, True), body


def test_a_new_svid_loses_no_connection(gateway, own, agent, tmp_path) -> None:
    agent.give(response(own.issue(GATEWAY), own))
    own.issue(SHOP).write(tmp_path, "client")
    rig = Rig(gateway, tmp_path, own, TrustDomain(OTHER), agent, workers=2)
    with rig.connect("client") as kept, contextlib.closing(http.client.HTTPConnection("127.0.0.1", rig.plain_port)) as upstream:
        connections = set()
        for number in range(2, 12):
            renewed = own.issue(GATEWAY)
            agent.give(response(renewed, own))
            rig.running.wait_log_count("X.509-SVID received", number)
            rig.running.wait(lambda renewed=renewed: rig.get("client")[2] == renewed.serial)
            assert request(kept)[0] == 200
            upstream.request("GET", "/any")
            answer = upstream.getresponse()
            assert (answer.status, answer.read().decode()) == (200, GATEWAY)
            connections.add(answer.headers["x-connection"])
        assert len(connections) == 1, "the pool goes on"
    assert "configuration reloaded" not in rig.running.log(), "a renewal is no reload"


def test_new_svids_under_load(gateway, own, agent, tmp_path) -> None:
    agent.give(response(own.issue(GATEWAY), own))
    own.issue(SHOP).write(tmp_path, "client")
    rig = Rig(gateway, tmp_path, own, TrustDomain(OTHER), agent, workers=2)
    over = threading.Event()

    def load() -> set[int]:
        """Requests on connections of their own, one after the other."""
        found = set()
        while not over.is_set():
            status, _, number = rig.get("client")
            assert (status, rig.plain("/any")[0]) == (200, 200)
            found.add(number)
        return found

    with ThreadPoolExecutor(4) as pool:
        loads = [pool.submit(load) for _ in range(4)]
        for number in range(2, 42):
            agent.give(response(own.issue(GATEWAY), own))
            rig.running.wait_log_count("X.509-SVID received", number)
        over.set()
        seen = set().union(*(one.result() for one in loads))
    assert len(seen) > 1
    assert "TLS handshake failed" not in rig.running.log()


def test_the_agent_is_away(gateway, own, agent, tmp_path) -> None:
    first = own.issue(GATEWAY)
    agent.give(response(first, own))
    own.issue(SHOP).write(tmp_path, "client")
    rig = Rig(gateway, tmp_path, own, TrustDomain(OTHER), agent)
    assert rig.running.metric(EXPIRY) == int(first.chain[0].not_valid_after_utc.timestamp())
    agent.stop()
    rig.running.wait_log("the SPIFFE Workload API does not answer")
    assert rig.get("client")[0] == 200, "the last SVID stays"
    agent.latest = response(own.issue(GATEWAY, 3), own)
    agent.start()
    rig.running.wait_log_count("X.509-SVID received", 2)
    agent.stop()
    rig.running.wait_log("the X.509-SVID has expired")
    rig.refused("client", "identity")
    rig.running.wait_metric(EXPIRY, 0)
    status, body, _ = rig.plain("/any")
    assert (status, "no X.509-SVID has come" in body) == (503, True), body
    renewed = own.issue(GATEWAY)
    agent.latest = response(renewed, own)
    agent.start()
    rig.running.wait_log_count("X.509-SVID received", 3)
    assert (rig.get("client")[2], rig.plain("/any")[0]) == (renewed.serial, 200)


def test_a_start_without_an_agent(gateway, own, agent, tmp_path) -> None:
    agent.stop()
    own.issue(SHOP).write(tmp_path, "client")
    rig = Rig(gateway, tmp_path, own, TrustDomain(OTHER), agent, settings="", environment={"SPIFFE_ENDPOINT_SOCKET": agent.uri})
    rig.running.wait_log("there is no X.509-SVID yet")
    assert f"endpoint={agent.uri}" in rig.running.log()
    rig.refused("client", "identity")
    assert rig.plain("/any")[0] == 503
    agent.start()
    agent.give(response(own.issue(GATEWAY), own))
    rig.running.wait_log("X.509-SVID received")
    assert (rig.get("client")[0], rig.plain("/any")[0]) == (200, 200)


def test_answers_that_are_no_svid(gateway, own, agent, tmp_path) -> None:
    good, stranger = own.issue(GATEWAY), own.issue(BANK)
    agent.give(response(good, own))
    own.issue(SHOP).write(tmp_path, "client")
    rig = Rig(gateway, tmp_path, own, TrustDomain(OTHER), agent)
    for answer, told in (
        (response(good._replace(key=stranger.key), own), "the key of the X.509-SVID is not that of its certificate"),
        (b"", "the answer has no X.509-SVID"),
        (b"\xff", "the response is not an X509SVIDResponse"),
        (response(own.issue(GATEWAY, -60), own), "the X.509-SVID has expired at"),
    ):
        agent.give(answer)
        rig.running.wait_log(told)
        assert rig.get("client")[2] == good.serial, "the last one stays"
    renewed = own.issue(GATEWAY)
    agent.give(response(renewed, own))
    rig.running.wait_log_count("X.509-SVID received", 2)
    assert rig.get("client")[2] == renewed.serial


def test_a_worker_that_is_started_anew_has_it(gateway, own, agent, tmp_path) -> None:
    mine = own.issue(GATEWAY)
    agent.give(response(mine, own))
    own.issue(SHOP).write(tmp_path, "client")
    rig = Rig(gateway, tmp_path, own, TrustDomain(OTHER), agent)
    [pid] = rig.running.worker_pids()
    os.kill(pid, signal.SIGKILL)
    rig.running.wait_log("worker restarted")
    assert (rig.get("client")[2], rig.plain("/any")[0]) == (mine.serial, 200)


def test_the_key_is_shown_nowhere(gateway, own, agent, tmp_path) -> None:
    mine = own.issue(GATEWAY)
    agent.give(response(mine, own))
    rig = Rig(gateway, tmp_path, own, TrustDomain(OTHER), agent, environment={"RUST_LOG": "debug"})
    rig.plain("/any")
    pages = [rig.running.log()]
    for path in ("config_dump", "config", "debug/tasks", "memory"):
        pages.append(rig.running.fetch(f"http://127.0.0.1:{rig.running.admin}/{path}")[1])
    assert '"certificateSource": "spiffe"' in pages[1] or '"certificateSource":"spiffe"' in pages[1]
    assert agent.uri in pages[1]
    lines = [line for line in mine.key_bytes(Encoding.PEM).decode().splitlines() if not line.startswith("-")]
    for page in pages:
        assert "PRIVATE KEY" not in page
        assert not any(line in page for line in lines)


def test_a_configuration_that_needs_it_no_more(gateway, own, agent, tmp_path) -> None:
    agent.give(response(own.issue(GATEWAY), own))
    own.issue(SHOP).write(tmp_path, "client")
    rig = Rig(gateway, tmp_path, own, TrustDomain(OTHER), agent)
    rig.running.reload("gateways: {default: {port: {port}}}\n")
    agent.wait_idle()
    rig.running.reload(f"gateways: {{default: {{port: {rig.running.port}, protocol: HTTPS, tls: {{spiffe: {{}}}}}}}}\n")
    assert rig.get("client")[0] == 404
    assert agent.streams == 2
