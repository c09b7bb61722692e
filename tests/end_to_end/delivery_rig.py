"""A controller's delivery in this process, with a stand-in for the API server, and data planes that follow it."""

from __future__ import annotations

import asyncio
import base64
import os
import threading
import time
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any, TypeVar

from tests.end_to_end.running import PATIENCE, PROGRAM, Gateway

from headgate.cluster.calls import ApiError
from headgate.cluster.deliver.service import DeliveryService
from headgate.cluster.deliver.settings import DeliverySettings
from headgate.cluster.deliver.states import GatewayStates
from headgate.cluster.snapshot import ObjectKey
from headgate.cluster.translate.fragments import Fragment
from headgate.cluster.translate.gateway import Acknowledged

Json = dict[str, Any]
Result = TypeVar("Result")
KEY = ObjectKey("shop", "web")
TOKEN = "token-of-web"
LOCAL = DeliverySettings(host="127.0.0.1", port=0, mode="plaintext", names=("localhost", "127.0.0.1"))


class FakeApi:
    """The calls that the delivery makes. `accounts`: by token."""

    def __init__(self, accounts: Mapping[str, str]) -> None:
        self.accounts = dict(accounts)
        self.secrets: dict[str, Json] = {}
        self.reviews = 0
        self.failing = False

    async def get(self, path: str, query: Mapping[str, str] | None = None) -> Json:
        if path not in self.secrets:
            raise ApiError(404, "NotFound", f"{path} not found")
        return self.secrets[path]

    async def create(self, path: str, document: Json) -> Json:
        if self.failing:
            raise ApiError(0, "", "no connection")
        if document["kind"] == "Secret":
            place = f"{path}/{document['metadata']['name']}"
            if place in self.secrets:
                raise ApiError(409, "AlreadyExists", "there is one")
            return self.secrets.setdefault(place, document)
        self.reviews += 1
        user = self.accounts.get(document["spec"]["token"])
        if user is None:
            return {"status": {"authenticated": False}}
        return {"status": {"authenticated": True, "user": {"username": user}, "audiences": document["spec"]["audiences"]}}

    async def apply(self, path: str, document: Json, manager: str) -> Json:
        raise NotImplementedError

    async def merge(self, path: str, document: Json) -> Json:
        raise NotImplementedError

    async def delete(self, path: str) -> Json:
        raise NotImplementedError


class Controller:
    """The service on a loop of its own thread. It may be stopped and started again at the same port."""

    def __init__(self, settings: DeliverySettings = LOCAL, api: FakeApi | None = None) -> None:
        self.api = api or FakeApi({TOKEN: "system:serviceaccount:shop:web", "other": "system:serviceaccount:shop:other"})
        self.settings = settings
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()
        self.changes = 0
        self.start()

    def run(self, coro: Coroutine[Any, Any, Result]) -> Result:
        future: Future[Result] = asyncio.run_coroutine_threadsafe(coro, self.loop)
        return future.result(PATIENCE)

    def do(self, call: Callable[[], Result]) -> Result:
        async def made() -> Result:
            return call()

        return self.run(made())

    def start(self) -> None:
        def changed() -> None:
            self.changes += 1

        self.states = GatewayStates(changed)
        self.service = DeliveryService(self.states, self.api, self.settings)
        self.run(self.service.start())
        self.do(lambda: self.service.lead(True))
        self.settings = self.settings._replace(port=self.service.port)

    def stop(self) -> None:
        self.run(self.service.stop())

    def close(self) -> None:
        self.stop()
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(PATIENCE)
        self.loop.close()

    def update(self, *fragments: Fragment, generation: int = 1, key: ObjectKey = KEY) -> None:
        self.do(lambda: self.states.update({key: fragments}, {key: generation}))

    def acknowledged(self, key: ObjectKey = KEY) -> Acknowledged:
        return self.do(self.states.acknowledged)[key]

    def wait(self, condition: Callable[[Acknowledged], bool]) -> Acknowledged:
        """Wait for what data planes say."""
        deadline = time.monotonic() + PATIENCE
        while not condition(found := self.acknowledged()):
            assert time.monotonic() < deadline, found
            time.sleep(0.005)
        return found

    def environment(self, folder: Path, token: str = TOKEN, **more: str) -> dict[str, str]:
        """Return the environment of a data plane that follows this controller."""
        file = folder / "token"
        file.write_text(token)
        scheme = "http" if self.settings.mode == "plaintext" else "https"
        found = {
            "XDS_ADDRESS": f"{scheme}://127.0.0.1:{self.settings.port}", "XDS_TOKEN_FILE": str(file), "GATEWAY": "web",
            "NAMESPACE": "shop", "POD_NAME": "web-0", "INSTANCE_IP": "127.0.0.1", "STATE_DIRECTORY": str(folder),
        }
        authority = self.service.authority()
        if authority is not None:
            (folder / "ca.crt").write_bytes(authority)
            found["XDS_ROOT_CA"] = str(folder / "ca.crt")
        return {**found, **more}


def bind(port: int, key: ObjectKey = KEY) -> tuple[Fragment, Fragment]:
    """A port with one listener."""
    return (
        Fragment(key=f"bind/{port}/{key}", place="binds", value={"port": port}, order=(port,)),
        Fragment(
            key=f"listener/{key}.http", place="listeners", value={"name": "http", "namespace": key.namespace},
            parent=f"bind/{port}/{key}", order=(0,),
        ),
    )


def route(name: str, body: str, key: ObjectKey = KEY, **more: Any) -> Fragment:
    """A route of /<name> that answers by itself."""
    value = {
        "name": name,
        "matches": [{"path": {"exact": f"/{name}"}}],
        "policies": {"directResponse": {"status": 200, "body": body}},
        **more,
    }
    return Fragment(key=f"route/shop/{name}.00.http", place="routes", value=value, parent=f"listener/{key}.http", order=(name,))


def secret_of(controller: Controller) -> dict[str, bytes]:
    [found] = controller.api.secrets.values()
    return {name: base64.b64decode(value) for name, value in found["data"].items()}


def data_plane(folder: Path, environment: Mapping[str, str], port: int, workers: int = 1, module: str = PROGRAM) -> Gateway:
    """Start a data plane whose delivered port is `port`; it is not waited for."""
    folder.mkdir(exist_ok=True)
    found = Gateway(folder, "", workers, {**dict(os.environ), **environment}, module=module)
    found.port = port
    return found
