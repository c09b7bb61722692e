"""From the API server's answer until a change is in force at a data plane, and what all of it takes.

`python -m bench.cluster.in_force KUBECONFIG [ROUTES] [GATEWAYS] [CHANGES]`, at an API server of `ci/cluster-lab` with nothing in it.

`headgate controller` and a data plane of one Gateway run as processes. Routes are those of `bench.cluster.routes`, and two more: one whose
redirect says which version is in force, and one to a Service whose endpoint moves between two servers. They are asked for every millisecond,
so what is told is what clients see. Meanwhile another process asks for a route that nobody changes: the longest answer is a stall.

Beside the time of the clock, which others on the machine lengthen, stands the CPU time of each process, and where a change was when: until it
was translated, until the data plane had put it into force, until a client saw it (from their logs).
"""

from __future__ import annotations

import asyncio
import http.client
import os
import re
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from datetime import datetime
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
from bench.cluster.stalls import Stalls
from headgate.cluster.api import tls_context
from headgate.cluster.kubeconfig import load_access
from headgate.cluster.resources import kinds

SPACE = "team-000"
GATEWAY = f"{SPACE}/main"
PROBES = {"moving": "moving.test", "version": "version.test", "steady": "steady.test", "passing": "passing.test"}
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
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


class Steps:
    """When something was logged, in seconds since 1970. Lines are read once."""

    def __init__(self, path: Path, text: str) -> None:
        self._path, self._text, self._read = path, text, path.stat().st_size

    def first_after(self, moment: float, end: float) -> float:
        """Return when it was first logged after a moment, `end` at the latest."""
        with self._path.open() as file:
            file.seek(self._read)
            lines = file.readlines()
            self._read = file.tell()
        found = [logged_at(one) for one in lines if self._text in one]
        return min((one for one in found if one > moment), default=end)


def logged_at(line: str) -> float:
    stamp = re.search(r"\d{4}-\d\d-\d\dT[\d:.]+Z", line)
    assert stamp is not None, line
    return datetime.fromisoformat(stamp[0].replace("Z", "+00:00")).timestamp()


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

    def __init__(self, port: int, address: str = "127.0.0.1") -> None:
        self._connection = http.client.HTTPConnection(address, port, timeout=10)

    def ask(self, host: str) -> tuple[int, str, str]:
        """Return status, `location` and content; 0 if it cannot be reached."""
        try:
            self._connection.request("GET", "/", headers={"host": host})
            answer = self._connection.getresponse()
            return answer.status, answer.headers.get("location") or "", answer.read().decode()
        except (OSError, http.client.HTTPException):
            self._connection.close()
            return 0, "", ""


def percentile(values: list[float], part: int) -> float:
    return sorted(values)[min(len(values) - 1, len(values) * part // 100)] * 1000


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


def define(client: httpx.Client) -> None:
    """Apply the CRDs, and wait until they are served."""
    for one in map(kinds.definition, kinds.KINDS):
        spec, name = one["spec"], one["metadata"]["name"]
        query = {"fieldManager": "bench", "force": "true"}
        client.patch(f"{DEFINITIONS}/{name}", json=one, params=query, headers={"content-type": "application/apply-patch+yaml"})
        path = f"/apis/{spec['group']}/{spec['versions'][0]['name']}/{spec['names']['plural']}"
        wait(lambda path=path: client.get(path).status_code == 200)  # type: ignore[misc]


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
        assert self.controller is not None
        used, began = cpu_s([self.controller.process.pid]), time.time()
        self.plane = start_plane(self.lab, GATEWAY, self.lab.xds, self.lab.folder / "plane")
        asking = Asking(self.lab.port)
        wait(lambda: asking.ask(PROBES["steady"])[0] == 302)
        now = time.time()
        warm = next(logged_at(one) for one in self.controller.log.read_text().splitlines() if "all kinds are listed" in one)
        planes = cpu_s([self.plane.process.pid, *children_of(self.plane.process.pid)])
        print(f"{'first full state in force, from warm caches':44} {now - warm:.2f} s, from the start of the data plane {now - began:.2f} s")
        print(f"{'CPU of that':44} controller {used:.2f} s until translated, data plane {planes:.2f} s", flush=True)

    def written(self) -> None:
        """Wait until no status is written any more: the first write all of them."""
        assert self.controller is not None
        pid, began = self.controller.process.pid, time.monotonic()
        before = -1.0
        while (now := cpu_s([pid])) - before > 0.05:
            before = now
            time.sleep(2)
        print(f"{'statuses written, from the first state':44} {time.monotonic() - began - 2:.0f} s, CPU {now:.1f} s", flush=True)

    def changes(self, number: int) -> None:
        asking = Asking(self.lab.port)
        assert self.controller is not None
        assert self.plane is not None
        self.controller.get(self.controller.admin, "/logging?level=gw/translator=debug", "POST")
        supervisor, below = self.plane.process.pid, children_of(self.plane.process.pid)
        groups = {"controller": [self.controller.process.pid], "supervisor": [supervisor], "workers": below}
        used = {name: cpu_s(pids) for name, pids in groups.items()}
        found: dict[str, list[tuple[float, float, float]]] = {}
        translated = Steps(self.controller.log, '"translated"')
        taken = Steps(self.plane.log_path, "configuration received")

        def changed(about: str, seen: Callable[[], bool]) -> None:
            answered = time.time()
            wait(seen, 0.001)
            now = time.time()
            steps = translated.first_after(answered, now) - answered, taken.first_after(answered, now) - answered, now - answered
            found.setdefault(about, []).append(steps)

        for turn in range(number):
            version = f"v{turn + 1}.test"
            self.lab.apply(redirect("version", version))
            changed("a changed route", lambda version=version: version in asking.ask(PROBES["version"])[1])  # type: ignore[misc]
            port = self.servers[(turn + 1) % 2].server_address[1]
            self.lab.apply(endpoint(port))
            changed("a changed Endpoint", lambda port=port: asking.ask(PROBES["moving"])[2] == str(port))  # type: ignore[misc]
        for turn in range(number // 5):
            self.lab.apply(redirect("passing", f"p{turn}.test"))
            changed("a new route", lambda: asking.ask(PROBES["passing"])[0] == 302)
            self.lab.delete("HTTPRoute", f"{SPACE}/passing")
            changed("a deleted route", lambda: asking.ask(PROBES["passing"])[0] == 404)
        count = sum(map(len, found.values()))
        for about, steps in found.items():
            told(about, [one[2] for one in steps])
            told("  of that until it was translated", [one[0] for one in steps])
            told("  until the data plane had it in force", [one[1] for one in steps])
        spent = ", ".join(f"{name} {(cpu_s(pids) - used[name]) / count * 1e3:.1f} ms" for name, pids in groups.items())
        print(f"{'CPU of a change':44} {spent}", flush=True)

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
        define(client)
        lab.apply(routes._made("v1", "Namespace", "", SYSTEM))
        run = Run(lab, count, gateways)
        try:
            run.prepare(kubeconfig)
            run.first_state()
            run.written()
            quiet = Stalls(lab.port, PROBES["steady"])
            time.sleep(5)
            quiet.end("a route that nobody changes, in quiet")
            busy = Stalls(lab.port, PROBES["steady"])
            run.changes(changes)
            busy.end("a route that nobody changes, meanwhile")
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
