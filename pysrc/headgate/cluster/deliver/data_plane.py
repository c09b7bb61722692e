"""The data plane's end of the delivery: takes the configuration from the controller, and keeps it.

It connects again after 10 ms, doubling to 15 s, each varied by a half; the first response of a stream resets that. If a
replica of the controller does not lead, pauses grow to 1 s only: the Service may lead to the leader next time. What it
has is told with the versions of all resources, so that only differences come.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import random
import re
import socket
import ssl
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from envoy.service.discovery.v3.discovery_pb2 import DeltaDiscoveryRequest, DeltaDiscoveryResponse
from google.protobuf.message import DecodeError

from headgate.cluster.deliver.kept import StateFile
from headgate.cluster.deliver.settings import ELSEWHERE, PORT
from headgate.cluster.deliver.wire import DELTA_METHOD, MAX_MESSAGE, SERVICE, TYPE_URL, part_of
from headgate.config.delivered import BIND_ADDRESS, STREAM_ADDRESS, DeliveredPart, DeliveredParts, bind_host
from headgate.net.grpc import GrpcChannel, GrpcError
from headgate.net.grpc_stream import GrpcStream
from headgate.net.tasks import spawn
from headgate.server.delivery import DeliveryMeter, Take
from headgate.server.failures import ReloadFailed

logger = logging.getLogger("headgate.delivery")
TOKEN_FILE: Final = "/var/run/secrets/xds-tokens/xds-token"  # noqa: S105 (a path)
LEAST_PAUSE_S, MOST_PAUSE_S = 0.01, 15.0
ELSEWHERE_PAUSE_S: Final = 1.0
# Pauses before parts are tried again that were rejected for something outside the configuration.
LEAST_RETRY_S, MOST_RETRY_S = 1.0, 60.0
CONNECT_S: Final = 10.0
# tcp(7), where the system has them: a controller that has not answered for 20 s is gone.
KEPT_ALIVE: Final = {"TCP_KEEPIDLE": 5, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3}
FIRST_ANSWER_S: Final = 15.0
# The state is written at most this often.
SAVE_S: Final = 1.0
MAX_TOKEN: Final = 16 * 1024
# Of what is rejected, in the answer.
MAX_REJECTIONS: Final = 100
# The key, in answers, of a change that was not taken at all.
_WHOLE: Final = ""
_CONTROL: Final = re.compile(r"[\x00-\x20\x7f]")
PATH: Final = f"/{SERVICE}/{DELTA_METHOD}"


class DeliveryEnvironment(NamedTuple):
    """What a data plane is told by its environment. `gateway`: the name of the objects that run it."""

    host: str
    port: int
    secure: bool
    root_ca: str
    token_file: str
    gateway: str
    namespace: str
    pod: str
    address: str
    state_folder: str

    @classmethod
    def read(cls, environ: Mapping[str, str]) -> DeliveryEnvironment:
        """Return what the environment says. Raises ValueError."""
        url = urlsplit(environ[STREAM_ADDRESS])
        if url.scheme not in ("http", "https") or not url.hostname or url.path not in ("", "/") or url.query:
            raise ValueError(f"{STREAM_ADDRESS} is not http://<host>:<port> or https://<host>:<port>")
        port = url.port or PORT
        for name in ("GATEWAY", "NAMESPACE"):
            if not environ.get(name):
                raise ValueError(f"{name} is required with {STREAM_ADDRESS}")
        try:
            bind_host(environ)
        except ValueError:
            raise ValueError(f"{BIND_ADDRESS} is not an IP address") from None
        return cls(
            host=url.hostname,
            port=port,
            secure=url.scheme == "https",
            root_ca=environ.get("XDS_ROOT_CA", ""),
            token_file=environ.get("XDS_TOKEN_FILE", TOKEN_FILE),
            gateway=environ["GATEWAY"],
            namespace=environ["NAMESPACE"],
            pod=environ.get("POD_NAME", ""),
            address=environ.get("INSTANCE_IP", ""),
            # systemd gives several, divided by colons.
            state_folder=environ.get("STATE_DIRECTORY", "").partition(":")[0],
        )

    @property
    def role(self) -> str:
        """Whose configuration it takes."""
        return f"{self.namespace}~{self.gateway}"


class DeliveryClient:
    """Brings the parts of a configuration (see headgate.server.delivery.Feed). `chance`: 0 to 1."""

    def __init__(self, environment: DeliveryEnvironment, chance: Callable[[], float] = random.random) -> None:
        self._environment = environment
        self._chance = chance
        self._versions: dict[str, str] = {}
        self._file = StateFile(environment.state_folder, environment.role) if environment.state_folder else None
        # Resources that have come and are none, with the reason.
        self._unreadable: dict[str, str] = {}
        self._unsaved = asyncio.Event()
        self._pause = LEAST_PAUSE_S
        self._told = ""

    def restore(self, parts: DeliveredParts) -> None:
        """Bring what was kept when the gateway last ran."""
        kept = self._file.load() if self._file is not None else None
        if kept is None:
            return
        # What was good first, so that it is there for what may be refused again.
        parts.change({key: kept.good.get(key, part) for key, part in kept.parts.items()})
        parts.settle()
        parts.change({key: kept.parts[key] for key in kept.good})
        self._versions = kept.versions

    async def run(self, parts: DeliveredParts, take: Take, meter: DeliveryMeter) -> None:
        """Bring parts until cancelled."""
        saving = spawn("delivery state", self._save(parts)) if self._file is not None else None
        try:
            while True:
                elsewhere = await self._connected(parts, take, meter)
                await asyncio.sleep(self._next_pause(elsewhere))
        finally:
            if saving is not None:
                saving.cancel()

    def _next_pause(self, elsewhere: bool) -> float:
        """Return the seconds until the next try. `elsewhere`: the last one came to a replica that does not lead."""
        most = ELSEWHERE_PAUSE_S if elsewhere else MOST_PAUSE_S
        pause = min(self._pause, most)
        self._pause = min(self._pause * 2, most)
        return pause * (0.5 + self._chance())

    async def _connected(self, parts: DeliveredParts, take: Take, meter: DeliveryMeter) -> bool:
        """Serve one stream until it ends; return whether it came to a replica that does not lead."""
        environment = self._environment
        channel: GrpcChannel | None = None
        why, elsewhere = "the controller ended the stream", False
        try:
            metadata = await asyncio.to_thread(self._metadata)
            channel = GrpcChannel(f"{environment.host}:{environment.port}", self._dial, secure=environment.secure)
            stream = await channel.open(PATH, metadata=metadata, limit=MAX_MESSAGE)
            try:
                await stream.send(self._request())
                await self._followed(stream, parts, take, meter)
            finally:
                meter.connected(False)
                stream.close()
        except (GrpcError, ReloadFailed, OSError, ValueError) as error:
            why = str(error)
            elsewhere = isinstance(error, GrpcError) and error.message == ELSEWHERE
        finally:
            if channel is not None:
                channel.close()
        if why != self._told:
            self._told = why
            logger.warning("no stream to the controller", extra={"address": environment.host, "reason": why})
        return elsewhere

    async def _followed(self, stream: GrpcStream, parts: DeliveredParts, take: Take, meter: DeliveryMeter) -> None:
        messages = aiter(stream)
        # There is always an answer to the first request, be it empty: a stream without one leads nowhere.
        waits: float | None = FIRST_ANSWER_S
        nonce, told, turns = "", b"", 0
        while True:
            try:
                async with asyncio.timeout(waits):
                    message = await anext(messages)
            except StopAsyncIteration:
                return
            except TimeoutError:
                if not nonce:
                    raise ValueError("the controller sent nothing") from None
                refused = await self._taken(take, {}, [], meter)
                turns += 1
                waits = self._retry_pause(parts, refused, turns)
                if (said := answer(nonce, refused)) != told:
                    told = said
                    await stream.send(said)
                continue
            if not nonce:
                meter.connected(True)
            self._pause = LEAST_PAUSE_S
            if self._told or not self._versions:
                logger.info("connected to the controller", extra={"address": self._environment.host})
            self._told = ""
            nonce, changed, removed, versions, bad = await asyncio.to_thread(decoded, message)
            for name in (*removed, *changed):
                self._versions.pop(name, None)
                self._unreadable.pop(name, None)
            self._versions |= versions
            self._unreadable |= bad
            refused = await self._taken(take, changed, removed, meter)
            extra = {"changed": len(changed), "removed": len(removed), "rejected": len(refused), "state": nonce}
            logger.info("configuration received", extra=extra)
            for name, fault in list(refused.items())[:MAX_REJECTIONS]:
                logger.warning("resource rejected", extra={"resource": name, "error": fault})
            told, turns = answer(nonce, refused), 0
            waits = self._retry_pause(parts, refused, turns)
            await stream.send(told)

    async def _taken(
        self, take: Take, changed: Mapping[str, DeliveredPart], removed: list[str], meter: DeliveryMeter
    ) -> dict[str, str]:
        """Put a change into force, and return why parts are refused."""
        try:
            refused = await take(changed, removed)
        except ReloadFailed as error:
            refused = {_WHOLE: str(error)}
        refused |= self._unreadable
        self._unsaved.set()
        meter.taken(len(self._versions), len(refused))
        return refused

    def _retry_pause(self, parts: DeliveredParts, refused: Mapping[str, str], turns: int) -> float | None:
        """Return the seconds until refused parts are tried again, or a change that was not taken at all, as where
        workers die; None if no time helps."""
        if not parts.passing and _WHOLE not in refused:
            return None
        pause = min(LEAST_RETRY_S * (1 << min(turns, 10)), MOST_RETRY_S)
        return pause * (0.5 + self._chance())

    def _request(self) -> bytes:
        environment = self._environment
        namespace = environment.namespace
        request = DeltaDiscoveryRequest(type_url=TYPE_URL, initial_resource_versions=self._versions)
        pod = f"{environment.pod or environment.gateway}.{namespace}"
        request.node.id = f"headgate~{environment.address}~{pod}~{namespace}.svc.cluster.local"
        request.node.metadata.update({
            "NAME": environment.pod, "NAMESPACE": namespace, "INSTANCE_IPS": environment.address,
            "NODE_NAME": os.environ.get("NODE_NAME", ""), "GATEWAY_NAME": environment.gateway,
            "role": environment.role,
        })  # fmt: skip
        encoded: bytes = request.SerializeToString()
        return encoded

    def _metadata(self) -> list[tuple[str, str]]:
        """Return the metadata of a call. The token is read anew each time: it is replaced before it ends."""
        try:
            with open(self._environment.token_file, encoding="ascii") as file:
                token = file.read(MAX_TOKEN).strip()
        except FileNotFoundError:
            return []  # the controller may not ask for one
        except (OSError, UnicodeDecodeError) as error:
            raise ValueError(f"the token cannot be read: {error}") from None
        if _CONTROL.search(token):
            raise ValueError("the token file holds something else than a token")
        return [("authorization", f"Bearer {token}")] if token else []

    async def _dial(self, factory: Callable[[], asyncio.BaseProtocol]) -> None:
        environment = self._environment
        context = None
        if environment.secure:
            # Read anew as well: an authority that is replaced is in the same file.
            context = await asyncio.to_thread(client_context, environment.root_ca)
        async with asyncio.timeout(CONNECT_S):
            loop = asyncio.get_running_loop()
            transport, _ = await loop.create_connection(factory, environment.host, environment.port, ssl=context)
        # A machine that is gone says nothing: without this the stream would wait for it forever.
        connection = transport.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in KEPT_ALIVE.items():
            if hasattr(socket, name):
                connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)

    async def _save(self, parts: DeliveredParts) -> None:
        assert self._file is not None
        while True:
            await self._unsaved.wait()
            self._unsaved.clear()
            wanted = {key: part for key, part in parts.wanted.items() if key in self._versions}
            good = {key: part for key, part in parts.good.items() if key in parts.refused and key in wanted}
            try:
                await asyncio.to_thread(self._file.save, self._versions.copy(), wanted, good)
            except OSError as error:
                logger.error("the state cannot be kept", extra={"error": str(error)})
            await asyncio.sleep(SAVE_S)


class DecodedResponse(NamedTuple):
    """A response: new parts, names of what is gone, versions, and why some cannot be read."""

    nonce: str
    changed: dict[str, DeliveredPart]
    removed: list[str]
    versions: dict[str, str]
    bad: dict[str, str]


def decoded(message: bytes) -> DecodedResponse:
    """Return what a response says. Raises ValueError."""
    try:
        response = DeltaDiscoveryResponse.FromString(message)
    except DecodeError as error:
        raise ValueError(f"the controller sent no response: {error}") from None
    changed: dict[str, DeliveredPart] = {}
    versions: dict[str, str] = {}
    bad: dict[str, str] = {}
    for one in response.resources:
        try:
            if one.resource.type_url != TYPE_URL:
                raise ValueError(f"its type is {one.resource.type_url[:100]}")
            changed[one.name] = part_of(one.resource.value)
        except ValueError as error:
            bad[one.name] = str(error)
        versions[one.name] = one.version
    return DecodedResponse(response.nonce, changed, list(response.removed_resources), versions, bad)


def answer(nonce: str, refused: Mapping[str, str]) -> bytes:
    """Return the request that accepts a response, or says which resources are refused."""
    request = DeltaDiscoveryRequest(type_url=TYPE_URL, response_nonce=nonce)
    if refused:
        entries = [{"key": key, "error": error} for key, error in list(refused.items())[:MAX_REJECTIONS]]
        request.error_detail.code = 3  # INVALID_ARGUMENT
        request.error_detail.message = json.dumps(entries)
    encoded: bytes = request.SerializeToString()
    return encoded


def client_context(root_ca: str) -> ssl.SSLContext:
    """Return settings of TLS that trust an authority's file, or else those of the system. Raises OSError."""
    context = ssl.create_default_context(cafile=root_ca or None)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["h2"])
    return context
