"""An agent of the official A2A SDK, and its clients, for tests."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx
import uvicorn
from a2a.client import Client, ClientConfig, ClientFactory
from a2a.server.agent_execution import AgentExecutor
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes, create_rest_routes
from a2a.server.tasks import InMemoryPushNotificationConfigStore, InMemoryTaskStore, TaskUpdater
from a2a.types import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    AgentSkill,
    Message,
    Part,
    Role,
    SendMessageRequest,
    Task,
    TaskState,
    TaskStatus,
)
from starlette.applications import Starlette

# (binding, version, path below the agent's base)
INTERFACES = (
    ("JSONRPC", "1.0", "/rpc"), ("JSONRPC", "0.3", "/rpc"), ("HTTP+JSON", "1.0", "/rest"), ("HTTP+JSON", "0.3", "/rest"),
)  # fmt: skip


class Echo(AgentExecutor):
    """Sends the words of a message back, each as a piece of an artifact; `hold` waits until the task is cancelled.

    gate: what lets the next word go.
    """

    def __init__(self) -> None:
        self.gate: Callable[[], bool] = lambda: True

    async def execute(self, context: Any, event_queue: Any) -> None:
        text = context.get_user_input()
        await event_queue.enqueue_event(
            Task(id=context.task_id, context_id=context.context_id, history=[context.message],
                 status=TaskStatus(state=TaskState.TASK_STATE_SUBMITTED))
        )  # fmt: skip
        updater = TaskUpdater(event_queue, context.task_id, context.context_id)
        await updater.start_work()
        if text == "fail":
            raise RuntimeError("told to")
        words = text.split()
        for index, word in enumerate(words):
            while not self.gate() or word == "hold":  # noqa: ASYNC110 - the test is in another thread
                await asyncio.sleep(0.01)
            await updater.add_artifact(
                [Part(text=word)], artifact_id="words", append=index > 0, last_chunk=index == len(words) - 1
            )
        await updater.complete()

    async def cancel(self, context: Any, event_queue: Any) -> None:
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


class Agent:
    """An agent at `base` of a port of loopback. `seen`: method, path and fields of the requests that it got."""

    def __init__(self, base: str = "", host: str = "agent.internal:9999", change: Callable[[AgentCard], Any] | None = None) -> None:
        self.executor = Echo()
        self.seen: list[tuple[str, str, dict[str, str]]] = []
        self.card = AgentCard(
            name="echo", description="sends words back", version="1", default_input_modes=["text"],
            default_output_modes=["text"], capabilities=AgentCapabilities(streaming=True, push_notifications=True),
            skills=[AgentSkill(id="echo", name="echo", description="echo", tags=["echo"])],
            supported_interfaces=[
                AgentInterface(protocol_binding=binding, protocol_version=version, url=f"http://{host}{base}{path}")
                for binding, version, path in INTERFACES
            ],
        )  # fmt: skip
        if change is not None:
            change(self.card)
        handler = DefaultRequestHandler(
            agent_executor=self.executor, task_store=InMemoryTaskStore(), agent_card=self.card,
            push_config_store=InMemoryPushNotificationConfigStore(), push_url_validator=_anywhere,
        )  # fmt: skip
        routes = [
            *create_agent_card_routes(self.card, card_url=f"{base}/.well-known/agent-card.json"),
            *create_agent_card_routes(self.card, card_url=f"{base}/.well-known/agent.json"),
            *create_jsonrpc_routes(handler, f"{base}/rpc", enable_v0_3_compat=True),
            *create_rest_routes(handler, enable_v0_3_compat=True, path_prefix=f"{base}/rest"),
        ]
        listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(listener.getsockname()[1])
        app = Starlette(routes=routes)

        async def noting(scope: Any, receive: Any, send: Any) -> None:
            if scope["type"] == "http":
                fields = {name.decode(): value.decode("latin-1") for name, value in scope["headers"]}
                self.seen.append((scope["method"], scope["path"], fields))
            await app(scope, receive, send)

        self._server = uvicorn.Server(uvicorn.Config(noting, log_level="critical", lifespan="off"))
        self._thread = threading.Thread(target=lambda: asyncio.run(self._server.serve([listener])), daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.should_exit = True
        self._server.force_exit = True
        self._thread.join(60)


async def _anywhere(_: str) -> bool:
    return True


@contextlib.asynccontextmanager
async def client_of(
    url: str, binding: str, version: str, *, path: str | None = None, headers: dict[str, str] | None = None
) -> AsyncIterator[tuple[AgentCard, Client]]:
    """The card that an agent shows at a URL, and a client that speaks one of its bindings and versions."""
    async with httpx.AsyncClient(timeout=60, headers=headers) as http:
        factory = ClientFactory(ClientConfig(httpx_client=http, supported_protocol_bindings=[binding]))
        whole = await factory.create_from_url(url, relative_card_path=path)
        card: AgentCard = whole._card  # type: ignore[attr-defined]
        wanted = [one for one in card.supported_interfaces if (one.protocol_binding, one.protocol_version) == (binding, version)]
        chosen = AgentCard()
        chosen.CopyFrom(card)
        del chosen.supported_interfaces[:]
        chosen.supported_interfaces.extend(wanted)
        async with factory.create(chosen) as client:
            yield card, client


def asking(text: str, **more: Any) -> SendMessageRequest:
    return SendMessageRequest(
        message=Message(message_id=f"m-{text}", role=Role.ROLE_USER, parts=[Part(text=text)], **more)
    )


def words_of(task: Task) -> list[str]:
    return [part.text for artifact in task.artifacts for part in artifact.parts]
