"""A real SPIRE server and agent (`make spire` builds them) give the gateway its identity."""

from __future__ import annotations

import contextlib
import http.client
import os
import shutil
import socket
import ssl
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cryptography import x509
from tests.end_to_end.running import free_port
from tests.end_to_end.spiffe_rig import backend_of

BIN = Path(__file__).parents[2] / "build/bin"
SERVER, AGENT = BIN / "spire-server", BIN / "spire-agent"
DOMAIN = "td.test"
GATEWAY = f"spiffe://{DOMAIN}/gateway"

pytestmark = pytest.mark.skipif(not (SERVER.exists() and AGENT.exists()), reason="make spire brings them")

SERVER_CONFIG = """
server {
  bind_address = "127.0.0.1"
  bind_port = "PORT"
  socket_path = "FOLDER/server.sock"
  trust_domain = "td.test"
  data_dir = "FOLDER/server"
  log_level = "DEBUG"
}
plugins {
  DataStore "sql" { plugin_data { database_type = "sqlite3", connection_string = "FOLDER/server/store.sqlite3" } }
  NodeAttestor "join_token" { plugin_data {} }
  KeyManager "memory" { plugin_data {} }
}
"""
AGENT_CONFIG = """
agent {
  server_address = "127.0.0.1"
  server_port = "PORT"
  socket_path = "FOLDER/agent.sock"
  trust_domain = "td.test"
  data_dir = "FOLDER/agent"
  log_level = "DEBUG"
  insecure_bootstrap = true
}
plugins {
  NodeAttestor "join_token" { plugin_data {} }
  KeyManager "memory" { plugin_data {} }
  WorkloadAttestor "unix" { plugin_data {} }
}
"""
CONFIG = """
gateways:
  default: {port: {port}, protocol: HTTPS, tls: {spiffe: {}}}
  plain: {port: PLAIN}
routes:
- name: who
  gateways: [default]
  policies:
    transformations: {response: {set: {x-spiffe: source.spiffeId}}}
    directResponse: {status: 200, body: in}
- name: named
  gateways: [plain]
  backends: [{host: "127.0.0.1:BACKEND", policies: {backendTLS: {spiffe: {}, subjectAltNames: ["spiffe://td.test/gateway"]}}}]
"""


