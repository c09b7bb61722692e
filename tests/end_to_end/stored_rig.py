"""Gateways that store configuration in a database, and the calls of their API."""

from __future__ import annotations

import contextlib
import json
import os
import threading
import time
from typing import Any
from urllib.parse import quote

from tests.end_to_end.conftest import Gateway
from tests.end_to_end.page_rig import ask_admin
from tests.end_to_end.running import PATIENCE

JSON = {"content-type": "application/json"}
PATH = "/api/config/resources"
FILE = """
gateways: {default: {port: {port}}}
routes:
- {name: owned, matches: [{path: {exact: /owned}}], policies: {directResponse: {status: 200, body: file}}}
"""


def settings(url: str, more: str = "") -> str:
    return f"storage: {{mode: hybrid}}\ndatabase: {{url: '{url}'{more}}}"


def route(name: str, body: str, path: str | None = None, **more: Any) -> dict[str, Any]:
    """A route that answers by itself."""
    return {
        "name": name, "matches": [{"path": {"exact": path or f"/{name}"}}],
        "policies": {"directResponse": {"status": 200, "body": body}}, **more,
    }  # fmt: skip


def place(kind: str = "", name: str = "") -> str:
    return "/".join((PATH, *filter(None, (kind, quote(name, safe="")))))


def ask(running: Gateway, method: str, path: str, document: Any = None, **fields: str) -> tuple[int, Any]:
    body = None if document is None else json.dumps(document).encode()
    status, _, found = ask_admin(running, method, path, body, {**(JSON if body is not None else {}), **fields})
    return status, json.loads(found)


def change(running: Gateway, method: str, path: str, document: Any = None, **fields: str) -> tuple[int, Any]:
    """Ask for a change, again while a server beside a great load does not answer in time."""
    deadline = time.monotonic() + PATIENCE
    while True:
        found = ask(running, method, path, document, **fields)
        if found[0] != 500:
            return found
        print(found)
        if "no answer within" not in found[1] or time.monotonic() > deadline:
            return found


def put(running: Gateway, kind: str, *values: Any) -> tuple[int, Any]:
    """Write resources that say their ids themselves."""
    return change(running, "PUT", place(kind), {"resources": [{"value": value} for value in values]})


def put_one(running: Gateway, kind: str, name: str, value: Any, **fields: str) -> tuple[int, Any]:
    return change(running, "PUT", place(kind, name), {"value": value}, **{key.replace("_", "-"): one for key, one in fields.items()})


def delete(running: Gateway, kind: str, name: str, **fields: str) -> tuple[int, Any]:
    return change(running, "DELETE", place(kind, name), **{key.replace("_", "-"): one for key, one in fields.items()})


def stored(running: Gateway, kind: str = "") -> dict[str, Any]:
    """What is stored, by kind and id; what the file defines has no revision."""
    status, found = ask(running, "GET", place(kind))
    assert status == 200
    return {f"{one['kind']}/{one['id']}": one["value"] for one in found["resources"] if "revision" in one}


class Writer:
    """Changes one route after the other in a thread, until the gateway ends. `answered`: the last that was answered."""

    def __init__(self, running: Gateway) -> None:
        self.answered = 0
        self.begun = 0
        self._running = running
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            while True:
                self.begun += 1
                assert put(self._running, "traffic.route", route("changing", str(self.begun)))[0] == 200
                self.answered = self.begun

    def wait(self) -> None:
        self._thread.join()


def kill(running: Gateway) -> None:
    """End all processes at once, as a crash of the machine would."""
    pids = [running.process.pid, *running.worker_pids(), running.template_pid()]
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, 9)
    running.process.wait()
