"""One remote target: what happens before the client is answered."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from headgate.backend.mcp.http_service import HttpService, RemoteSession
from headgate.backend.mcp.session import SessionIds, SessionLimits, Sessions
from headgate.backend.mcp.states import SessionStates
from headgate.backend.mcp.targets.remote import Remote
from headgate.ir.endpoint import Endpoint
from headgate.ir.mcp import StreamableHttpTarget
from headgate.ir.policies import BackendPolicies
from headgate_engine.context.request import make_context

IDS = SessionIds(bytes(32))


class Fields(dict[str, str]):
    """A request's fields."""


class Deletion:
    """A client's DELETE; `events` is what happened, in order."""

    method, begun, body = "DELETE", None, b""

    def __init__(self, events: list[str]) -> None:
        self.headers, self.context = Fields(), make_context()
        self._events = events

    def reply(self, status: int, headers: Any = (), body: bytes = b"", reason: str | None = None) -> None:
        del headers, body, reason
        self._events.append(f"client is told {status}")


class Answer:
    """The target's answer."""

    headers: tuple[tuple[str, str], ...] = ()

    def __init__(self, status: int) -> None:
        self.status = status

    def header(self, name: str) -> str | None:
        del name

    async def read(self, limit: int) -> bytes:
        del limit
        return b""

    async def aclose(self) -> None:
        pass


@pytest.mark.parametrize(("name", "status"), [("s-1", 200), ("s-1", 405), (None, 200)])
def test_a_session_has_ended_everywhere_before_the_client_is_told(name: str | None, status: int) -> None:
    events: list[str] = []

    class Client:
        async def request(self, *_parts: Any, **_more: Any) -> Answer:
            events.append("target is asked")
            return Answer(status)

    async def tell_ended(session_id: str) -> None:
        assert sessions.has_tombstone(session_id)
        await asyncio.sleep(0)
        events.append("workers know")

    async def run() -> None:
        sessions.adopt("id", RemoteSession(name))
        await service.delete(Deletion(events), "id")  # type: ignore[arg-type]
        assert sessions.find("id", "") is None

    sessions = Sessions(0, IDS, SessionLimits(60, 10), resumable=True)
    target = StreamableHttpTarget(key="a", name="a", endpoint=Endpoint(key="e", host="backend", port=80))
    remote = Remote(Client(), "backend:80", BackendPolicies(), ())  # type: ignore[arg-type]
    service = HttpService(target, remote, sessions, SessionStates(IDS.sealer("states")), tell_ended)
    asyncio.run(run())
    asked = [] if name is None else ["target is asked"]
    assert events == [*asked, "workers know", f"client is told {status}"]