class Spire:
    """A server and an agent in a folder of their own, whose name is short: their sockets are in it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.port = folder, free_port()
        self._processes: list[subprocess.Popen[bytes]] = []

    def run(self, *arguments: str | Path) -> str:
        done = subprocess.run(arguments, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, (arguments, done.stdout, done.stderr)
        return done.stdout

    def ask(self, *words: str) -> str:
        """A command of the server."""
        return self.run(SERVER, *words, "-socketPath", self.folder / "server.sock")

    def start_server(self) -> None:
        self._start("server", SERVER, SERVER_CONFIG)
        self.wait(lambda: self.ask("healthcheck"))

    def start_agent(self) -> None:
        token = self.ask("token", "generate", "-spiffeID", f"spiffe://{DOMAIN}/host").split()[-1]
        self._start("agent", AGENT, AGENT_CONFIG, "-joinToken", token)
        self.wait(lambda: self.run(AGENT, "healthcheck", "-socketPath", self.folder / "agent.sock"))

    def _start(self, name: str, program: Path, text: str, *more: str) -> None:
        (self.folder / name).mkdir(exist_ok=True)
        path = self.folder / f"{name}.conf"
        path.write_text(text.replace("FOLDER", str(self.folder)).replace("PORT", str(self.port)))
        with (self.folder / f"{name}.log").open("ab") as log:
            self._processes.append(subprocess.Popen([program, "run", "-config", path, *more], stdout=log, stderr=log))

    def stop_agent(self) -> None:
        process = self._processes.pop()
        process.terminate()
        process.wait(60)

    def register(self, seconds: int) -> None:
        """Processes of this user are the gateway."""
        self.ask("entry", "create", "-parentID", f"spiffe://{DOMAIN}/host", "-spiffeID", GATEWAY,
                 "-selector", f"unix:uid:{os.getuid()}", "-x509SVIDTTL", str(seconds))  # fmt: skip

    def fetch(self) -> Path:
        """The folder with an SVID of this process: svid.0.pem, svid.0.key, bundle.0.pem."""
        found = self.folder / "svid"
        shutil.rmtree(found, ignore_errors=True)
        found.mkdir()
        self.wait(lambda: self.run(AGENT, "api", "fetch", "x509", "-socketPath", self.folder / "agent.sock", "-write", found))
        return found

    def wait(self, attempt: Callable[[], object]) -> None:
        deadline = time.monotonic() + 60
        while True:
            try:
                attempt()
            except AssertionError:
                assert time.monotonic() < deadline, self.logs()
                time.sleep(0.1)
            else:
                return

    def logs(self) -> str:
        return "\n".join(path.read_text()[-3000:] for path in self.folder.glob("*.log"))

    def stop(self) -> None:
        for process in self._processes:
            process.kill()
            process.wait()


@pytest.fixture
def spire() -> Iterator[Spire]:
    folder = Path(tempfile.mkdtemp(prefix="spire"))
    found = Spire(folder)
    try:
        found.start_server()
        found.start_agent()
        yield found
    finally:
        found.stop()
        shutil.rmtree(folder, ignore_errors=True)


def ask(port: int, svid: Path) -> tuple[int, str | None, x509.Certificate]:
    """Status, what the gateway calls the client, and the certificate of the gateway."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.load_verify_locations(svid / "bundle.0.pem")
    context.load_cert_chain(svid / "svid.0.pem", svid / "svid.0.key")
    with (
        socket.create_connection(("127.0.0.1", port), timeout=60) as sock,
        context.wrap_socket(sock) as secure,
    ):
        secure.sendall(b"GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")
        answer = http.client.HTTPResponse(secure)
        answer.begin()
        der = secure.getpeercert(binary_form=True)
        assert der is not None
        return answer.status, answer.getheader("x-spiffe"), x509.load_der_x509_certificate(der)


def test_an_identity_of_spire(gateway, spire: Spire) -> None:
    plain = free_port()
    # Nobody is registered yet: the agent is there, and refuses.
    text = CONFIG.replace("PLAIN", str(plain))
    running = gateway(text.replace("BACKEND", "1"), workers=2, settings=f"spiffe: {{endpoint: 'unix://{spire.folder}/agent.sock'}}")
    running.wait_log("no identity issued")
    spire.register(60)
    running.wait_log("X.509-SVID received")
    svid = spire.fetch()
    status, name, certificate = ask(running.port, svid)
    assert (status, name) == (200, GATEWAY)
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.UniformResourceIdentifier) == [GATEWAY]

    # A backend with the same identity, and its own copy of it.
    roots = x509.load_pem_x509_certificates((svid / "bundle.0.pem").read_bytes())
    running.reload(text.replace("BACKEND", str(backend_of(svid / "svid.0.pem", svid / "svid.0.key", roots))))
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", plain, timeout=60)) as connection:
        connection.request("GET", "/")
        answer = connection.getresponse()
        assert (answer.status, answer.read().decode()) == (200, GATEWAY)

    # Half of its time is over: the agent gives another one.
    running.wait_log_count("X.509-SVID received", 2)
    renewed = ask(running.port, spire.fetch())[2]
    assert renewed.serial_number != certificate.serial_number

    # The agent ends, and comes back: the gateway finds it again.
    spire.stop_agent()
    running.wait_log("the SPIFFE Workload API does not answer")
    received = running.log().count("X.509-SVID received")
    spire.start_agent()
    running.wait_log_count("X.509-SVID received", received + 1)
    assert ask(running.port, spire.fetch())[0] == 200
