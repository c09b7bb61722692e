"""The server of the delivery: Envoy's aggregated discovery service, delta variant, on grpcio.

100 streams that take 10,000 resources each cost 0.6 s of CPU time, half of what a server on the h2 library costs, and a
third of its memory (`bench/cluster/streams.py`; figures in `ci/cluster.md`). Each stream has one message under way and
sends the next one when that is answered: what a slow data plane has missed is never queued.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import time
from collections.abc import AsyncIterator, Callable
from typing import Any, Final

import grpc
import grpc.aio
from envoy.service.discovery.v3.discovery_pb2 import DeltaDiscoveryRequest
from google.protobuf.message import DecodeError

from headgate.cluster.calls import ApiCalls, ApiError
from headgate.cluster.deliver.certificate import ServingCertificate
from headgate.cluster.deliver.front import DeliveryFront
from headgate.cluster.deliver.roles import TokenReviews, Unauthenticated, account_name, role_of
from headgate.cluster.deliver.secrecy import SecretFinder
from headgate.cluster.deliver.settings import ELSEWHERE, DeliverySettings
from headgate.cluster.deliver.states import MAX_REJECTION, GatewayStates, StreamState
from headgate.cluster.deliver.wire import DELTA_METHOD, MAX_MESSAGE, SERVICE, TYPE_URL, WHOLE_METHOD
from headgate.cluster.snapshot import ObjectKey
from headgate.net.tasks import spawn
from headgate.server.run_folder import RunFolder

logger = logging.getLogger("headgate.cluster.deliver")
FIRST_MESSAGE_S: Final = 20.0
# How many streams may begin at once beyond `streams_per_s`.
BURST: Final = 200
STOP_S: Final = 1.0
# How long the last data plane of a Gateway counts when it has left: it may only connect again.
GRACE_S: Final = 10.0
REJECTED: Final = "ConfigurationRejected"
COUNTERS: Final = ("xds_auth_rq_total", "xds_auth_rq_success_total", "xds_auth_rq_failure_total", "xds_rejects_total")
OPTIONS: Final = (
    ("grpc.max_send_message_length", -1),
    ("grpc.max_receive_message_length", MAX_MESSAGE),
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.min_ping_interval_without_data_ms", 5_000),
    ("grpc.http2.min_recv_ping_interval_without_data_ms", 5_000),
    ("grpc.http2.max_ping_strikes", 0),
    ("grpc.so_reuseport", 0),
)
Code = grpc.StatusCode
# grpc.aio.ServicerContext, which has no types.
CallContext = Any


class DeliveryService:
    """Serves the states of Gateways to their data planes while this replica leads. `counters`: what to show as metrics,
    by name."""

    def __init__(
        self, states: GatewayStates, calls: ApiCalls, settings: DeliverySettings,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self._states = states
        self._settings = settings
        self._reviews = TokenReviews(calls, settings.audience)
        self._certificate = None if settings.mode == "plaintext" else ServingCertificate(calls, settings)
        self._finder = SecretFinder()
        self._clock = clock
        self._allowance, self._refilled = float(BURST), clock()
        self._servers: list[grpc.aio.Server] = []
        self._folder: RunFolder | None = None
        self._front: DeliveryFront | None = None
        self._renewal: asyncio.Task[None] | None = None
        self._leading = False
        # Told of each rejection: of which Gateway, a reason in CamelCase, and what is rejected.
        self.warned: Callable[[ObjectKey, str, str], None] = lambda _key, _reason, _message: None
        self.counters = dict.fromkeys(COUNTERS, 0)

    @property
    def port(self) -> int:
        """The port that is served."""
        assert self._front is not None
        return self._front.port

    def authority(self) -> bytes | None:
        """Return the certificates that data planes verify the server with, in PEM; None without TLS."""
        return None if self._certificate is None else self._certificate.authority

    def streams(self) -> int:
        """Return the number of connected data planes."""
        return self._states.connected

    def lead(self, leading: bool) -> None:
        """Take data planes in, or send all of them away: the leader alone writes statuses, so it has to hear what they
        say. What they have stays in force meanwhile, and the next leader sends the difference to it.
        """
        self._leading = leading
        if not leading:
            self._states.wake_all()

    async def start(self) -> None:
        """Open the port; lead() decides who is served. Raises OSError for the port, and ApiError or ValueError for the
        certificate."""
        settings = self._settings
        if settings.mode != "tls" and settings.plain_secrets:
            logger.warning("secrets may be sent without TLS, as the settings allow")
        if self._certificate is not None:
            await self._certificate.begin()
            self._renewal = spawn("delivery certificate", self._certificate.keep())
        self._folder = RunFolder.create()
        paths = [os.path.join(self._folder.path, name) for name in ("plain", "secure")]
        for path, secure in zip(paths, (False, True), strict=True):
            server = grpc.aio.server(options=OPTIONS)
            server.add_generic_rpc_handlers((self._handlers(secure),))
            server.add_insecure_port(f"unix:{path}")
            await server.start()
            self._servers.append(server)
        certificate = self._certificate
        self._front = DeliveryFront(settings.mode, lambda: None if certificate is None else certificate.context, *paths)
        self._front.start(settings.host, settings.port)
        logger.info("serving data planes", extra={"port": self.port, "mode": settings.mode})

    async def stop(self) -> None:
        """Close the port and end all streams."""
        if self._renewal is not None:
            self._renewal.cancel()
        if self._front is not None:
            await self._front.stop()
        for server in self._servers:
            await server.stop(STOP_S)
        self._servers.clear()
        if self._folder is not None:
            self._folder.remove()

    def _handlers(self, secure: bool) -> grpc.GenericRpcHandler:
        async def delta(requests: AsyncIterator[bytes], context: CallContext) -> None:
            await self._delta(requests, context, secure)

        async def whole(requests: AsyncIterator[bytes], context: CallContext) -> None:
            del requests
            await context.abort(Code.UNIMPLEMENTED, f"only {DELTA_METHOD} is served")

        methods = {
            DELTA_METHOD: grpc.stream_stream_rpc_method_handler(delta),
            WHOLE_METHOD: grpc.stream_stream_rpc_method_handler(whole),
        }
        return grpc.method_handlers_generic_handler(SERVICE, methods)

    # -- one stream ----------------------------------------------------------------------------------------------------
    async def _delta(self, requests: AsyncIterator[bytes], context: CallContext, secure: bool) -> None:
        if not self._leading:
            await context.abort(Code.UNAVAILABLE, ELSEWHERE)
        if not self._states.synced:
            await context.abort(Code.UNAVAILABLE, "not synced yet")
        if not self._admits():
            await context.abort(Code.RESOURCE_EXHAUSTED, "too many new streams: try again later")
        account = await self._account(context)
        stream = await self._joined(requests, context, account)
        woken = asyncio.Event()
        self._states.join(stream, woken.set)
        logger.info("data plane connected", extra={"peer": stream.peer, "state": stream.gateway.number})
        reader = spawn("delivery answers", self._answers(requests, stream))
        reader.add_done_callback(lambda _: woken.set())
        try:
            while not reader.done():
                await self._send(context, stream, secure)
                await woken.wait()
                woken.clear()
        finally:
            reader.cancel()
            self._states.leave(stream)
            asyncio.get_running_loop().call_later(GRACE_S, self._states.forget, stream)
            logger.info("data plane left", extra={"peer": stream.peer})

    async def _send(self, context: CallContext, stream: StreamState, secure: bool) -> None:
        if not self._leading:
            await context.abort(Code.UNAVAILABLE, ELSEWHERE)
        if not self._states.is_current(stream.gateway):
            await context.abort(Code.NOT_FOUND, "the Gateway is gone")
        if not secure and not self._settings.plain_secrets and not stream.waits_for_answer:
            name = await asyncio.to_thread(self._finder.first, stream.gateway.resources)
            if name:
                message = f"{name} has a secret, which is not sent without TLS"
                logger.error("state withheld from a data plane", extra={"peer": stream.peer, "reason": message})
                await context.abort(Code.FAILED_PRECONDITION, message)
        message_bytes = stream.next()
        if message_bytes is not None:
            await context.write(message_bytes)

    async def _answers(self, requests: AsyncIterator[bytes], stream: StreamState) -> None:
        async for encoded in _until_aborted(requests):
            request = DeltaDiscoveryRequest.FromString(encoded)
            if not request.response_nonce:
                continue
            rejection = _rejection(request.error_detail.message) if request.HasField("error_detail") else ""
            if self._states.answered(stream, request.response_nonce, rejection) and rejection:
                self.counters["xds_rejects_total"] += 1
                extra = {"peer": stream.peer, "state": stream.number, "reason": rejection}
                logger.warning("data plane rejected resources", extra=extra)
                self.warned(stream.gateway.key, REJECTED, f"rejected by a data plane: {rejection}")

    async def _joined(
        self, requests: AsyncIterator[bytes], context: CallContext, account: ObjectKey | None
    ) -> StreamState:
        """Return the stream that the first message begins."""
        request = DeltaDiscoveryRequest()
        try:
            async with asyncio.timeout(FIRST_MESSAGE_S):
                request = DeltaDiscoveryRequest.FromString(await anext(aiter(requests)))
        except StopAsyncIteration:
            await context.abort(Code.INVALID_ARGUMENT, "no request")
        except TimeoutError:
            await context.abort(Code.DEADLINE_EXCEEDED, "no request in time")
        except DecodeError as error:
            await context.abort(Code.INVALID_ARGUMENT, f"not a request: {error}")
        if not request.node.id:
            await context.abort(Code.INVALID_ARGUMENT, "the first request has no node id")
        if request.type_url != TYPE_URL:
            await context.abort(Code.INVALID_ARGUMENT, f"type_url is not {TYPE_URL}")
        role = role_of(request.node.metadata.fields["role"].string_value)
        if role is None:
            await context.abort(Code.INVALID_ARGUMENT, "node.metadata.role is not <namespace>~<gateway>")
            raise AssertionError
        if account is not None and account != ObjectKey(role.namespace, account_name(role.name)):
            self.counters["xds_auth_rq_failure_total"] += 1
            await context.abort(Code.PERMISSION_DENIED, f"service account {account} is not that of Gateway {role}")
        if account is not None:
            self.counters["xds_auth_rq_success_total"] += 1
        state = self._states.serving(role)
        if state is None:
            await context.abort(Code.NOT_FOUND, f"there is no Gateway {role}")
            raise AssertionError
        return StreamState(state, request.initial_resource_versions, request.node.id[:256])

    async def _account(self, context: CallContext) -> ObjectKey | None:
        """Return the account of the caller; None if there is no need for one."""
        if not self._settings.authenticate:
            return None
        self.counters["xds_auth_rq_total"] += 1
        metadata = {key: value for key, value in context.invocation_metadata() or ()}
        why, code = "", Code.UNAUTHENTICATED
        try:
            return await self._reviews.account(str(metadata.get("authorization", "")))
        except Unauthenticated as error:
            why = str(error)
        except ApiError as error:
            why, code = f"the token cannot be checked now: {error}", Code.UNAVAILABLE
        self.counters["xds_auth_rq_failure_total"] += 1
        logger.warning("data plane refused", extra={"reason": why})
        await context.abort(code, why)
        raise AssertionError

    def _admits(self) -> bool:
        now = self._clock()
        self._allowance = min(BURST, self._allowance + (now - self._refilled) * self._settings.streams_per_s)
        self._refilled = now
        if self._allowance < 1:
            return False
        self._allowance -= 1
        return True


async def _until_aborted(requests: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Yield the messages of a stream until either side ends it, for whatever reason."""
    with contextlib.suppress(grpc.aio.AbortError):
        async for encoded in requests:
            yield encoded


def _rejection(message: str) -> str:
    """Return what a data plane rejects, as people read it."""
    try:
        entries = json.loads(message)
        text = "; ".join(f"{one['key']}: {one.get('error') or one.get('warn')}" for one in entries[:8])
    except (ValueError, TypeError, KeyError, AttributeError):
        text = message
    return text[:MAX_REJECTION] or "rejected without a reason"
