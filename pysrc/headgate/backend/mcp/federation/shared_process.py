"""A process of revision 2026-07-28: one for all clients of a worker; their requests say all there is to know."""

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
from headgate.dialect.mcp.jsonrpc import Kind, Message, NotAMessage, parse, progress_token
from headgate.dialect.mcp.methods import ACKNOWLEDGED, LISTEN, PROGRESS, TASK_REQUESTS
from headgate.net.tasks import spawn

# A server that does not answer a request it does not know.
PROBE_SECONDS: Final = 20.0
# Part of the members that name tasks.
TASK: Final = b'"taskId'
TASK_IDS: Final = ("notifications", "taskIds")


class SharedProcess(RequestTarget):
    """One process for all clients without a session. Closed after an idle time; a new one takes its place then.
    `task_id_prefix` stands before the ids of its tasks: they lead back to this worker.
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
        """Nothing outlives the process."""
        return None

    async def speaks_modern(self) -> bool:
        """Start the process and tell whether it knows revision 2026-07-28; raises TargetFailure."""
        last = b""
        try:
            async with asyncio.timeout(PROBE_SECONDS):
                async with contextlib.aclosing(self.request(modern.discover_request(), [])) as texts:
                    async for text in texts:
                        last = text
        except TimeoutError:
            return False
        return versions.MODERN in modern.revisions_of(last)

    async def request(self, message: Message, fields: Fields) -> AsyncGenerator[bytes, None]:
        """Yield what comes of a request. Its progress has a token of ours: clients choose the same ones."""
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

    async def notify(self, message: Message, fields: Fields) -> None:
        """Drop it: it would concern other clients."""

    async def events(self, fields: Fields) -> AsyncGenerator[bytes, None] | None:
        """Return nothing: revision 2026-07-28 has subscriptions."""
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
    """Return a message of a server; progress is told under the token that the client gave."""
    try:
        message = parse(text)
    except NotAMessage:
        return text
    return replaced(text, ("params", "progressToken"), token) if message.method == PROGRESS else text


def without_task_prefix(message: Message, prefix: str) -> Message:
    """Return a request with its tasks as the process knows them; others than those with the prefix it does not know."""
    if message.method in TASK_REQUESTS and (message.name or "").startswith(prefix):
        return parse(message.with_name((message.name or "")[len(prefix) :]))
    if message.method == LISTEN and TASK in message.params:
        ids = _task_ids(message)
        kept = [one[len(prefix) :] for one in ids if isinstance(one, str) and one.startswith(prefix)]
        return parse(replaced(message.text, ("params", *TASK_IDS), kept))
    return message


def with_task_prefix(text: bytes, prefix: str) -> bytes:
    """Return a message of a process with the prefix before the ids of its tasks."""
    try:
        message = parse(text)
    except NotAMessage:
        return text
    if message.kind is Kind.RESPONSE:
        task = message.result_task
        return text if task is None else message.with_task(prefix + task)
    if message.method == "notifications/tasks":
        task = message.decoded_params().get("taskId")
        return replaced(text, ("params", "taskId"), f"{prefix}{task}") if isinstance(task, str) else text
    if message.method == ACKNOWLEDGED:
        ids = [prefix + one for one in _task_ids(message) if isinstance(one, str)]
        return replaced(text, ("params", *TASK_IDS), ids)
    return text


def _task_ids(message: Message) -> list[Any]:
    wanted = message.decoded_params().get(TASK_IDS[0])
    found = wanted.get(TASK_IDS[1]) if isinstance(wanted, dict) else None
    return found if isinstance(found, list) else []
