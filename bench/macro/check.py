"""Asks every peer once before it is loaded, so that a wrong answer cannot count."""

from __future__ import annotations

import http.client
import json
import time
from typing import NamedTuple

from bench.macro.cases import Case

WAIT_SECONDS = 30.0
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}},
}
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}
SESSION_FIELD = "mcp-session-id"


class WrongAnswer(RuntimeError):
    """A peer does not do what the case asks for."""


class Ready(NamedTuple):
    """A peer that answers a case rightly. headers: what requests carry; size: bytes of an answer's body."""

    headers: dict[str, str]
    size: int


class Seen(NamedTuple):
    """One answer and the bytes of its body."""

    status: int
    headers: dict[str, str]
    body: bytes


def ask(connection: http.client.HTTPConnection, method: str, path: str, body: bytes | None,
        headers: dict[str, str]) -> Seen:  # fmt: skip
    """One request on an open connection."""
    connection.request(method, path, body, headers)
    answer = connection.getresponse()
    return Seen(answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read())


def complaint(case: Case, seen: Seen) -> str:
    """What is wrong with an answer, or nothing."""
    if seen.status != 200:
        return f"status {seen.status}: {seen.body[:200]!r}"
    if case.answer is not None and seen.body != case.answer:
        return f"{len(seen.body)} bytes instead of {len(case.answer)}: {seen.body[:80]!r}"
    for part, times in case.parts:
        if seen.body.count(part) != times:
            return f"{part!r} occurs {seen.body.count(part)} times instead of {times}: {seen.body[:200]!r}"
    return ""


def open_session(port: int, case: Case) -> dict[str, str]:
    """MCP initialize and initialized; the fields that requests of the session carry."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    headers = dict(case.headers)
    try:
        first = ask(connection, "POST", case.paths[0], json.dumps(INITIALIZE).encode(), headers)
        session = first.headers.get(SESSION_FIELD)
        if first.status != 200 or session is None:
            raise WrongAnswer(f"{case.name}: initialize: {first.status} {first.body[:200]!r}")
        headers[SESSION_FIELD] = session
        second = ask(connection, "POST", case.paths[0], json.dumps(INITIALIZED).encode(), headers)
        if second.status != 202:
            raise WrongAnswer(f"{case.name}: initialized: {second.status} {second.body[:200]!r}")
    finally:
        connection.close()
    return headers


def verify(port: int, case: Case) -> Ready:
    """Ask twice on one connection (the first must leave it usable).

    Raises WrongAnswer, or OSError while nobody listens.
    """
    headers = open_session(port, case) if case.session else dict(case.headers)
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.auto_open = 0
    connection.connect()
    method = "GET" if case.body is None else "POST"
    try:
        for path in (case.paths[0], case.paths[-1]):
            seen = ask(connection, method, path, case.body, headers)
            found = complaint(case, seen)
            if found:
                raise WrongAnswer(f"{case.name} {path}: {found}")
        if case.setting == "plain" and case.body is not None:
            length = ask(connection, method, "/length", case.body, headers).body
            if int(length or 0) != len(case.body):
                raise WrongAnswer(f"{case.name}: the backend was told of {length!r} bytes")
    except http.client.NotConnected as error:
        raise WrongAnswer(f"{case.name}: the connection was not kept") from error
    except http.client.HTTPException as error:
        raise WrongAnswer(f"{case.name}: {type(error).__name__}") from error
    finally:
        connection.close()
    return Ready(headers, len(seen.body))


def wait(port: int, case: Case, seconds: float = WAIT_SECONDS) -> Ready:
    """Verify as soon as somebody listens; raises the last failure after `seconds`."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            return verify(port, case)
        except (OSError, WrongAnswer):
            if time.monotonic() > deadline:
                raise
        time.sleep(0.005)
