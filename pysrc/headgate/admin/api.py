"""The endpoints below `/api`: the page at `/ui` uses them, and other programs may do so too."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

from headgate.admin.answers import JSON, NO_STORE, as_json
from headgate.admin.configuration import store_mode
from headgate.admin.history import EVERY_SECONDS
from headgate.admin.mcp_targets import McpView
from headgate.admin.meters import MAX_ROWS, Meters, endpoint_rows
from headgate.admin.relay import MAX_AT_ONCE, TYPE, InvalidRelayRequest, read_relay_request, relay
from headgate.admin.running import RunningGateway
from headgate.admin.targets import addresses, targets, watched
from headgate.admin.web import AdminRequest, AdminResponse, AdminRoute, AdminStream
from headgate.config.guard_coverage import guarded_routes
from headgate.ir.gateway import Gateway
from headgate.telemetry.build_info import build_info
from headgate.telemetry.families import BUCKETS
from headgate_engine.link.endpoints import EndpointState
from headgate_engine.shared.histogram import snapshot

# Polls within this time share one document, so that several open pages cost no more than one.
FRESH_SECONDS: Final = 0.5
MCP_LABELS: Final = ("method", "server", "resource_type", "resource")
# Endpoints for the page alone. They also exist behind listeners.
UI_API: Final = "/ui/api/"
# Functions of the page on the admin port: configuration dump, evaluating expressions, log levels, sending requests,
# request log and writing the configuration, tracing.
OFFERS: Final = ("dump", "expressions", "keys", "logging", "relay", "store", "trace")
# Rows of the page that say what guards see: some 30 for each guard.
MAX_COVERAGE: Final = 2000
# Of a time in milliseconds since 1970.
MAX_DIGITS: Final = 15
GUARD_FAMILY: Final = "gw_guardrail_checks_total"


def api_rows(running: RunningGateway) -> tuple[AdminRoute, ...]:
    """Return the rows of the admin server's table that are below `/api`."""

    async def runtime(_request: AdminRequest) -> AdminResponse:
        return as_json(200, runtime_view(running))

    async def cel(request: AdminRequest) -> AdminResponse:
        return as_json(*await running.evaluations.evaluate(request.body, running.gateway.process.custom_functions))

    page = ui_rows(running, OFFERS)
    return (
        *(row._replace(path=row.path.removeprefix("/ui")) for row in page),
        *page,
        AdminRoute("GET", "/api/runtime", runtime),
        AdminRoute("POST", "/api/cel", cel, own=True),
        AdminRoute("POST", "/cel", cel, own=True),
    )


def ui_rows(running: RunningGateway, offers: tuple[str, ...]) -> tuple[AdminRoute, ...]:
    """Return the rows that the page needs. `offers` names the functions that the page has in this place."""
    view, targets_view = StateView(running), McpView(running)
    busy = [0]

    async def state(_request: AdminRequest) -> AdminResponse:
        stores = "store" in offers and running.gateway.process.stores_resources
        return as_json(200, await view.state() | {"offers": (*offers, "resources") if stores else offers})

    async def send(request: AdminRequest) -> AdminResponse | AdminStream:
        try:
            relay_request = read_relay_request(request.body, running.gateway)
        except InvalidRelayRequest as error:
            return as_json(400, {"error": str(error)})
        if busy[0] >= MAX_AT_ONCE:
            return as_json(503, {"error": f"{MAX_AT_ONCE} requests are in progress"})

        async def counted() -> Any:
            busy[0] += 1
            try:
                async for line in relay(relay_request):
                    yield line
            finally:
                busy[0] -= 1

        return AdminStream(counted(), TYPE, (*NO_STORE, ("x-content-type-options", "nosniff")), b"\n")

    async def history(request: AdminRequest) -> AdminResponse:
        since = request.query.get("since", "0")
        after = int(since) if since.isascii() and since.isdigit() and len(since) <= MAX_DIGITS else 0
        points = b",".join(one.text for one in list(running.points or ()) if one.time_ms > after)
        body = b'{"everySeconds":%d,"points":[%b]}' % (EVERY_SECONDS, points)
        return AdminResponse(200, body, JSON, NO_STORE)

    async def mcp(_request: AdminRequest) -> AdminResponse:
        rows = await targets_view.rows()
        if "store" not in offers:
            # Errors quote requests of other clients, as the request log does.
            rows = [row | {"error": None} for row in rows]
        return as_json(200, {"targets": rows})

    async def guards(request: AdminRequest) -> AdminResponse:
        found = list(islice(_coverage(running.gateway, request.query.get("route")), MAX_COVERAGE + 1))
        return as_json(200, {"rows": found[:MAX_COVERAGE], "cut": len(found) > MAX_COVERAGE})

    return (
        AdminRoute("GET", f"{UI_API}state", state),
        AdminRoute("GET", f"{UI_API}history", history),
        AdminRoute("GET", f"{UI_API}guards", guards),
        AdminRoute("GET", f"{UI_API}mcp", mcp),
        *([AdminRoute("POST", f"{UI_API}relay", send, own=True)] if "relay" in offers else ()),
    )


