"""From the API server's answer until a change is in force at a data plane, and what all of it takes.

`python -m bench.cluster.in_force KUBECONFIG [ROUTES] [GATEWAYS] [CHANGES]`, at an API server of `ci/cluster-lab` with nothing in it.

`headgate controller` and a data plane of one Gateway run as processes. Routes are those of `bench.cluster.routes`, and two more: one whose
redirect says which version is in force, and one to a Service whose endpoint moves between two servers. They are asked for all the time, so
what is told is what clients see. Meanwhile somebody else asks for a route that nobody changes: the longest answer is a stall.
"""

from __future__ import annotations

import asyncio
import http.client
import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
from tests.end_to_end.acceptance_rig import SYSTEM, Lab, own_address
from tests.end_to_end.controller_rig import RunningController
from tests.end_to_end.processes import children_of
from tests.end_to_end.replicas_rig import start_plane
from tests.end_to_end.running import Gateway

from bench.cluster import routes
from headgate.cluster.api import tls_context
from headgate.cluster.kubeconfig import load_access

SPACE = "team-000"
GATEWAY = f"{SPACE}/main"
PROBES = {"moving": "moving.test", "version": "version.test", "steady": "steady.test", "passing": "passing.test"}
PATIENCE_S = 300.0


def cpu_s(pids: list[int]) -> float:
    ticks = 0
    for pid in pids:
        words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(words[11]) + int(words[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def memory_mib(pid: int, name: str = "Rss") -> float:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:")) / 1024


def wait(holds: Callable[[], Any], pause: float = 0.01) -> float:
    """Return how long it took until something held."""
    began = time.monotonic()
    while not holds():
        if time.monotonic() - began > PATIENCE_S:
            raise TimeoutError("nothing happens")
        time.sleep(pause)
    return time.monotonic() - began


class Naming(BaseHTTPRequestHandler):
    """Answers with the port that it was asked at."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        body = str(self.server.server_address[1]).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_arguments: Any) -> None:
        pass


class Asking:
    """Asks a gateway on one connection."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)

    def ask(self, host: str) -> tuple[int, str, str]:
        """Return status, `location` and content; 0 if it cannot be reached."""
        try:
            self._connection.request("GET", "/", headers={"host": host})
            answer = self._connection.getresponse()
            return answer.status, answer.headers.get("location") or "", answer.read().decode()
        except (OSError, http.client.HTTPException):
            self._connection.close()
            return 0, "", ""


class Stalls:
    """Asks for one route that nobody changes. `taken`: seconds of each answer."""

    def __init__(self, port: int) -> None:
        self.taken: list[float] = []
        self._asking, self._ended = Asking(port), False
        self._thread = threading.Thread(target=self._run)

    def begin(self) -> None:
        self._thread.start()

    def end(self) -> None:
        self._ended = True
        self._thread.join()

    def _run(self) -> None:
        while not self._ended:
            began = time.perf_counter()
            status, _, _ = self._asking.ask(PROBES["steady"])
            self.taken.append(time.perf_counter() - began)
            if status != 302:
                raise RuntimeError(f"lost: {status}")
            time.sleep(0.001)

    def told(self, about: str) -> None:
        worst, over = max(self.taken), sum(one > 0.005 for one in self.taken)
        print(f"{about:44} {len(self.taken)} answers, p99 {percentile(self.taken, 99):.2f} ms, longest {worst * 1e3:.1f} ms, {over} over 5 ms")


def percentile(values: list[float], part: int) -> float:
    return sorted(values)[max(0, len(values) * part // 100 - 1)] * 1000


def told(about: str, values: list[float]) -> None:
    print(f"{about:44} p50 {statistics.median(values) * 1e3:.1f} ms, p99 {percentile(values, 99):.1f} ms", flush=True)


def redirect(name: str, version: str) -> dict[str, Any]:
    """Return a route that answers with a version."""
    rule = {"filters": [{"type": "RequestRedirect", "requestRedirect": {"hostname": version, "statusCode": 302}}]}
    spec = {"parentRefs": [{"name": "main"}], "hostnames": [PROBES[name]], "rules": [rule]}
    return routes._made("gateway.networking.k8s.io/v1", "HTTPRoute", SPACE, name, spec)


def moving(port: int) -> list[dict[str, Any]]:
    """Return a route, its Service, and the EndpointSlice with one of two servers."""
    rule = {"backendRefs": [{"name": "moving", "port": 8080}]}
    spec = {"parentRefs": [{"name": "main"}], "hostnames": [PROBES["moving"]], "rules": [rule]}
    return [
        routes._made("gateway.networking.k8s.io/v1", "HTTPRoute", SPACE, "moving", spec),
        routes._made("v1", "Service", SPACE, "moving", {"ports": [{"name": "web", "port": 8080}]}),
        endpoint(port),
    ]


def endpoint(port: int) -> dict[str, Any]:
    found = routes._slice(SPACE, "moving")
    found["ports"][0]["port"] = port
    found["endpoints"] = [{"addresses": [own_address()], "conditions": {"ready": True}}]
    return found


class Run:
    """One size. `lab`: speaks to the API server as an administrator."""

    def __init__(self, lab: Lab, count: int, gateways: int) -> None:
        self.lab, self.count, self.gateways = lab, count, gateways
        self.servers = [ThreadingHTTPServer(("0.0.0.0", 0), Naming) for _ in range(2)]
        for one in self.servers:
            threading.Thread(target=one.serve_forever, daemon=True).start()
        self.plane: Gateway | None = None
        self.controller: RunningController | None = None

    def start(self) -> RunningController:
        found = self.controller = RunningController(
            self.lab.kubeconfig, self.lab.folder, HEADGATE_NAMESPACE=SYSTEM, HEADGATE_XDS_PORT=str(self.lab.xds)
        )
        return found

    def warm(self) -> float:
        """Start a controller, and return how long it took until everything was listed and translated."""
        controller = self.start()
        return wait(lambda: getattr(controller.get(controller.health, "/readyz"), "status_code", 0) == 200)

    def stop(self) -> None:
        if self.controller is not None:
            self.controller.stop()

    def close(self) -> None:
        self.stop()
        if self.plane is not None:
            self.plane.process.kill()
            self.plane.process.wait()
        for one in self.servers:
            one.shutdown()
            one.server_close()

    def rss(self) -> str:
        assert self.controller is not None
        return f"{memory_mib(self.controller.process.pid):.0f} MiB"

    def prepare(self, kubeconfig: str) -> None:
        """Make everything, and have a controller deploy it once: data planes need an account and a certificate."""
        self.warm()
        print(f"{'controller without routes, RSS':44} {self.rss()}", flush=True)
        asyncio.run(routes.make(kubeconfig, self.count, self.gateways))
        port = self.servers[0].server_address[1]
        # The port of all Gateways is one that a process may open.
        spec = {"gatewayClassName": "headgate", "listeners": [{"name": "web", "port": self.lab.port, "protocol": "HTTP"}]}
        self.lab.apply(routes._made("gateway.networking.k8s.io/v1", "Gateway", SPACE, "main", spec))
        self.lab.apply(redirect("version", "v0.test"), redirect("steady", "steady.test"), *moving(port))
        wait(lambda: all(self.lab.get(kind, f"{GATEWAY}{end}") for kind, end in (("ServiceAccount", ""), ("Service", ""), ("ConfigMap", "-xds-ca"))))
        self.stop()

    def first_state(self) -> None:
        print(f"{'caches warm and translated, from the start':44} {self.warm():.2f} s", flush=True)
        began = time.monotonic()
        self.plane = start_plane(self.lab, GATEWAY, self.lab.xds, self.lab.folder / "plane")
        asking = Asking(self.lab.port)
        wait(lambda: asking.ask(PROBES["steady"])[0] == 302)
        print(f"{'first full state in force, then':44} {time.monotonic() - began:.2f} s (with the start of the data plane)", flush=True)

    def changes(self, number: int) -> None:
        asking = Asking(self.lab.port)
        assert self.controller is not None
        assert self.plane is not None
        planes = [self.plane.process.pid, *children_of(self.plane.process.pid)]
        used = cpu_s([self.controller.process.pid]), cpu_s(planes)
        altered, moved, made, gone = [], [], [], []
        for turn in range(number):
            version = f"v{turn + 1}.test"
            self.lab.apply(redirect("version", version))
            altered.append(wait(lambda version=version: version in asking.ask(PROBES["version"])[1], 0))  # type: ignore[misc]
            port = self.servers[(turn + 1) % 2].server_address[1]
            self.lab.apply(endpoint(port))
            moved.append(wait(lambda port=port: asking.ask(PROBES["moving"])[2] == str(port), 0))  # type: ignore[misc]
        for turn in range(number // 5):
            self.lab.apply(redirect("passing", f"p{turn}.test"))
            made.append(wait(lambda: asking.ask(PROBES["passing"])[0] == 302, 0))
            self.lab.delete("HTTPRoute", f"{SPACE}/passing")
            gone.append(wait(lambda: asking.ask(PROBES["passing"])[0] == 404, 0))
        spent = (cpu_s([self.controller.process.pid]) - used[0], cpu_s(planes) - used[1])
        all_changes = 2 * number + 2 * (number // 5)
        told("a changed route in force", altered)
        told("a changed Endpoint in force", moved)
        told("a new route in force", made)
        told("a deleted route gone", gone)
        print(f"{'CPU of a change':44} controller {spent[0] / all_changes * 1e3:.1f} ms, data plane {spent[1] / all_changes * 1e3:.1f} ms")

    def memory(self) -> None:
        assert self.plane is not None
        planes = [self.plane.process.pid, *children_of(self.plane.process.pid)]
        print(f"{'controller, RSS':44} {self.rss()}")
        print(f"{'data plane, Pss of its processes':44} {sum(memory_mib(pid, 'Pss') for pid in planes):.0f} MiB", flush=True)


def measure(kubeconfig: str, count: int, gateways: int, changes: int) -> None:
    access = load_access(kubeconfig, os.environ, Path.home())
    folder = Path(tempfile.mkdtemp(prefix="headgate-bench-"))
    with httpx.Client(base_url=access.server, verify=tls_context(access), headers=dict(access.headers), timeout=60) as client:
        lab = Lab(client, Path(kubeconfig), folder, strict=True)
        lab.apply(routes._made("v1", "Namespace", "", SYSTEM))
        run = Run(lab, count, gateways)
        try:
            run.prepare(kubeconfig)
            run.first_state()
            quiet = Stalls(lab.port)
            quiet.begin()
            time.sleep(3)
            quiet.end()
            quiet.told("a route that nobody changes, in quiet")
            busy = Stalls(lab.port)
            busy.begin()
            run.changes(changes)
            busy.end()
            busy.told("a route that nobody changes, meanwhile")
            run.memory()
        finally:
            run.close()
            lab.peer.server_close()


def main(arguments: list[str]) -> int:
    count, gateways, changes = (int(arguments[index]) if len(arguments) > index else default for index, default in ((1, 1000), (2, 10), (3, 100)))
    print(f"{count} routes over {gateways} Gateways; load {os.getloadavg()[0]:.1f}", flush=True)
    measure(arguments[0], count, gateways, changes)
    print(f"load {os.getloadavg()[0]:.1f}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
