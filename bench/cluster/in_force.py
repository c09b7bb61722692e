"""From the API server's answer until a change is in force at a data plane, and what all of it takes.

`python -m bench.cluster.in_force KUBECONFIG [ROUTES] [GATEWAYS] [CHANGES] [--quiet-start] [--together]`, at an API server of `ci/cluster-lab`
with nothing in it. `--quiet-start`: changes begin when the first statuses of all objects are written; without it they come beside that.
When all objects are made, API server, etcd, controller and who makes changes get one processor, the gateway and its client for stalls another
(`placing`); `--together`: the kernel places them.

`headgate controller` and a data plane of one Gateway run as processes. Routes are those of `bench.cluster.routes`, and two more: one whose
redirect says which version is in force, and one to a Service whose endpoint moves between two servers. They are asked for every millisecond,
so what is told is what clients see. Meanwhile another process asks for a route that nobody changes: the longest answer is a stall (`stalls`),
and a watch in the worker tells for how long its loop was held (`held_gateway`).

Beside the time of the clock, which others on the machine lengthen, stands the CPU time of each process, and where a change was when: until it
was translated, until the data plane had put it into force, until a client saw it (from their logs). CPU of a change has that of the requests
that ask for it, and without `--quiet-start` that of the first statuses, but not what the processes use without changes.
"""

from __future__ import annotations

import argparse
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

from bench.cluster import held_gateway, routes
from bench.cluster.placing import apart, beside_traffic
from bench.cluster.stalls import Stalls
from headgate.cluster.api import tls_context
from headgate.cluster.kubeconfig import load_access
from headgate.cluster.resources import kinds

SPACE = "team-000"
GATEWAY = f"{SPACE}/main"
PROBES = {"moving": "moving.test", "version": "version.test", "steady": "steady.test", "passing": "passing.test"}
# Between two changes, in seconds: each is measured by itself.
PAUSE_S = 0.1
# Without changes.
QUIET_S = 5.0
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
PATIENCE_S = 900.0


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
    # Head and content in one packet: two would wait for each other's acknowledgement, 40 ms at times.
    wbufsize = -1

    def do_GET(self) -> None:
        body = str(self.server.server_address[1]).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()

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
        headers = {"content-type": "application/apply-patch+yaml"}

        def applied(one: Any = one, name: str = name, query: dict[str, str] = query, headers: dict[str, str] = headers) -> bool:
            return client.patch(f"{DEFINITIONS}/{name}", json=one, params=query, headers=headers).status_code in (200, 201)

        # A server beside other work may have no time for it at first (504).
        wait(applied, 0.5)
        path = f"/apis/{spec['group']}/{spec['versions'][0]['name']}/{spec['names']['plural']}"
        wait(lambda path=path: client.get(path).status_code == 200)  # type: ignore[misc]


class FirstStatuses:
    """Looks once a second how many objects wait for their status, from the moment (by the clock) when caches were warm."""

    def __init__(self, controller: RunningController, warm: float) -> None:
        self._controller, self._warm = controller, warm
        self.took = 0.0
        self.done = threading.Event()
        threading.Thread(target=self._look, daemon=True).start()

    def _look(self) -> None:
        # A replica that does not lead writes none, and one that is busy beside other work may lose the lead.
        names = ("headgate_controller_pending_statuses", "headgate_controller_leader")
        while self.written() == 0 or [self._number(one) for one in names] != [0, 1]:
            time.sleep(1)
        self.took = time.time() - self._warm
        self.done.set()

    def _lines(self) -> list[str]:
        answer = self._controller.get(self._controller.metrics, "/metrics")
        return [] if answer is None else answer.text.splitlines()

    def _number(self, name: str) -> float | None:
        """Return None where a controller that is busy does not answer."""
        return next((float(one.split()[-1]) for one in self._lines() if one.startswith(f"{name} ")), None)

    def written(self) -> int:
        """Return how many writes of statuses have succeeded."""
        found = [one for one in self._lines() if "reconciliations_total{" in one and 'controller="status/' in one and '"success"' in one]
        return int(sum(float(one.split()[-1]) for one in found))

    def tell(self) -> None:
        """Wait for them, and print how long they took."""
        if not self.done.wait(PATIENCE_S):
            raise TimeoutError("statuses are not written")
        written = self.written()
        about = "first statuses written, from warm caches"
        print(f"{about:44} {self.took:.0f} s, {written} writes, {written / self.took:.0f} in a second", flush=True)


