"""The controller's own servers: health, metrics, and admin."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any, Final

from headgate.admin.debug import (
    DEFAULT_FREQUENCY,
    DEFAULT_SECONDS,
    MAX_FREQUENCY,
    MAX_SECONDS,
    within,
)
from headgate.admin.running import ProfileError
from headgate.admin.web import AdminRequest, AdminResponse, AdminRoute, WebServer
from headgate.cluster.controller.components import BadLevel, ComponentLevels
from headgate.cluster.controller.metrics import ControllerMetrics
from headgate.cluster.controller.settings import ControllerSettings
from headgate.telemetry.build_info import build_info

JSON: Final = "application/json"
METRICS: Final = "text/plain; version=0.0.4; charset=utf-8"
# One page: the second name is that of other implementations, the third stands where profiles are.
SNAPSHOTS: Final = ("/snapshots", "/snapshots/krt", "/debug/snapshots")
LOOPBACK: Final = ("127.0.0.1",)


class ControllerView:
    """What the servers show. `synced` tells whether what is known has been translated once; `snapshots` gives what
    /snapshots shows, without anything secret."""

    def __init__(
        self,
        metrics: ControllerMetrics,
        levels: ComponentLevels,
        synced: Callable[[], bool],
        snapshots: Callable[[], dict[str, Any]],
    ) -> None:
        self.metrics = metrics
        self.levels = levels
        self.synced = synced
        self.snapshots = snapshots


class ControllerServers:
    """Opens and closes them. A port of 0 leaves a server out."""

    def __init__(self, view: ControllerView, settings: ControllerSettings) -> None:
        everywhere = (settings.bind,)
        self._wanted = (
            (WebServer(lambda: health_rows(view)), everywhere, settings.health_port),
            (WebServer(lambda: metrics_rows(view)), everywhere, settings.metrics_port),
            (WebServer(lambda: admin_rows(view), check_host=True), LOOPBACK, settings.admin_port),
        )

    async def start(self) -> None:
        """Raises OSError."""
        for server, hosts, port in self._wanted:
            if port:
                await server.listen(hosts, port)

    async def close(self) -> None:
        for server, _, _ in self._wanted:
            await server.close()


def health_rows(view: ControllerView) -> tuple[AdminRoute, ...]:
    """Return `/healthz`, which always answers, and `/readyz`, which answers 503 until everything is known."""
    async def healthy(_request: AdminRequest) -> AdminResponse:
        return AdminResponse(200, b"ok\n")

    async def ready(_request: AdminRequest) -> AdminResponse:
        return AdminResponse(200, b"ready\n") if view.synced() else AdminResponse(503, b"not synced\n")

    return (AdminRoute("GET", "/healthz", healthy), AdminRoute("GET", "/readyz", ready))


def metrics_rows(view: ControllerView) -> tuple[AdminRoute, ...]:
    """Return `/metrics` in Prometheus' text format."""
    async def metrics(_request: AdminRequest) -> AdminResponse:
        return AdminResponse(200, view.metrics.text(), METRICS)

    return (AdminRoute("GET", "/metrics", metrics),)


def admin_rows(view: ControllerView) -> tuple[AdminRoute, ...]:
    """Return what an operator may ask: snapshots, log levels, profiles and the version."""
    async def snapshots(request: AdminRequest) -> AdminResponse:
        indent = 2 if "pretty" in request.query else None
        return AdminResponse(200, json.dumps(view.snapshots(), indent=indent).encode() + b"\n", JSON)

    async def levels(request: AdminRequest) -> AdminResponse:
        changes = "level" in request.query or "reset" in request.query
        if request.method == "GET" and changes:
            return AdminResponse(405, b"use POST to change levels\n", headers=(("allow", "POST"),))
        try:
            if "reset" in request.query:
                view.levels.reset()
            if "level" in request.query:
                view.levels.change(request.query["level"])
        except BadLevel as error:
            return AdminResponse(400, f"invalid level: {error}\n".encode())
        return AdminResponse(200, str(view.levels).encode())

    async def version(_request: AdminRequest) -> AdminResponse:
        build = build_info()
        told = {"version": build["version"], "string": f"headgate {build['version']} ({build['git_revision']})"}
        return AdminResponse(200, json.dumps(told).encode() + b"\n", JSON)

    async def index(_request: AdminRequest) -> AdminResponse:
        return AdminResponse(200, "".join(f"{one.path}\n" for one in rows if one.method == "GET").encode())

    rows = (
        AdminRoute("GET", "/", index),
        *(AdminRoute("GET", path, snapshots) for path in SNAPSHOTS),
        AdminRoute("GET", "/logging", levels),
        AdminRoute("POST", "/logging", levels),
        AdminRoute("GET", "/version", version),
        *profile_rows(),
    )
    return rows


def profile_rows() -> tuple[AdminRoute, ...]:
    """Return what the admin server of a gateway has below /debug, but for traces."""
    from headgate.server.profiling import CpuProfiler, ProfiledProcess, permit_here

    profiler = CpuProfiler()

    async def cpu(request: AdminRequest) -> AdminResponse:
        seconds = within(request.query.get("seconds"), 1, MAX_SECONDS, DEFAULT_SECONDS)
        frequency = within(request.query.get("frequency"), 1, MAX_FREQUENCY, DEFAULT_FREQUENCY)

        async def profile() -> AdminResponse:
            target = ProfiledProcess("controller", os.getpid(), permit_here)
            try:
                return AdminResponse(200, await profiler.profile([target], seconds, frequency), content_type="")
            except ProfileError as error:
                return AdminResponse(500, f"{error}\n".encode())

        return AdminResponse(200, work=profile)

    async def heap(_request: AdminRequest) -> AdminResponse:
        from headgate.admin.running import DEFAULT_HEAP_RATE
        from headgate.server import heap

        rate = heap.current_rate()
        found = [("controller", os.getpid(), heap.report())]
        return AdminResponse(200, await heap.heap_profile(found, rate, DEFAULT_HEAP_RATE), content_type="")

    async def sample_heap(request: AdminRequest) -> AdminResponse:
        from headgate.admin.running import DEFAULT_HEAP_RATE
        from headgate.server import heap

        try:
            rate = heap.rate_of(request.query.get("rate", str(DEFAULT_HEAP_RATE)))
        except ValueError as error:
            return AdminResponse(400, f"{error}\n".encode())
        heap.switch(rate)
        return AdminResponse(200, f"sampling rate {rate}\n".encode())

    async def tasks(_request: AdminRequest) -> AdminResponse:
        from headgate.server import reports

        return AdminResponse(200, json.dumps(reports.tasks()).encode(), JSON)

    return (
        AdminRoute("GET", "/debug/pprof/heap", heap),
        AdminRoute("POST", "/debug/pprof/heap", sample_heap),
        AdminRoute("GET", "/debug/pprof/profile", cpu),
        AdminRoute("GET", "/debug/tasks", tasks),
    )
