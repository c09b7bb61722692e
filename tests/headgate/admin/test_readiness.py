"""The readiness endpoint before the gateway is ready."""

from __future__ import annotations

import asyncio
import logging

import pytest

from headgate.admin.readiness import readiness_rows
from headgate.admin.running import RunningGateway
from headgate.admin.web import AdminRequest, AdminResponse

ASKED = AdminRequest("GET", "/healthz/ready", {}, "localhost", {})


def test_being_asked_too_early_grows_louder(caplog: pytest.LogCaptureFixture) -> None:
    running = RunningGateway(None)  # type: ignore[arg-type]
    (row,) = readiness_rows(running)

    def ask() -> AdminResponse:
        answer = asyncio.run(row.handler(ASKED))  # type: ignore[arg-type]
        assert isinstance(answer, AdminResponse)
        return answer

    with caplog.at_level(logging.DEBUG, "headgate.admin"):
        for _ in range(32):
            assert ask() == AdminResponse(500, b"not ready, pending: proxy, state manager\n")
    assert [record.levelno for record in caplog.records] == [logging.DEBUG] * 5 + [logging.INFO] * 25 + [logging.WARNING] * 2
    running.pending.clear()
    assert ask() == AdminResponse(200, b"ready\n")
    running.pending.add("proxy")
    caplog.clear()
    with caplog.at_level(logging.DEBUG, "headgate.admin"):
        ask()
    assert [record.levelno for record in caplog.records] == [logging.DEBUG]
