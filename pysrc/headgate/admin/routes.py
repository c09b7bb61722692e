"""The endpoints of the admin server."""

from __future__ import annotations

import asyncio
import json
import os

from headgate.admin import memory
from headgate.admin.api import api_rows
from headgate.admin.configuration import configuration_rows
from headgate.admin.costs import cost_rows
from headgate.admin.debug import debug_rows
from headgate.admin.keys import key_rows
from headgate.admin.page import page_rows
from headgate.admin.requests import request_rows
from headgate.admin.resources import resource_rows
from headgate.admin.running import RunningGateway
from headgate.admin.spend import spend_rows
from headgate.admin.upgrade import upgrade_rows
from headgate.admin.web import AdminRequest, AdminResponse, AdminRoute
from headgate.config.dump import Runtime, dump
from headgate.telemetry.build_info import build_info
from headgate.telemetry.levels import USAGE, BadDirective, UnknownModule
from headgate_engine.link.endpoints import EndpointState

JSON = "application/json"


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
        except UnknownModule as error:
            return AdminResponse(400, f"{error}\n".encode())
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
        *resource_rows(running),
        *key_rows(running),
        *spend_rows(running),
        *request_rows(running),
        *cost_rows(running),
        AdminRoute("GET", "/config_dump", config_dump),
        comparison_row(running),
        AdminRoute("GET", "/logging", levels),
        AdminRoute("POST", "/logging", levels),
        *debug_rows(running),
        AdminRoute("GET", "/memory", memory_report),
        AdminRoute("POST", "/quitquitquit", quit_),
        *upgrade_rows(running),
    )


def comparison_row(running: RunningGateway) -> AdminRoute:
    """Return the row that tells whether somebody has read the same configuration."""
    # A proof takes 16 MiB and a processor: one at a time.
    comparing = asyncio.Lock()

    async def same(request: AdminRequest) -> AdminResponse:
        from headgate.config.comparison import proves

        try:
            async with comparing:
                found = await asyncio.to_thread(proves, running.gateway, request.query.get("proof", ""))
        except ValueError as error:
            return AdminResponse(400, f"proof: {error}\n".encode())
        return AdminResponse(200, json.dumps({"same": found}).encode() + b"\n", JSON)

    return AdminRoute("GET", "/config_dump/same", same)


def runtime(running: RunningGateway) -> Runtime:
    """Return the runtime values that the dump shows beside the configuration."""
    return Runtime(
        generation=running.process.generation,
        workers=len(running.process.worker_pids()),
        started_unix_s=running.started_unix_s,
        build=build_info(),
        endpoint=lambda owner, key: EndpointState(running.process.segment, owner, key).snapshot(),
    )
