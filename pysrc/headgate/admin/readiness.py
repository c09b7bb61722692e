"""The endpoint of the readiness server."""

from __future__ import annotations

import logging

from headgate.admin.running import RunningGateway
from headgate.admin.web import AdminRequest, AdminResponse, AdminRoute

# Log levels of probes before the gateway is ready: the first 5 at DEBUG, up to 30 at INFO, then WARNING.
QUIET = ((5, logging.DEBUG), (30, logging.INFO))
logger = logging.getLogger("headgate.admin")


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
