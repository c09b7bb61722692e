"""A process of revision 2026-07-28, shared by all clients of a worker: requests of this revision are self-contained."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import AsyncGenerator
from typing import Any, Final

from headgate.backend.mcp.federation.link import Link
from headgate.backend.mcp.federation.target_answer import Fields, RequestTarget
from headgate.dialect.mcp import modern, versions
from headgate.dialect.mcp.edit import replaced
from headgate.dialect.mcp.jsonrpc import NotAMessage, RpcKind, RpcMessage, parse, progress_token
from headgate.dialect.mcp.methods import ACKNOWLEDGED, LISTEN, PROGRESS, TASK_REQUESTS
from headgate.net.tasks import spawn

# Time-out for servers that do not respond to unknown requests.
PROBE_SECONDS: Final = 20.0
# Common part of the member names for tasks.
TASK: Final = b'"taskId'
TASK_IDS: Final = ("notifications", "taskIds")


class SharedProcess(RequestTarget):
    """One process for all clients without a session. It is closed when idle, and replaced on the next request.

    `task_id_prefix` is added to its task ids, so that later requests for a task find this worker.
    """

    pinned = True

    def __init__(self, link: Link, idle_s: float, task_id_prefix: str = "") -> None:
        self.name = link.name
        self.capabilities: dict[str, Any] | None = None
        self.closed = False
        self._link = link
        self._idle_s = idle_s
        self._task_id_prefix = task_id_prefix
        self._busy = 0
        self._numbers = itertools.count(1)
        self._timer: asyncio.TimerHandle | None = None

    @property
    def state(self) -> str | None:
        """None: the session ends with the process."""
        return None

    async def speaks_modern(self) -> bool:
        """Start the process and return True if it supports revision 2026-07-28; raises TargetFailure."""
        last = b""
        try:
            async with asyncio.timeout(PROBE_SECONDS):
                async with contextlib.aclosing(self.request(modern.discover_request(), [])) as texts:
                    async for text in texts:
                        last = text
        except TimeoutError:
            return False
        return versions.MODERN in modern.revisions_of(last)

    async def request(self, message: RpcMessage, fields: Fields) -> AsyncGenerator[bytes, None]:
        """Yield the messages of a request. Its progress token is replaced, because clients may choose equal ones."""
        if self._task_id_prefix:
            message = without_task_prefix(message, self._task_id_prefix)
        token = progress_token(message)
        if token is not None:
            own = f"gw-{next(self._numbers)}"
            message = parse(replaced(message.text, ("params", "_meta", "progressToken"), own))
        self._busy += 1
        self._stop_timer()
        try:
            async with contextlib.aclosing(self._link.request(message, fields)) as texts:
                async for text in texts:
                    if self._task_id_prefix and TASK in text:
                        text = with_task_prefix(text, self._task_id_prefix)
                    yield text if token is None else with_token(text, token)
        finally:
            self._busy -= 1
            if not self._busy and not self.closed:
                self._timer = asyncio.get_running_loop().call_later(self._idle_s, self._on_idle)

    async def notify(self, message: RpcMessage, fields: Fields) -> None:
        """Drop the notification: it would affect other clients."""

    async def events(self, fields: Fields) -> AsyncGenerator[bytes, None] | None:
        """Return None: revision 2026-07-28 uses subscriptions."""
        return None

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _on_idle(self) -> None:
        if not self._busy:
            spawn(f"mcp idle {self.name}", self.close())

    async def close(self) -> None:
        """End the process."""
        self.closed = True
        self._stop_timer()
        await self._link.close()


def with_token(text: bytes, token: object) -> bytes:
    """Return a server's message; a progress notification gets the client's token."""
    try:
        message = parse(text)
    except NotAMessage:
        return text
    return replaced(text, ("params", "progressToken"), token) if message.method == PROGRESS else text


def without_task_prefix(message: RpcMessage, prefix: str) -> RpcMessage:
    """Return a request with the process's own task ids. Ids without the prefix remain, and the process rejects them."""
    if message.method in TASK_REQUESTS and (message.name or "").startswith(prefix):
        return parse(message.with_name((message.name or "")[len(prefix) :]))
    if message.method == LISTEN and TASK in message.params:
        ids = _task_ids(message)
        kept = [one[len(prefix) :] for one in ids if isinstance(one, str) and one.startswith(prefix)]
        return parse(replaced(message.text, ("params", *TASK_IDS), kept))
    return message


def with_task_prefix(text: bytes, prefix: str) -> bytes:
    """Return a message of the process with the prefix added to its task ids."""
    try:
        message = parse(text)
    except NotAMessage:
        return text
    if message.kind is RpcKind.RESPONSE:
        task = message.result_task
        return text if task is None else message.with_task(prefix + task)
    if message.method == "notifications/tasks":
        task = message.decoded_params().get("taskId")
        return replaced(text, ("params", "taskId"), f"{prefix}{task}") if isinstance(task, str) else text
    if message.method == ACKNOWLEDGED:
        ids = [prefix + one for one in _task_ids(message) if isinstance(one, str)]
        return replaced(text, ("params", *TASK_IDS), ids)
    return text


def _task_ids(message: RpcMessage) -> list[Any]:
    wanted = message.decoded_params().get(TASK_IDS[0])
    found = wanted.get(TASK_IDS[1]) if isinstance(wanted, dict) else None
    return found if isinstance(found, list) else []
