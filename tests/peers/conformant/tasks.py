"""Tasks of revision 2026-07-28 (extension `io.modelcontextprotocol/tasks`), and the tools that become some. Clients that
have no tasks get the result of a tool itself, where the tool does not insist.
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import itertools
import secrets
from collections.abc import Awaitable, Callable
from typing import Any

from tests.peers.conformant.catalogue import form
from tests.peers.conformant.exchange import INVALID_PARAMS, MISSING_CAPABILITY, NAMESPACE, Exchange, Json, RpcError

EXTENSION = NAMESPACE + "tasks"
TTL_MS, POLL_MS = 60_000, 50
Ask = Callable[..., Awaitable[Json]]
Work = Callable[[Ask, Json], Awaitable[Json]]


def text(words: str, **more: Any) -> Json:
    return {"content": [{"type": "text", "text": words}], **more}


def now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat()


class Task:
    """One task; `told` is called with it when it changes."""

    def __init__(self, work: Work, arguments: Json, told: Callable[[Task], None]) -> None:
        self.id = secrets.token_hex(8)
        self.status = "working"
        self.created = self.updated = now()
        self.end: Json = {}
        self.inputs: dict[str, tuple[Json, asyncio.Future[Json]]] = {}
        self._told = told
        self._numbers = itertools.count(1)
        self._running = asyncio.get_running_loop().create_task(self._run(work, arguments))

    def _change(self, status: str, **end: Any) -> None:
        if self.status not in ("completed", "failed", "cancelled"):
            self.status, self.end, self.updated = status, end, now()
            self._told(self)

    async def _run(self, work: Work, arguments: Json) -> None:
        try:
            self._change("completed", result=await work(self._ask, arguments))
        except asyncio.CancelledError:
            self._change("cancelled")
        except Exception as error:
            self._change("failed", error={"code": -32603, "message": str(error)})

    async def _ask(self, **wanted: tuple[str, Json]) -> Json:
        loop = asyncio.get_running_loop()
        waiting: dict[str, asyncio.Future[Json]] = {}
        for key, (method, params) in wanted.items():
            waiting[key] = loop.create_future()
            question = {"method": method, "params": params}
            self.inputs[f"{key}-{next(self._numbers)}"] = (question, waiting[key])
        self._change("input_required")
        return {key: await one for key, one in waiting.items()}

    def update(self, answers: Json) -> None:
        for key in [key for key in self.inputs if isinstance(answers.get(key), dict)]:
            self.inputs.pop(key)[1].set_result(answers[key])
        self._change("input_required" if self.inputs else "working")

    async def cancel(self) -> None:
        self._running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._running
        self._change("cancelled")

    def begun(self) -> Json:
        return {"resultType": "task", **self._base()}

    def _base(self) -> Json:
        return {"taskId": self.id, "status": self.status, "createdAt": self.created, "lastUpdatedAt": self.updated,
                "ttlMs": TTL_MS, "pollIntervalMs": POLL_MS}  # fmt: skip

    def detailed(self) -> Json:
        inputs = {"inputRequests": {key: one for key, (one, _) in self.inputs.items()}} if self.inputs else {}
        return {**self._base(), **(inputs if self.status == "input_required" else {}), **self.end}


TASKS: dict[str, Task] = {}


def has_tasks(exchange: Exchange) -> bool:
    """Tell whether the client of a request knows tasks."""
    extensions = exchange.capabilities.get("extensions") if exchange.modern else None
    return isinstance(extensions, dict) and EXTENSION in extensions


def needed() -> RpcError:
    """Return the error for a client that does not."""
    required = {"requiredCapabilities": {"extensions": {EXTENSION: {}}}}
    return RpcError(MISSING_CAPABILITY, "tasks are needed", required)


async def respond(exchange: Exchange, method: str) -> Json:
    """Return the result of a request about a task; RpcError."""
    if not has_tasks(exchange):
        raise needed()
    task = TASKS.get(str(exchange.params.get("taskId")))
    if task is None:
        raise RpcError(INVALID_PARAMS, f"Unknown task: {exchange.params.get('taskId')}")
    if method == "tasks/get":
        return task.detailed()
    if method == "tasks/cancel":
        await task.cancel()
    else:
        task.update(exchange.params.get("inputResponses") or {})
    return {}


def job(work: Work, required: bool = False) -> Callable[[Exchange, Json, Callable[[str], None]], Awaitable[Json]]:
    """Return a tool that becomes a task where the client knows tasks."""

    async def call(exchange: Exchange, arguments: Json, changed: Callable[[str], None]) -> Json:
        if has_tasks(exchange):
            task = Task(work, arguments, lambda one: changed(f"task:{one.id}"))
            TASKS[task.id] = task
            return task.begun()
        if required and exchange.modern:
            raise needed()
        return await work(exchange.ask, arguments)

    return call


# -- tools -------------------------------------------------------------------------------------------------------------
async def greet(_exchange: Exchange, arguments: Json, _changed: Callable[[str], None]) -> Json:
    return text(f"Hello, {arguments.get('name')}!")


async def _slow(_ask: Ask, arguments: Json) -> Json:
    await asyncio.sleep(float(arguments.get("seconds", 0)))
    return text(f"computed {arguments.get('label')}")


async def _failing(_ask: Ask, _arguments: Json) -> Json:
    await asyncio.sleep(0.05)
    return text("the job failed", isError=True)


async def _broken(_ask: Ask, _arguments: Json) -> Json:
    await asyncio.sleep(0.05)
    raise RuntimeError("the job broke")


async def _confirm(ask: Ask, arguments: Json) -> Json:
    found = await ask(confirm=("elicitation/create", form(f"Delete {arguments.get('filename')}?", confirm="boolean")))
    return text(f"deleted: {(found['confirm'].get('content') or {}).get('confirm')}")


async def _multi(ask: Ask, _arguments: Json) -> Json:
    asked = form("Who?", name="string")
    found = await ask(first=("elicitation/create", asked), second=("elicitation/create", asked))
    return text(" and ".join(str((one.get("content") or {}).get("name")) for one in found.values()))


async def _named(exchange: Exchange, arguments: Json, changed: Callable[[str], None]) -> Json:
    """Ask first, then become a task."""
    if exchange.modern and not has_tasks(exchange):
        raise needed()
    found = await exchange.ask(user_name=("elicitation/create", form("What is your name?", name="string")))
    name = (found["user_name"].get("content") or {}).get("name")

    async def work(_ask: Ask, _arguments: Json) -> Json:
        return text(f"Hello, {name}!")

    return await job(work)(exchange, arguments, changed)


TOOLS = {
    "greet": greet,
    "slow_compute": job(_slow),
    "failing_job": job(_failing, required=True),
    "protocol_error_job": job(_broken),
    "confirm_delete": job(_confirm),
    "multi_input": job(_multi),
    "test_tool_with_task": _named,
}
