"""The endpoints of the stats server."""

from __future__ import annotations

import os

from headgate import __version__
from headgate.admin import memory, metrics_protobuf
from headgate.admin.metrics_accept import Page, wanted
from headgate.admin.running import RunningGateway
from headgate.admin.web import AdminRequest, AdminResponse, AdminRoute
from headgate.telemetry.metrics import CONTENT_TYPE, OPENMETRICS_TYPE, PageForm, label_text, render
from headgate_engine.shared.histogram import Sample, snapshot
from headgate_engine.shared.segment import Segment


def stats_rows(running: RunningGateway) -> tuple[AdminRoute, ...]:
    """Return the stats server's table."""

    async def metrics(request: AdminRequest) -> AdminResponse:
        samples = snapshot(running.process.segment) + process_samples(running)
        remove = running.gateway.process.metrics_remove
        classic = running.gateway.process.histograms != "native"
        page = wanted(request.headers.get("accept", ""))
        if page is Page.PROTOBUF:
            return AdminResponse(200, metrics_protobuf.encode(samples, remove, classic), metrics_protobuf.CONTENT_TYPE)
        text = render(samples, remove, PageForm(page is Page.OPENMETRICS, classic))
        return AdminResponse(200, text.encode(), OPENMETRICS_TYPE if page is Page.OPENMETRICS else CONTENT_TYPE)

    return (AdminRoute("GET", "/metrics", metrics), AdminRoute("GET", "/stats/prometheus", metrics))


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