def runtime_view(running: RunningGateway) -> dict[str, Any]:
    """Return the document of `/api/runtime`."""
    camel = {"git_revision": "gitRevision", "rust_version": "rustVersion", "build_profile": "buildProfile",
             "build_target": "buildTarget"}  # fmt: skip
    build = {camel.get(key, key): value for key, value in build_info().items()}
    return {"build": build, "ui": {"gatewayMode": "standalone", "configStoreMode": store_mode(running)}}


class StateView:
    """All changing values of the page in one document."""

    def __init__(self, running: RunningGateway) -> None:
        self._running = running
        self._kept: dict[str, Any] = {}
        self._until = 0.0
        self._targets: tuple[str, dict[str, Any]] = ("", {})
        self._addresses: dict[tuple[str, str], str] = {}

    async def state(self) -> dict[str, Any]:
        """Return the document; it is at most FRESH_SECONDS old."""
        now = time.monotonic()
        if now >= self._until:
            numbers = await self._running.process.worker_numbers()
            self._kept = self._collect(numbers)
            self._until = now + FRESH_SECONDS
        return self._kept

    def _collect(self, numbers: list[dict[str, object]]) -> dict[str, Any]:
        process, gateway = self._running.process, self._running.gateway
        meters = Meters(snapshot(process.segment))
        if self._targets[0] != gateway.digest:
            self._targets = (gateway.digest, targets(gateway))
            self._addresses = addresses(gateway)
        routes, backends = meters.traffic("route"), meters.traffic("backend")
        return {
            "time": int(time.time() * 1000),
            "started": self._running.started_unix_s * 1000,
            "version": build_info()["version"],
            "generation": process.generation,
            "synchronized": meters.total("gw_config_synchronized") == 1,
            "level": str(process.levels),
            "watchers": process.trace_watchers(),
            "restarts": int(meters.total("gw_worker_restarts_total")),
            "connections": meters.total("gw_downstream_connections_total"),
            "refused": meters.total("gw_downstream_refused_total"),
            "workers": [_worker(index, one) for index, one in enumerate(numbers)],
            "bounds": list(BUCKETS["H"]),
            "modelBounds": {"firstToken": list(BUCKETS["F"]), "durations": list(BUCKETS["D"])},
            "all": meters.all_traffic(),
            "routes": routes[:MAX_ROWS],
            "backends": backends[:MAX_ROWS],
            # The numbers of all rows, including those beyond the limit of the tables.
            "rows": {"routes": len(routes), "backends": len(backends)},
            "endpoints": endpoint_rows(
                watched(gateway), lambda owner, key: EndpointState(process.segment, owner, key).snapshot(), numbers,
                self._addresses,
            ),
            "models": meters.models(),
            "sessions": meters.counts("gw_mcp_sessions", ("backend",)),
            "mcp": meters.counts("gw_mcp_requests_total", MCP_LABELS),
            "guardrails": meters.counts(GUARD_FAMILY, ("phase", "action", "guard")),
            "targets": self._targets[1],
            "requestLog": gateway.process.request_log is not None,
        }


def _coverage(gateway: Gateway, route: str | None) -> Iterator[dict[str, Any]]:
    """Yield what each guard of each route sees, or of the one route with a key."""
    for one in guarded_routes(gateway, route):
        for row in one.rows:
            yield {"route": one.route, "model": one.model, **row}


def _worker(index: int, numbers: dict[str, object]) -> dict[str, object]:
    names = ("pid", "generation", "connections", "idle", "requests", "cpu_seconds")
    return {"index": index, "answers": bool(numbers), **{name: numbers.get(name) for name in names}}
