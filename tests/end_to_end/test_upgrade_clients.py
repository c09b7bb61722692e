"""An upgrade under clients of HTTP/2 and TLS, and with sessions of MCP servers that are processes of the gateway."""

from __future__ import annotations

import json
import ssl
import sys
import threading
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import trustme
from tests.end_to_end.federation_rig import Raw, messages
from tests.end_to_end.provider_stand_in import StandIn
from tests.end_to_end.running import PATIENCE, Gateway, free_port
from tests.end_to_end.tls_rig import (
    authority,  # noqa: F401
    issue,
)
from tests.end_to_end.upgrade_clients_rig import Http2Load, Http2Stream
from tests.end_to_end.upgrade_rig import (
    Held,
    Load,
    Releases,
    ctl,
    releases,  # noqa: F401
    runs,
    served,
    signalled,
    successors,  # noqa: F401
    until,
)

CONFIG = """
gateways:
  default: {port: {port}}
  secure: {port: SECURE, protocol: HTTPS, tls: {cert: FOLDER/localhost.pem, key: FOLDER/localhost.key}}
routes:
- name: release
  gateways: [default, secure]
  matches: [{path: {exact: /release}}]
  policies: {directResponse: {status: 200, body: "$RELEASE"}}
- name: chat
  gateways: [default, secure]
  backends: [{host: "127.0.0.1:PROVIDER"}]
"""
PEER = Path(__file__).parents[1] / "peers" / "held_server.py"
Start = Callable[..., Gateway]


@pytest.fixture
def provider() -> Iterator[tuple[Held, int]]:
    """Streams that wait, and the port of the server that has them."""
    held = Held()
    found = StandIn(held)
    yield held, found.port
    held.go.set()
    found.close()


def trusting(folder: Path, *protocols: str) -> ssl.SSLContext:
    found = ssl.create_default_context(cafile=str(folder / "ca.pem"))
    if protocols:
        found.set_alpn_protocols(list(protocols))
    return found


def test_nothing_is_lost_over_http2_and_tls(
    gateway: Start, releases: Releases, successors: list[int], provider: tuple[Held, int],
    authority: trustme.CA, tmp_path: Path,
) -> None:  # fmt: skip
    held, port = provider
    over_tls = free_port()
    issue(authority, tmp_path, "localhost", "localhost")
    text = CONFIG.replace("FOLDER", str(tmp_path)).replace("PROVIDER", str(port)).replace("SECURE", str(over_tls))
    running = gateway(text, workers=2, environment=releases.environment)
    plain, secure = trusting(tmp_path), trusting(tmp_path, "h2")
    loads = [
        Load(over_tls, 2, plain),
        Http2Load(running.port, 2),
        Http2Load(over_tls, 2, secure),
    ]
    ways: list[tuple[int, ssl.SSLContext | None]] = [(running.port, None), (over_tls, secure)]
    streams = [Http2Stream(*way) for way in ways]

    def served_over_tls() -> str:
        with urllib.request.urlopen(f"https://localhost:{over_tls}/release", timeout=PATIENCE, context=plain) as answer:
            return str(answer.read().decode())

    def goes_on(release: str) -> None:
        for load in loads:
            load.go_on()
        # Until an old worker has read that it drains, it may accept one more.
        until(lambda: served(running) == release)
        until(lambda: served_over_tls() == release)

    try:
        goes_on("old")
        releases.install("new")
        new = ctl(running, successors)
        goes_on("new")
        assert running.process.poll() is None, "the streams are left to the old process"
        streams += [Http2Stream(*way) for way in ways]
        releases.install("old")
        last = signalled(running, new, successors)
        goes_on("old")
        assert running.process.poll() is None
        assert runs(new), "other streams are left to this one"
        held.go.set()
        assert [b"[DONE]" in one.rest() for one in streams] == [True] * 4
        assert running.process.wait(PATIENCE) == 0
        until(lambda: not runs(new))
        assert runs(last)
    finally:
        held.go.set()
        for load in loads:
            load.stop()
    assert [load.failures for load in loads] == [[], [], []]
    assert "Traceback" not in running.log()


@pytest.mark.parametrize("workers", [1, 2])
def test_a_session_with_a_process_of_its_own(
    gateway: Start, releases: Releases, successors: list[int], tmp_path: Path, workers: int
) -> None:
    """A call that is on its way ends in the process that has it; the next request tells the client to begin anew."""
    go = tmp_path / "go"
    target = f"stdio: {{cmd: {json.dumps(sys.executable)}, args: {json.dumps([str(PEER), str(go)])}}}"
    text = f"gateways: {{default: {{port: {{port}}}}}}\nmcp: {{targets: [{{name: a, {target}}}]}}\n"
    running = gateway(text, workers=workers, environment=releases.environment)
    session = Raw(running)
    held: list[str] = []

    def hold() -> None:
        answer = session.post({"id": "h", "method": "tools/call", "params": {"name": "hold", "arguments": {}}})
        held.append(messages(answer)[-1]["result"]["content"][0]["text"])

    waiting = threading.Thread(target=hold)
    try:
        old = int(session.text("pid"))
        waiting.start()
        until(tmp_path.joinpath("go.held").exists)
        ctl(running, successors)
        refused = session.post({"id": "p", "method": "tools/call", "params": {"name": "pid", "arguments": {}}})
        assert (refused.status_code, refused.text) == (404, "mcp: session not found")
        later = Raw(running)
        new = int(later.text("pid"))
        later.http.close()
        assert new != old
        assert runs(old), "it has a call"
        assert running.process.poll() is None
        go.touch()
        waiting.join(PATIENCE)
        assert held == [str(old)]
        assert running.process.wait(PATIENCE) == 0
        until(lambda: not runs(old))
        assert runs(new)
    finally:
        go.touch()
        session.http.close()
    assert "Traceback" not in running.log()
