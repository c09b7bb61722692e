"""Every command and endpoint of an operator at a gateway under load, beside what it printed before.

The files are tests/golden/operate/*.txt; what differs between two runs (ports, times, counts, addresses of objects) stands
in them as a word in angle brackets. HEADGATE_REGOLD=1 writes them anew, and the difference is to be read.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests import forked_rig
from tests.end_to_end.conftest import Gateway, free_port
from tests.end_to_end.tracing import rows

GOLDEN = Path(__file__).parents[1] / "golden" / "operate"
CONFIG = """
gateways:
  default: {port: {port}}
backends:
- name: model
  ai: {name: own, provider: {openAI: {model: small}}, hostOverride: "127.0.0.1:ECHO"}
services:
- {name: cart, namespace: shop, hostname: cart.shop.test, vips: [10.0.0.1], ports: {80: 8080}}
workloads:
- {uid: cart-1, name: cart-1, namespace: shop, workloadIps: [127.0.0.1], services: {"shop/cart.shop.test": {80: ECHO}}}
routes:
- name: cart
  matches: [{path: {pathPrefix: /shop/cart}}]
  backends: [{service: {name: shop/cart.shop.test, port: 80}}]
- name: chat
  matches: [{path: {pathPrefix: /v1}}]
  backends: [{backend: model}]
- name: shop
  matches: [{path: {pathPrefix: /shop}}]
  policies:
    responseHeaderModifier: {set: {x-team: edge}}
  backends: [{host: "127.0.0.1:ECHO", weight: 3}]
- name: hello
  matches: [{path: {pathPrefix: /}}]
  policies:
    directResponse: {status: 200, body: hello}
