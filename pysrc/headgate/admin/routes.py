"""The endpoints of the admin, stats and readiness servers, one table each."""

from __future__ import annotations

import json
import logging
import os

from headgate import __version__
from headgate.admin import memory, metrics_protobuf
from headgate.admin.api import api_rows
from headgate.admin.configuration import configuration_rows
from headgate.admin.costs import cost_rows
from headgate.admin.debug import debug_rows
from headgate.admin.page import page_rows
from headgate.admin.requests import request_rows
from headgate.admin.running import RunningGateway
from headgate.admin.web import AdminRequest, AdminResponse, AdminRoute
from headgate.config.dump import Runtime, dump
from headgate.telemetry.build_info import build_info
from headgate.telemetry.levels import USAGE, BadDirective
from headgate.telemetry.metrics import CONTENT_TYPE, label_text, render
from headgate_engine.link.endpoints import EndpointState
from headgate_engine.shared.histogram import Sample, snapshot
from headgate_engine.shared.segment import Segment

JSON = "application/json"
# Log levels of probes before the gateway is ready: the first 5 at DEBUG, up to 30 at INFO, then WARNING.
QUIET = ((5, logging.DEBUG), (30, logging.INFO))
logger = logging.getLogger("headgate.admin")


def admin_rows(running: RunningGateway) -> tuple[AdminRoute, ...]:
    """Return the admin server's table."""

    async def config_dump(_request: AdminRequest) -> AdminResponse:
        numbers = await running.process.worker_numbers()
        document = dump(running.gateway, runtime(running))
        document["workers"] = numbers
        return AdminResponse(200, json.dumps(document, indent=2).encode() + b"\n", JSON)

    async def levels(request: AdminRequest) -> AdminResponse:
        changes = "level" in request.query or "reset" in request.query
        if request.method == "GET" and changes:
            return AdminResponse(405, b"use POST to change the level\n", headers=(("allow", "POST"),))
        if not changes:
            return AdminResponse(200, f"current log level is {running.process.levels}\n".encode())
        level = request.query.get("level", "")
        try:
            current = await running.process.set_levels(level, "reset" in request.query)
        except BadDirective:
            return AdminResponse(400, f"Invalid level provided: {level}\n{USAGE}".encode())
        return AdminResponse(200, f"current log level is {current}\n".encode())

    async def memory_report(_request: AdminRequest) -> AdminResponse:
        numbers = await running.process.worker_numbers()
        heap = await running.process.heap_totals()
        told = await running.process.worker_memory()
        document = memory.report(os.getpid(), running.process.worker_pids(), numbers, heap, told)
        return AdminResponse(200, json.dumps(document, indent=2).encode() + b"\n", JSON)

    async def quit_(_request: AdminRequest) -> AdminResponse:
        running.process.stop("quitquitquit")
        return AdminResponse(200, b"shutdown now\n")

    return (
        *page_rows(),
        *api_rows(running),
        *configuration_rows(running),
        *request_rows(running),
        *cost_rows(running),
        AdminRoute("GET", "/config_dump", config_dump),
        AdminRoute("GET", "/logging", levels),
        AdminRoute("POST", "/logging", levels),
        *debug_rows(running),
        AdminRoute("GET", "/memory", memory_report),
        AdminRoute("POST", "/quitquitquit", quit_),
    )


def stats_rows(running: RunningGateway) -> tuple[AdminRoute, ...]:
    """Return the stats server's table."""

    async def metrics(request: AdminRequest) -> AdminResponse:
        samples = snapshot(running.process.segment) + process_samples(running)
        remove = running.gateway.process.metrics_remove
        if metrics_protobuf.prefers_protobuf(request.headers.get("accept", "")):
            return AdminResponse(200, metrics_protobuf.encode(samples, remove), metrics_protobuf.CONTENT_TYPE)
        page = render(samples, remove)
        return AdminResponse(200, page.encode(), CONTENT_TYPE)

    return (AdminRoute("GET", "/metrics", metrics), AdminRoute("GET", "/stats/prometheus", metrics))


def readiness_rows(running: RunningGateway) -> tuple[AdminRoute, ...]:
    """Return the readiness server's table."""

    failures = 0

    async def ready(_request: AdminRequest) -> AdminResponse:
        nonlocal failures
        if running.ready:
            failures = 0
            return AdminResponse(200, b"ready\n")
        failures += 1
        pending = ", ".join(sorted(running.pending))
        level = next((level for most, level in QUIET if failures <= most), logging.WARNING)
        logger.log(level, "not ready", extra={"pending": pending, "attempt": failures})
        return AdminResponse(500, f"not ready, pending: {pending}\n".encode())

    return (AdminRoute("GET", "/healthz/ready", ready),)


def runtime(running: RunningGateway) -> Runtime:
    """Return the runtime values that the dump shows beside the configuration."""
    return Runtime(
        generation=running.process.generation,
        workers=len(running.process.worker_pids()),
        started_unix_s=running.started_unix_s,
        build=build_info(),
        endpoint=lambda owner, key: EndpointState(running.process.segment, owner, key).snapshot(),
    )


def series_samples(segment: Segment) -> list[Sample]:
    """Return the samples about the metrics themselves."""
    stats = segment.stats()
    return [
        Sample("gw_metric_series", "", "gauge", stats["series"]),
        Sample("gw_metric_series_limit", "", "gauge", stats["series_limit"]),
        Sample("gw_metric_series_overflow_total", "", "counter", stats["series_refused"]),
    ]


def process_samples(running: RunningGateway) -> list[Sample]:
    """Return the samples that are read rather than counted: version, workers, memory."""
    workers = running.process.worker_pids()
    samples = [
        Sample("gw_build_info", label_text({"tag": __version__}), "gauge", 1),
        Sample("gw_workers", "", "gauge", len(workers)),
        *series_samples(running.process.segment),
        Sample("gw_trace_watchers", "", "gauge", running.process.trace_watchers()),
    ]
    for role, pid in [("supervisor", os.getpid()), *((f"worker-{i}", pid) for i, pid in enumerate(workers))]:
        size = memory.resident(pid)
        if size is not None:
            samples.append(Sample("gw_process_resident_memory_bytes", label_text({"process": role}), "gauge", size))
    return samples
