"""What the controller costs: `python -m bench.cluster.controller KUBECONFIG [CHANGES]`, at routes of `bench.cluster.routes`.

The controller runs in this process, with a stand-in for what sends configurations. A change is timed from the API server's answer to
it until the configuration with it is handed to what sends; `stall` is the longest time in which the loop did nothing else.
"""

from __future__ import annotations

import asyncio
import gc
import os
import resource
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import uvloop

from headgate.cluster.client import KubernetesClient
from headgate.cluster.controller.components import ComponentLevels
from headgate.cluster.controller.parts import Parts
from headgate.cluster.controller.process import Controller
from headgate.cluster.controller.settings import ControllerSettings
from headgate.cluster.kubeconfig import load_access
from headgate.cluster.snapshot import ObjectKey
from headgate.cluster.translate.fragments import Fragment
from headgate.cluster.translate.gateway import Acknowledged
from headgate.net.tasks import spawn

API = "/apis/gateway.networking.k8s.io/v1/namespaces"


class Sends:
    def __init__(self) -> None:
        self.gateways: Mapping[ObjectKey, tuple[Fragment, ...]] = {}
        self.updated = asyncio.Event()

    def prepared(self, _gateways: Mapping[ObjectKey, tuple[Fragment, ...]]) -> None:
        return None

    def update(
        self, gateways: Mapping[ObjectKey, tuple[Fragment, ...]], _generations: Mapping[ObjectKey, int], _prepared: None
    ) -> None:
        self.gateways = gateways
        self.updated.set()

    def acknowledged(self) -> dict[ObjectKey, Acknowledged]:
        return {}

    async def until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            self.updated.clear()
            await asyncio.wait_for(self.updated.wait(), 60)


class Stalls:
    """Looks at the clock every millisecond."""

    def __init__(self) -> None:
        self.worst = 0.0

    async def run(self) -> None:
        before = time.monotonic()
        while True:
            await asyncio.sleep(0.001)
            now = time.monotonic()
            self.worst = max(self.worst, now - before - 0.001)
            before = now


def resident() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


def told(name: str, seconds: list[float]) -> None:
    ordered = sorted(seconds)
    p99 = ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))]
    print(f"{name:28} p50 {statistics.median(ordered) * 1e3:6.1f} ms  p99 {p99 * 1e3:6.1f} ms  of {len(ordered)}", flush=True)


async def measure(kubeconfig: str, changes: int) -> None:
    access = load_access(kubeconfig, os.environ, Path.home())
    client, user = KubernetesClient(access), KubernetesClient(access)
    settings = ControllerSettings(namespace="default", health_port=0, metrics_port=0, admin_port=0)
    sends = Sends()
    controller = Controller(client, settings, ComponentLevels("error"), lambda _calls, _changed: Parts(sends))
    began = time.monotonic()
    running = spawn("controller", controller.run())
    await controller._informers.synced.wait()
    print(f"caches warm                  {time.monotonic() - began:.2f} s", flush=True)
    await sends.until(lambda: bool(sends.gateways))
    count = sum(one.place == "routes" for found in sends.gateways.values() for one in found)
    print(f"first state                  {time.monotonic() - began:.2f} s, {count} routes, {len(sends.gateways)} Gateways")
    print(f"memory                       {resident():.0f} MiB", flush=True)
    while controller._writer.pending() or not controller._writer._workers:  # noqa: ASYNC110
        await asyncio.sleep(0.1)
    print(f"statuses written             {time.monotonic() - began:.2f} s, memory {resident():.0f} MiB", flush=True)
    stalls = Stalls()
    looking: asyncio.Task[Any] = spawn("stalls", stalls.run())
    gateway = next(iter(sends.gateways))
    used = resource.getrusage(resource.RUSAGE_SELF)
    routes, slices = [], []
    for number in range(changes):
        host = f"changed-{number}.test"
        await user.merge(f"{API}/{gateway.namespace}/httproutes/route-00005", {"spec": {"hostnames": [host]}})
        answered = time.monotonic()
        await sends.until(lambda host=host: any(one.value.get("hostnames") == [host] for one in sends.gateways[gateway]))  # type: ignore[misc]
        routes.append(time.monotonic() - answered)
        address = f"10.2.{number // 250}.{number % 250 + 1}"
        path = f"/apis/discovery.k8s.io/v1/namespaces/{gateway.namespace}/endpointslices/app-0000-1"
        await user.merge(path, {"endpoints": [{"addresses": [address], "conditions": {"ready": True}}]})
        answered = time.monotonic()
        await sends.until(lambda address=address: any(one.value.get("workloadIps") == [address] for one in sends.gateways[gateway]))  # type: ignore[misc]
        slices.append(time.monotonic() - answered)
    after = resource.getrusage(resource.RUSAGE_SELF)
    spent = (after.ru_utime + after.ru_stime - used.ru_utime - used.ru_stime) / changes / 2
    told("a changed route", routes)
    told("changed endpoints", slices)
    print(f"CPU per change               {spent * 1e3:.1f} ms (with that of this program)")
    print(f"longest stall of the loop    {stalls.worst * 1e3:.1f} ms")
    for one in (looking, running):
        one.cancel()
    await asyncio.gather(looking, running, return_exceptions=True)
    await client.close()
    await user.close()


def main(arguments: list[str]) -> int:
    gc.disable()  # as the command does; the controller enables it
    sys.setswitchinterval(0.001)
    uvloop.run(measure(arguments[0], int(arguments[1]) if len(arguments) > 1 else 100))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