class Run:
    """One size. `lab`: speaks to the API server as an administrator."""

    def __init__(self, lab: Lab, count: int, gateways: int) -> None:
        self.lab, self.count, self.gateways = lab, count, gateways
        self.servers = [ThreadingHTTPServer(("0.0.0.0", 0), Naming) for _ in range(2)]
        # Whether they are asked by anybody yet.
        self.serving = False
        self.holds = lab.folder / "holds"
        self.holds.mkdir()
        self.plane: Gateway | None = None
        self.controller: RunningController | None = None
        self.statuses: FirstStatuses | None = None
        # CPU seconds in a second without changes, by process.
        self.idle: dict[str, float] = {}

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
            if self.serving:
                one.shutdown()
            one.server_close()

    def rss(self) -> str:
        assert self.controller is not None
        return f"{memory_mib(self.controller.process.pid):.0f} MiB"

    def prepare(self, kubeconfig: str) -> None:
        """Have a controller deploy the Gateways once, since data planes need an account and a certificate; then make everything, so that the
        next controller finds all objects without a status."""
        self.warm()
        print(f"{'controller without routes, RSS':44} {self.rss()}", flush=True)
        asyncio.run(routes.make(kubeconfig, 0, self.gateways))
        port = self.servers[0].server_address[1]
        # The port of all Gateways is one that a process may open.
        spec = {"gatewayClassName": "headgate", "listeners": [{"name": "web", "port": self.lab.port, "protocol": "HTTP"}]}
        self.lab.apply(routes._made("gateway.networking.k8s.io/v1", "Gateway", SPACE, "main", spec))
        wait(lambda: all(self.lab.get(kind, f"{GATEWAY}{end}") for kind, end in (("ServiceAccount", ""), ("Service", ""), ("ConfigMap", "-xds-ca"))))
        self.stop()
        asyncio.run(routes.make(kubeconfig, self.count, self.gateways))
        self.lab.apply(redirect("version", "v0.test"), redirect("steady", "steady.test"), *moving(port))

    def first_state(self) -> None:
        print(f"{'caches warm and translated, from the start':44} {self.warm():.2f} s", flush=True)
        assert self.controller is not None
        used, began = cpu_s([self.controller.process.pid]), time.time()
        self.serving = True
        with beside_traffic():
            for one in self.servers:
                threading.Thread(target=one.serve_forever, daemon=True).start()
            os.environ[held_gateway.VARIABLE] = str(self.holds)
            self.plane = start_plane(self.lab, GATEWAY, self.lab.xds, self.lab.folder / "plane", "bench.cluster.held_gateway")
        asking = Asking(self.lab.port)
        wait(lambda: asking.ask(PROBES["steady"])[0] == 302)
        now = time.time()
        warm = next(logged_at(one) for one in self.controller.log.read_text().splitlines() if "all kinds are listed" in one)
        self.statuses = FirstStatuses(self.controller, warm)
        planes = cpu_s([self.plane.process.pid, *children_of(self.plane.process.pid)])
        print(f"{'first full state in force, from warm caches':44} {now - warm:.2f} s, from the start of the data plane {now - began:.2f} s")
        print(f"{'CPU of that':44} controller {used:.2f} s until translated, data plane {planes:.2f} s", flush=True)

    def used(self) -> dict[str, float]:
        """Return the CPU seconds of each process."""
        assert self.controller is not None
        assert self.plane is not None
        supervisor = self.plane.process.pid
        groups = {"controller": [self.controller.process.pid], "supervisor": [supervisor], "workers": children_of(supervisor)}
        return {name: cpu_s(pids) for name, pids in groups.items()}

    def stalls(self) -> Stalls:
        assert self.plane is not None
        [worker] = self.plane.worker_pids()
        return Stalls(self.lab.port, PROBES["steady"], worker)

    def quiet(self) -> None:
        """Look at what happens without changes."""
        before, began, stalls = self.used(), time.monotonic(), self.stalls()
        time.sleep(QUIET_S)
        self.idle = {name: (now - before[name]) / QUIET_S for name, now in self.used().items()}
        stalls.end("a route that nobody changes, in quiet")
        print(f"{'the loop of the worker':44} {held_gateway.told(self.holds, began)}")
        spent = ", ".join(f"{name} {one * 1e3:.0f} ms" for name, one in self.idle.items())
        print(f"{'CPU of a second without changes':44} {spent}", flush=True)

    def changes(self, number: int) -> None:
        asking = Asking(self.lab.port)
        assert self.controller is not None
        assert self.plane is not None
        self.controller.get(self.controller.admin, "/logging?level=gw/translator=debug", "POST")
        found: list[tuple[float, float, float]] = []
        translated = Steps(self.controller.log, '"translated"')
        taken = Steps(self.plane.log_path, "configuration received")

        def changed(seen: Callable[[], bool]) -> None:
            answered = time.time()
            wait(seen, 0.001)
            now = time.time()
            steps = translated.first_after(answered, now) - answered, taken.first_after(answered, now) - answered, now - answered
            found.append(steps)
            time.sleep(PAUSE_S)

        def route(turn: int) -> None:
            version = f"v{turn + 1}.test"
            self.lab.apply(redirect("version", version))
            changed(lambda: version in asking.ask(PROBES["version"])[1])

        def moved(turn: int) -> None:
            port = self.servers[(turn + 1) % 2].server_address[1]
            self.lab.apply(endpoint(port))
            changed(lambda: asking.ask(PROBES["moving"])[2] == str(port))

        def new(turn: int) -> None:
            self.lab.apply(redirect("passing", f"p{turn}.test"))
            changed(lambda: asking.ask(PROBES["passing"])[0] == 302)
            # The next one is new again.
            self.lab.delete("HTTPRoute", f"{SPACE}/passing")
            wait(lambda: asking.ask(PROBES["passing"])[0] == 404, 0.001)
            time.sleep(PAUSE_S)

        kinds_of_change = (("a changed route", route, number), ("a changed Endpoint", moved, number), ("a new route, which is deleted then", new, number // 3))
        for about, change, times in kinds_of_change:
            found.clear()
            before, began, stalls = self.used(), time.monotonic(), self.stalls()
            for turn in range(times):
                change(turn)
            took = time.monotonic() - began
            spent = [f"{name} {(now - before[name] - self.idle[name] * took) / times * 1e3:.1f} ms" for name, now in self.used().items()]
            told(about, [one[2] for one in found])
            told("  of that until it was translated", [one[0] for one in found])
            told("  until the data plane had it in force", [one[1] for one in found])
            print(f"{'  CPU of a change':44} {', '.join(spent)}", flush=True)
            stalls.end("  a route that nobody changes, meanwhile")
            print(f"{'  the loop of the worker':44} {held_gateway.told(self.holds, began)}", flush=True)

    def memory(self) -> None:
        assert self.plane is not None
        planes = [self.plane.process.pid, *children_of(self.plane.process.pid)]
        print(f"{'controller, RSS':44} {self.rss()}")
        print(f"{'data plane, Pss of its processes':44} {sum(memory_mib(pid, 'Pss') for pid in planes):.0f} MiB", flush=True)


def measure(kubeconfig: str, count: int, gateways: int, changes: int, quiet_start: bool, placed: bool) -> None:
    access = load_access(kubeconfig, os.environ, Path.home())
    folder = Path(tempfile.mkdtemp(prefix="headgate-bench-"))
    with httpx.Client(base_url=access.server, verify=tls_context(access), headers=dict(access.headers), timeout=60) as client:
        lab = Lab(client, Path(kubeconfig), folder, strict=True)
        define(client)
        lab.apply(routes._made("v1", "Namespace", "", SYSTEM))
        run = Run(lab, count, gateways)
        try:
            run.prepare(kubeconfig)
            if placed:
                apart(kubeconfig)
            run.first_state()
            assert run.statuses is not None
            if quiet_start:
                run.statuses.tell()
            run.quiet()
            run.changes(changes)
            if not quiet_start:
                run.statuses.tell()
            run.memory()
        finally:
            run.close()
            lab.peer.server_close()


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("kubeconfig")
    for name, default in (("routes", 1000), ("gateways", 10), ("changes", 100)):
        parser.add_argument(name, type=int, nargs="?", default=default)
    parser.add_argument("--quiet-start", action="store_true", help="wait until the first statuses are written before anything is changed")
    parser.add_argument("--together", action="store_true", help="leave to the kernel which processor runs what")
    options = parser.parse_args(arguments)
    print(f"{options.routes} routes over {options.gateways} Gateways; load {os.getloadavg()[0]:.1f}", flush=True)
    measure(options.kubeconfig, options.routes, options.gateways, options.changes, options.quiet_start, not options.together and len(os.sched_getaffinity(0)) > 1)
    print(f"load {os.getloadavg()[0]:.1f}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