"""
CLIENTS = 3


class Load:
    """Clients that ask until they are stopped; `bad` are the answers other than 200."""

    def __init__(self, port: int) -> None:
        self.bad: list[Any] = []
        self.good = 0
        self._port = port
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._ask) for _ in range(CLIENTS)]
        for thread in self._threads:
            thread.start()

    def _ask(self) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=30)
        while not self._over.wait(0.002):
            try:
                connection.request("GET", "/shop/cart", headers={"host": "shop.test"})
                answer = connection.getresponse()
                answer.read()
            except OSError as error:
                self.bad.append(repr(error))
                connection.close()
                continue
            if answer.status == 200:
                self.good += 1
            else:
                self.bad.append(answer.status)
        connection.close()

    def stop(self) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()


class Scene:
    """A gateway under load, and what changes from run to run."""

    def __init__(self, folder: Path, echo: int) -> None:
        self.folder = folder
        text = CONFIG.replace("ECHO", str(echo))
        self.gateway = Gateway(folder, text, 2, {})
        self.gateway.wait_ready()
        self.load = Load(self.gateway.port)
        ports = {self.gateway.port: "<port>", self.gateway.admin: "<admin>", self.gateway.stats: "<stats>",
                 self.gateway.readiness: "<readiness>", echo: "<echo>"}  # fmt: skip
        self._words = [(str(folder), "<folder>")] + [(str(number), word) for number, word in ports.items()]

    def run(self, *arguments: str, status: int = 0, module: str = "gwctl") -> str:
        """What a command prints, `$ command` and standard error included."""
        done = forked_rig.run(f"headgate.cli.{module}", *arguments, folder=self.folder)
        assert done.returncode == status, done
        return done.stdout + done.stderr

    def local(self, *arguments: str) -> str:
        """A command of `gwctl proxy` at this gateway."""
        return self.run("proxy", *arguments, "--local", "-p", str(self.gateway.admin))

    def fetch(self, path: str, method: str = "GET") -> str:
        """The text of an admin endpoint."""
        status, text = self.gateway.fetch(f"http://127.0.0.1:{self.gateway.admin}{path}", method)
        assert status == 200, text
        return text

    def plain(self, text: str) -> str:
        for found, word in self._words:
            # A port may be a part of another number.
            text = re.sub(rf"(?<!\d){re.escape(found)}(?!\d)", word, text)
        return text

    def close(self) -> None:
        self.load.stop()
        self.gateway.stop()


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory, echo: int) -> Iterator[Scene]:
    found = Scene(tmp_path_factory.mktemp("operate"), echo)
    yield found
    found.close()


@pytest.fixture(autouse=True)
def undisturbed(scene: Scene) -> Iterator[None]:
    """No request of the load fails while the operator works, and some are answered."""
    before = scene.load.good
    yield
    deadline = time.monotonic() + 40
    while scene.load.good == before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert scene.load.bad == []
    assert scene.load.good > before


def golden(name: str, text: str) -> None:
    path = GOLDEN / f"{name}.txt"
    if os.environ.get("HEADGATE_REGOLD"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    assert text == path.read_text()


# Members of JSON and YAML whose values differ from run to run and from machine to machine.
CHANGING = (
    "requests|in_flight|requestLatency|latencyMs|pendingRequests|totalRequests|connections|idle|accepted|open|pid|cpu_seconds|digest"
    "|version|git_revision|rust_version|build_profile|build_target"
)


def counted(text: str) -> str:
    """Counts, times and versions hidden, in tables, JSON and YAML."""
    text = re.sub(rf'(?m)^(\s*(?:- )?"?(?:{CHANGING})"?: )(?!\{{)\S.*?(,?)$', r"\1<changes>\2", text)
    text = re.sub(r"(?m)^(.+ [01]\.[0-9]{2}) +[0-9]+ +\S+ms +", r"\1  <requests>  <latency>  ", text)
    # Latencies differ in their width, and with them the columns of a table.
    return re.sub(r"(?<=\S) {2,}", "  ", text) if text.startswith("TYPE") else text


@pytest.mark.parametrize("form", ["short", "json", "yaml"])
def test_the_whole_configuration(scene: Scene, form: str) -> None:
    golden(f"config-all-{form}", counted(scene.plain(scene.local("config", "all", "-o", form))))


@pytest.mark.parametrize("form", ["short", "json", "yaml"])
def test_the_backends(scene: Scene, form: str) -> None:
    golden(f"config-backends-{form}", counted(scene.plain(scene.local("config", "backends", "--all", "-o", form))))


def test_a_saved_dump(scene: Scene) -> None:
    saved = scene.folder / "dump.json"
    saved.write_text(scene.fetch("/config_dump"))
    text = scene.run("proxy", "config", "backends", "--all", "--file", str(saved))
    golden("config-backends-short", counted(scene.plain(text)))


def test_log_levels(scene: Scene) -> None:
    told = [
        scene.local("log"),
        scene.local("log", "--set", "headgate.llm=debug"),
        scene.fetch("/logging"),
        scene.local("log", "--level", "info"),
    ]
    golden("log", "".join(told))


def test_a_trace(scene: Scene) -> None:
    port = str(scene.gateway.port)
    command = ("trace", "--raw", "--expression", 'request.path == "/shop/traced"', "--port", port)
    text = scene.run("proxy", *command, "--local", "-p", str(scene.gateway.admin), "--", "http://shop.test/shop/traced")
    events = [json.loads(line) for line in text.splitlines()]
    golden("trace", "\n".join(rows(events)) + "\n")
    saved = scene.folder / "trace.jsonl"
    saved.write_text(text)
    assert scene.run("proxy", "trace", "--raw", "--file", str(saved)) == text


@pytest.mark.parametrize(("kind", "more"), [("cpu", ("--seconds", "1")), ("heap", ())])
def test_profiles(scene: Scene, kind: str, more: tuple[str, ...]) -> None:
    golden(f"profile-{kind}", scene.local("profile", kind, "-o", "out.pb.gz", *more))
    assert (scene.folder / "out.pb.gz").stat().st_size > 100


def test_tasks(scene: Scene) -> None:
    tasks = json.loads(scene.fetch("/debug/tasks"))
    assert set(tasks) == {"admin", "workload"}
    assert tasks["admin"]
    assert {re.match(r"worker \d+", text)[0] for text in tasks["workload"]} == {"worker 0", "worker 1"}


def test_memory(scene: Scene) -> None:
    lines = shape(json.loads(scene.fetch("/memory")))
    # What kernel and C library tell differs from machine to machine.
    same = [line for line in lines if not re.search(r"\.(smaps|specific|cgroup|status)\b", line)]
    golden("memory", scene.plain("\n".join(same) + "\n"))


def shape(value: Any, place: str = "") -> list[str]:
    """Where there are values of which type."""
    if isinstance(value, dict):
        return [line for key in sorted(value) for line in shape(value[key], f"{place}.{key}")]
    if isinstance(value, list):
        return sorted({line for one in value for line in shape(one, f"{place}[]")})
    return [f"{place}: {type(value).__name__}"]


def test_a_difference_and_a_check(scene: Scene) -> None:
    new = scene.folder / "new.yaml"
    text = scene.gateway.path.read_text()
    new.write_text(text.replace("body: hello", "body: goodbye").replace("weight: 3", "weight: 4"))
    admin = f"http://127.0.0.1:{scene.gateway.admin}"
    golden("diff", scene.plain(scene.run("-f", str(new), "--diff", admin, status=3, module="main")))
    assert scene.run("-f", str(scene.gateway.path), "--diff", admin, module="main") == "no differences\n"
    golden("validate", scene.plain(scene.run("-f", str(new), "--validate-only", module="main")))
    new.write_text(text.replace("status: 200", "status: 20000").replace("set: {x-team", "sett: {x-team"))
    golden("validate-bad", scene.plain(scene.run("-f", str(new), "--validate-only", status=1, module="main")))


def test_what_needs_a_cluster(scene: Scene) -> None:
    told = [scene.run(*words, status=1) for words in (
        ("-k", "/nowhere/kubeconfig", "proxy", "trace", "gateway/edge", "-n", "shop", "--raw"),
        ("-k", "/nowhere/kubeconfig", "proxy", "config", "backends", "gateway/edge"),
        ("-k", "/nowhere/kubeconfig", "proxy", "log", "gateway/edge"), ("-k", "/nowhere/kubeconfig", "controller", "log"),
    )]  # fmt: skip
    golden("clusters", "".join(told))


def test_a_gateway_that_is_not_there(scene: Scene) -> None:
    port = str(free_port())
    told = scene.run("proxy", "config", "all", "--local", "-p", port, status=1)
    golden("no-gateway", told.replace(port, "<admin>"))
