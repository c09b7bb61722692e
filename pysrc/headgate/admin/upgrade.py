"""POST /upgrade: another process takes the place of the running one."""

from __future__ import annotations

import json

from headgate.admin.running import RunningGateway, UpgradeRefused
from headgate.admin.web import AdminRequest, AdminResponse, AdminRoute


def upgrade_rows(running: RunningGateway) -> tuple[AdminRoute, ...]:
    """Return the rows of the admin server's table."""

    async def upgrade() -> AdminResponse:
        try:
            pid = await running.process.upgrade()
        except UpgradeRefused as error:
            return AdminResponse(409, f"{error}\n".encode())
        return AdminResponse(200, json.dumps({"pid": pid}).encode() + b"\n", "application/json")

    async def answer(_request: AdminRequest) -> AdminResponse:
        return AdminResponse(200, work=upgrade)

    return (AdminRoute("POST", "/upgrade", answer),)
