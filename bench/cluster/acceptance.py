"""How long it takes until a gateway serves what somebody has just made: nos. 1 and 2 of the acceptance list.

`python -m bench.cluster.acceptance KUBECONFIG [ROUNDS]`, at an API server of `ci/cluster-lab` with nothing in it. `headgate controller`
runs gateways as processes of this machine. In each round a Gateway, a Service with an EndpointSlice and an HTTPRoute are made, and the
gateway is asked until it serves; then a second Service and route at the same Gateway; then that route is deleted. Times count from the
API server's answer to the last request. No. 12 (10,000 routes) is `bench.cluster.in_force`.

API server, etcd and who makes changes have one processor, the controller and its gateways the other (`placing`), as they would not share one in
a cluster. Beside each time stands how long the controller was ready to run meanwhile while the kernel had something else on its processor: at
the median of the rounds, so that a busy machine shows.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx
from manifests import endpoints, gateway, gateway_class, http_route, listener, service, to
from tests.end_to_end.acceptance_rig import SYSTEM, Lab, namespaces

from bench.cluster.in_force import Asking, cpu_s, define, told, wait
from bench.cluster.placing import apart, beside_traffic
from bench.cluster.stalls import Scheduled
from headgate.cluster.api import tls_context
from headgate.cluster.kubeconfig import load_access

NEW = "1. a new Gateway serves, with its start"


class Rounds:
    """`took`: seconds by what was waited for; `delayed`: milliseconds that the controller waited for its processor meanwhile."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.took: dict[str, list[float]] = {}
        self.delayed: dict[str, list[float]] = {}
        self.asking: Asking | None = None

    def made(self, name: str, parent: str, host: str) -> None:
        """Make a route with its Service and endpoints."""
        port = self.lab.peer.server_address[1]
        self.lab.apply(
            service(f"shop/{name}", {"port": 8080, "targetPort": port}),
            endpoints(f"shop/{name}-1", name, [self.lab.address], port, addressType="IPv4"),
            http_route(f"shop/{name}", {"backendRefs": [to(name)]}, parent={"name": parent, "namespace": "edge"}, hostnames=(host,)),
        )

    def until(self, about: str, host: str, status: int) -> None:
        asking = self.asking
        assert asking is not None
        waited = self.waited()
        self.took.setdefault(about, []).append(wait(lambda: asking.ask(host)[0] == status, 0.001))
        self.delayed.setdefault(about, []).append(self.waited() - waited)

    def waited(self) -> float:
        """Return for how many milliseconds the loop of the controller has waited for its processor."""
        return Scheduled.of(self.lab.controllers[-1].process.pid).waited

    def run(self, number: int) -> None:
        name = f"round-{number}"
        self.lab.apply(gateway_class(), gateway(listener(port=self.lab.port), name=f"edge/{name}"))
        self.made(name, name, "first.test")
        began, waited = time.monotonic(), self.waited()
        path = self.lab._path("Gateway", f"edge/{name}")

        def address() -> Any:
            found = self.lab.client.get(path).json().get("status", {}).get("addresses") or [{}]
            return found[0].get("value")

        wait(address)
        self.asking = Asking(self.lab.port, address())
        wait(lambda: self.asking.ask("first.test")[0] == 200, 0.001)  # type: ignore[union-attr]
        self.took.setdefault(NEW, []).append(time.monotonic() - began)
        self.delayed.setdefault(NEW, []).append(self.waited() - waited)
        self.made(f"{name}-more", name, "second.test")
        self.until("1. a route at a Gateway that runs", "second.test", 200)
        self.lab.delete("HTTPRoute", f"shop/{name}-more")
        self.until("2. a deleted route answers 404", "second.test", 404)
        self.lab.delete("Gateway", f"edge/{name}")


def measure(kubeconfig: str, count: int) -> None:
    access = load_access(kubeconfig, os.environ, Path.home())
    folder = Path(tempfile.mkdtemp(prefix="headgate-bench-"))
    with httpx.Client(base_url=access.server, verify=tls_context(access), headers=dict(access.headers), timeout=60) as client:
        define(client)
        lab = Lab(client, Path(kubeconfig), folder, strict=True)
        try:
            lab.apply(*namespaces("edge", "shop", SYSTEM))
            with beside_traffic():
                controller = lab.start_local()
            rounds = Rounds(lab)
            used = cpu_s([controller.process.pid])
            for number in range(count):
                rounds.run(number)
            for about, seconds in rounds.took.items():
                told(about, seconds)
                delay = statistics.median(rounds.delayed[about])
                print(f"{'':44} longest {max(seconds) * 1e3:.1f} ms of {len(seconds)}; the controller waited {delay:.1f} ms for its processor")
            print(f"{'CPU of the controller for a round':44} {(cpu_s([controller.process.pid]) - used) / count * 1e3:.0f} ms", flush=True)
        finally:
            lab.close()


def main(arguments: list[str]) -> int:
    print(f"load {os.getloadavg()[0]:.1f}", flush=True)
    if len(os.sched_getaffinity(0)) > 1:
        apart(arguments[0])
    measure(arguments[0], int(arguments[1]) if len(arguments) > 1 else 20)
    print(f"load {os.getloadavg()[0]:.1f}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
