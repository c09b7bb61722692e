"""A new process takes the place of the running one: what goes on, what is refused, and what a service manager is told."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import signal
import socket
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.end_to_end.federation_rig import Raw
from tests.end_to_end.gwctl_rig import gwctl
from tests.end_to_end.mcp_stand_in import StandIn as McpStandIn
from tests.end_to_end.provider_stand_in import StandIn
from tests.end_to_end.running import Gateway, free_port
from tests.end_to_end.service_manager_rig import Unit, hello
from tests.end_to_end.upgrade_rig import (
    Held,
    Load,
    Releases,
    ctl,
    releases,  # noqa: F401
    runs,
    served,
    signalled,
    stop,
    successors,  # noqa: F401
    until,
)

CONFIG = """
gateways:
  default: {port: {port}}
mcp:
  targets:
  - name: a
    TARGET
llm:
  models:
  - name: m
    provider: openai
    params: {baseUrl: "http://127.0.0.1:PROVIDER/v1", apiKey: sk-sample}
routes:
- name: release
  matches: [{path: {exact: /release}}]
  policies: {directResponse: {status: 200, body: "$RELEASE"}}
"""
SHORT = "connectionTerminationDeadline: 1s"
Start = Callable[..., Gateway]


@pytest.fixture
def mcp() -> Iterator[McpStandIn]:
    found = McpStandIn()
    yield found
    found.stop()


class Stream:
    """A chat whose answer comes slowly."""

    def __init__(self, gateway: Gateway) -> None:
        body = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "go"}]}
        request = urllib.request.Request(
            f"{gateway.url}/v1/chat/completions", json.dumps(body).encode(), {"content-type": "application/json"}
        )
        self._answer = urllib.request.urlopen(request, timeout=240)
        assert b"first" in self._answer.readline()

    def rest(self) -> bytes:
        """What comes until the end, or until the connection breaks."""
        found = b""
        with contextlib.suppress(OSError, http.client.HTTPException):
            while piece := self._answer.read1(4096):
                found += piece
        return found


@pytest.mark.parametrize("workers", [1, 2])
def test_nothing_is_lost_there_and_back(
    gateway: Start, releases: Releases, successors: list[int], mcp: McpStandIn, workers: int
) -> None:
    held = Held()
    provider = StandIn(held)
    text = CONFIG.replace("TARGET", mcp.target(mcp.add("a"))).replace("PROVIDER", str(provider.port))
    running = gateway(text, workers=workers, environment=releases.environment)
    load, session = Load(running.port), Raw(running)
    try:
        stream = Stream(running)
        releases.install("new")
        new = ctl(running, successors)
        load.go_on()
        # Until an old worker has read that it drains, it may accept one more.
        until(lambda: served(running) == "new")
        assert session.names("tools/list", "tools") == ["call"], "the session goes on in the new process"
        assert running.process.poll() is None, "the stream is left to the old process"
        later = Stream(running)
        releases.install("old")
        last = signalled(running, new, successors)
        load.go_on()
        assert served(running) == "old"
        assert session.text("call") == "a called"
        assert running.process.poll() is None
        assert runs(new), "another stream is left to this one"
        held.go.set()
        assert [b"[DONE]" in one.rest() for one in (stream, later)] == [True, True]
        assert running.process.wait(60) == 0
        until(lambda: not runs(new))
        assert runs(last)
    finally:
        held.go.set()
        load.stop()
        session.http.close()
        provider.close()
    assert load.failures == []
    assert len(mcp.servers["a"].asked("initialize")) == 1
    assert "Traceback" not in running.log()


def test_the_operators_servers_are_the_new_process(gateway: Start, releases: Releases, successors: list[int]) -> None:
    running = gateway("gateways: {default: {port: {port}}}\n", environment=releases.environment)
    new = ctl(running, successors)
    assert running.process.wait(60) == 0
    assert running.fetch(f"http://127.0.0.1:{running.readiness}/healthz/ready")[0] == 200
    assert f'"pid": {new}' in running.fetch(f"http://127.0.0.1:{running.admin}/memory")[1]
    assert running.fetch(f"http://127.0.0.1:{running.stats}/metrics")[0] == 200


BROKEN = "routes: [{nonsense: 1}]\n"
HELLO = "gateways: {default: {port: {port}}}\nroutes: [{policies: {directResponse: {status: 200, body: $RELEASE}}}]\n"


@pytest.mark.parametrize(
    ("text", "script", "why"),
    [
        (BROKEN, None, r"nonsense.*config\.yaml:\d+"),
        (HELLO + "binds: [{port: {spare}, listeners: [{name: b}]}]\n", None, r"already in use"),
        (HELLO, "#!/bin/sh\nexit 3\n", r"ended before it served \(exit status 3\)"),
        (HELLO, "#!/nowhere\n", r"cannot be started: No such file"),
    ],
    ids=["configuration", "port", "exit", "program"],
)
def test_refused_with_the_reason(gateway: Start, releases: Releases, text: str, script: str | None, why: str) -> None:
    running = gateway(HELLO, environment=releases.environment)
    with urllib.request.urlopen(running.url, timeout=60) as answer:
        assert answer.read() == b"old"
    with socket.create_server(("127.0.0.1", running.spare)):
        if text != HELLO:
            running.write(text.replace("{spare}", str(running.spare)))
            running.wait_log("Failed to reload config")
        releases.install("new", script) if script else releases.install("new")
        done = gwctl("proxy", "upgrade", "-p", str(running.admin))
        assert done.returncode == 1
        assert re.search(f"the gateway continues unchanged: .*{why}", done.stderr, re.S), done.stderr
        running.process.send_signal(signal.SIGUSR2)
        running.wait_log("upgrade refused")
    with urllib.request.urlopen(running.url, timeout=60) as answer:
        assert answer.read() == b"old"
    assert running.stop() == 0


def test_a_stop_of_the_old_process_shortens_its_end(gateway: Start, releases: Releases, successors: list[int]) -> None:
    held = Held()
    provider = StandIn(held)
    text = CONFIG.replace("mcp:\n  targets:\n  - name: a\n    TARGET\n", "").replace("PROVIDER", str(provider.port))
    running = gateway(text, environment=releases.environment, settings=SHORT)
    stream = Stream(running)
    ctl(running, successors)
    assert running.process.poll() is None
    running.process.send_signal(signal.SIGTERM)
    try:
        assert running.process.wait(60) == 0
        assert not held.go.is_set()
    finally:
        held.go.set()
        provider.close()
    assert b"[DONE]" not in stream.rest()


def test_a_stop_while_the_new_process_begins(gateway: Start, releases: Releases, tmp_path: Path) -> None:
    running = gateway(HELLO, environment=releases.environment)
    begun = tmp_path / "begun"
    releases.install("new", f"#!/bin/sh\necho $$ > {begun}.new\nmv {begun}.new {begun}\nexec sleep 600\n")
    running.process.send_signal(signal.SIGUSR2)
    until(begun.exists)
    pid = int(begun.read_text())
    assert running.stop() == 0
    until(lambda: not runs(pid))


def test_a_worker_that_dies_while_the_new_process_begins_is_replaced(
    gateway: Start, releases: Releases, tmp_path: Path
) -> None:
    running = gateway(HELLO, environment=releases.environment)
    begun = tmp_path / "begun"
    releases.install("new", f"#!/bin/sh\necho $$ > {begun}.new\nmv {begun}.new {begun}\nexec sleep 600\n")
    running.process.send_signal(signal.SIGUSR2)
    until(begun.exists)
    pid = int(begun.read_text())
    [worker] = running.worker_pids()
    os.kill(worker, signal.SIGKILL)
    running.wait_log("worker restarted")
    with urllib.request.urlopen(running.url, timeout=60) as answer:
        assert answer.read() == b"old"
    assert runs(pid), "the upgrade is still under way"
    assert "upgrade refused" not in running.log()
    assert running.stop() == 0
    until(lambda: not runs(pid))


def test_a_service_manager_follows(tmp_path: Path, successors: list[int]) -> None:
    port, own = free_port(), free_port()
    one = Unit(tmp_path, port)
    try:
        one.write(hello(port) + f"binds: [{{port: {own}, listeners: [{{name: b, routes: [{{name: b, policies: {{directResponse: {{status: 200, body: own}}}}}}]}}]}}]\n")
        process = one.start()
        one.wait("READY=1")
        process.send_signal(signal.SIGUSR2)
        main = one.next()
        while main == "WATCHDOG=1":
            main = one.next()
        assert main.startswith("MAINPID="), main
        successors.append(int(main.partition("=")[2]))
        one.wait("READY=1")
        assert process.wait(60) == 0
        assert "STOPPING=1" not in one.waiting()
        for place, text in ((port, "hello"), (own, "own")):
            with urllib.request.urlopen(f"http://127.0.0.1:{place}/", timeout=60) as answer:
                assert answer.read().decode() == text
        one.wait("WATCHDOG=1")
        stop(successors[-1])
        one.wait("STOPPING=1")
    finally:
        one.close()
