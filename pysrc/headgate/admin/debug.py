"""The endpoints below `/debug`: request traces, running tasks, CPU and heap profiles."""

from __future__ import annotations

import json
from typing import Final

from headgate.admin.running import DEFAULT_HEAP_RATE, HEAP_RATES, ProfileError, RunningGateway
from headgate.admin.streams import KEEPALIVE, events
from headgate.admin.web import AdminRequest, AdminResponse, AdminRoute, AdminStream
from headgate.trace.offer import BadExpression, TooManyWatchers

# Maximum length of an expression in characters, as in the configuration.
MAX_EXPRESSION: Final = 16384

# Duration of a CPU profile in seconds, and its samples per second.
MAX_SECONDS, DEFAULT_SECONDS = 300, 10
MAX_FREQUENCY, DEFAULT_FREQUENCY = 1000, 100


def within(text: str | None, least: int, most: int, default: int) -> int:
    """Return the number in the text; `default` if it is not a number or out of range."""
    if text is None or not text.isascii() or not text.isdigit() or len(text) > len(str(most)):
        return default
    return int(text) if least <= int(text) <= most else default


def debug_rows(running: RunningGateway) -> tuple[AdminRoute, ...]:
    """Return the rows of the admin server's table that are below `/debug`."""

    async def trace(request: AdminRequest) -> AdminResponse | AdminStream:
        expression = request.query.get("expression", "")
        if len(expression) > MAX_EXPRESSION:
            return AdminResponse(400, f"invalid expression: longer than {MAX_EXPRESSION} characters\n".encode())
        try:
            watch = await running.process.watch_trace(expression.strip() or None)
        except BadExpression as error:
            return AdminResponse(400, f"invalid expression: {error}\n".encode())
        except TooManyWatchers as error:
            return AdminResponse(503, f"no further trace: {error}\n".encode())
        return AdminStream(events(watch), "text/event-stream", (("cache-control", "no-cache"),), KEEPALIVE)

    async def tasks(_request: AdminRequest) -> AdminResponse:
        document = await running.process.tasks()
        return AdminResponse(200, json.dumps(document, separators=(",", ":")).encode(), "application/json")

    async def cpu(request: AdminRequest) -> AdminResponse:
        seconds = within(request.query.get("seconds"), 1, MAX_SECONDS, DEFAULT_SECONDS)
        frequency = within(request.query.get("frequency"), 1, MAX_FREQUENCY, DEFAULT_FREQUENCY)

        async def profile() -> AdminResponse:
            try:
                return AdminResponse(200, await running.process.cpu_profile(seconds, frequency), content_type="")
            except ProfileError as error:
                return AdminResponse(500, f"{error}\n".encode())

        return AdminResponse(200, work=profile)

    async def heap(_request: AdminRequest) -> AdminResponse:
        return AdminResponse(200, await running.process.heap_profile(), content_type="")

    async def sample_heap(request: AdminRequest) -> AdminResponse:
        text = request.query.get("rate", str(DEFAULT_HEAP_RATE))
        rate = int(text) if text.isascii() and text.isdigit() and len(text) < len(str(HEAP_RATES.stop)) + 1 else -1
        if rate != 0 and rate not in HEAP_RATES:
            return AdminResponse(
                400, f"rate: 0 or a number of bytes in {HEAP_RATES.start}..{HEAP_RATES.stop - 1}\n".encode()
            )
        await running.process.sample_heap(rate)
        told = f"one sample for each {rate} bytes allocated" if rate else "allocations are not sampled"
        return AdminResponse(200, f"{told}\n".encode())

    return (
        AdminRoute("GET", "/debug/pprof/heap", heap),
        AdminRoute("POST", "/debug/pprof/heap", sample_heap),
        AdminRoute("GET", "/debug/pprof/profile", cpu),
        AdminRoute("GET", "/debug/tasks", tasks),
        AdminRoute("POST", "/debug/trace", trace),
        AdminRoute("GET", "/debug/trace", trace),
    )
