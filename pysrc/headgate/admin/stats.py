"""The endpoints of the stats server."""

from __future__ import annotations

import os

from headgate import __version__
from headgate.admin import gauges, metrics_protobuf
from headgate.admin.meters import endpoint_rows
from headgate.admin.metrics_accept import Page, wanted
from headgate.admin.running import RunningGateway
from headgate.admin.targets import watched
from headgate.admin.web import AdminRequest, AdminResponse, AdminRoute
from headgate.telemetry.metrics import CONTENT_TYPE, OPENMETRICS_TYPE, PageForm, label_text, render
from headgate_engine.link.endpoints import EndpointState
from headgate_engine.shared.histogram import Sample, snapshot
from headgate_engine.shared.segment import Segment


def stats_rows(running: RunningGateway) -> tuple[AdminRoute, ...]:
    """Return the stats server's table."""

    async def metrics(request: AdminRequest) -> AdminResponse:
        samples = snapshot(running.process.segment) + await current_samples(running)
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


async def current_samples(running: RunningGateway) -> list[Sample]:
    """Return the samples that are read rather than counted: version, workers, processes, connections, endpoints."""
    process = running.process
    workers = process.worker_pids()
    processes = [("supervisor", os.getpid()), *((f"worker-{i}", pid) for i, pid in enumerate(workers))]
    numbers = await process.worker_numbers()
    endpoints = endpoint_rows(
        watched(running.gateway), lambda owner, key: EndpointState(process.segment, owner, key).snapshot(), ()
    )
    return [
        Sample("gw_build_info", label_text({"tag": __version__}), "gauge", 1),
        Sample("gw_workers", "", "gauge", len(workers)),
        *series_samples(process.segment),
        Sample("gw_trace_watchers", "", "gauge", process.trace_watchers()),
        *gauges.process_samples(processes),
        *gauges.worker_samples(numbers),
        *gauges.endpoint_samples(endpoints),
        *gauges.certificate_samples(running.gateway),
    ]
