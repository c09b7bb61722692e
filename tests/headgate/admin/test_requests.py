"""Events of a tail."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from headgate.admin import requests
from headgate.admin.requests import QueryThreads, event, events
from headgate.telemetry.requests.stores import LogFailure


class Scripted:
    """A tail that gives what the script says, then fails."""

    def __init__(self, *turns: list[tuple[str, dict[str, Any]]]) -> None:
        self._turns = list(turns)

    def begin(self) -> None:
        """Nothing to look at."""

    def more(self) -> list[tuple[str, dict[str, Any]]]:
        if not self._turns:
            raise LogFailure("disk I/O error")
        return self._turns.pop(0)


def heard(tail: Any) -> list[bytes]:
    async def run() -> list[bytes]:
        return [piece async for piece in events(tail, QueryThreads())]

    return asyncio.run(run())


def test_events_in_their_order_and_an_error_is_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "POLL_SECONDS", 0.0)
    found = heard(Scripted([], [("t|1", {"id": "1"}), ("t|2", {"id": "2"})], []))
    assert found[0] == b": ready\n\n"
    assert found[1] == b'event: log\ndata: {"entry":{"id":"1"},"cursor":"t|1"}\n\n'
    assert found[-1].startswith(b"event: error\ndata: ")
    assert json.loads(found[-1].split(b"data: ")[1]) == {"message": "request log database cannot be read: disk I/O error"}
    assert len(found) == 4


def test_silence_has_a_heartbeat(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "POLL_SECONDS", 0.0)
    monkeypatch.setattr(requests, "HEARTBEAT_SECONDS", 0.0)
    assert event("heartbeat", {}) == b"event: heartbeat\ndata: {}\n\n"
    assert heard(Scripted([])).count(event("heartbeat", {})) == 1
