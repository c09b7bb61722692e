"""A worker process: takes configurations from the supervisor, owns connections."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import os
import resource
import socket
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import uvloop

from headgate.backend.contract import BackendCall
from headgate.backend.mcp.relay import Relay
from headgate.backend.mcp.session import SessionIds
from headgate.document.lazy_dataclass import dataclass
from headgate.ir.gateway import Gateway
from headgate.net.sockets import LentSocket, set_keepalives
from headgate.net.tasks import spawn, spawner
from headgate.net.tls import TICKETS
from headgate.pipeline.compile import CompileError, compile_steps
from headgate.pipeline.running import RunningConfiguration, Steps
from headgate.pipeline.slices import in_slices
from headgate.server import control
from headgate.server.control import (
    Commit,
    Discard,
    Done,
    Drain,
    Gather,
    Hello,
    Identify,
    LeasesCame,
    LeaseStoreState,
    Permit,
    Prepare,
    Query,
    QueryResult,
    SampleHeap,
    SendMetrics,
    SetLevels,
    Unwatch,
    WantLeases,
    WatchCommand,
)
from headgate.server.drain import drain
from headgate.server.heartbeat import Heartbeat
from headgate.server.imports import import_beside
from headgate.server.library_pages import drop_steps
from headgate.server.listen import Acceptor, Factory, SharedAcceptor
from headgate.server.reports import long_report, memory
from headgate.server.template import WorkerStart
from headgate.server.transfer import KnownParts, Received, load, load_inherited, load_one
from headgate.server.watching import Watching
from headgate.server.worker_relay import WorkerRelay
from headgate.telemetry import logs
from headgate.telemetry.levels import Directives
from headgate_engine.link.accept import SharedAccept, epoll_descriptor
from headgate_engine.link.protocols import Port
from headgate_engine.link.worker import Worker
from headgate_engine.shared.loads import WorkerLoads
from headgate_engine.shared.segment import Segment

logger = logging.getLogger("headgate.worker")


@dataclass(slots=True)
class Prepared:
    """A configuration that is ready to be swapped in, with the parts that the next transfer can refer to."""

    running: RunningConfiguration
    received: Received


class WorkerProcess:
    """The life of one worker. `segment` is the one of `start`, as this process holds it; `inherited` is the
    configuration that the process was forked with.
    """

    def __init__(self, start: WorkerStart, segment: Segment, inherited: Gateway | None = None) -> None:
        self._channel = start.channel
        self._inherited = inherited
        self._segment = segment
        self._index = start.order.worker
        self._folder = start.folder
        self._wake_fds = start.wake_fds
        self._shared_accept: SharedAccept | None = None
        self._running: RunningConfiguration | None = None
        self._prepared: Prepared | None = None
        self._known = KnownParts()
        self._preparing: asyncio.Task[None] | None = None
        self._sockets: dict[str, socket.socket] = {}
        self._acceptors: dict[str, Acceptor] = {}
        self._ports: dict[str, Port] = {}
        self._finished: asyncio.Future[None] | None = None
        self._worker_relay: WorkerRelay | None = None
        self._queue: asyncio.Queue[tuple[control.Message, list[int]]] = asyncio.Queue()

    async def run(self) -> None:
        """Serve until drained or until the supervisor is gone."""
        loop = asyncio.get_running_loop()
        self._finished = loop.create_future()
        self._worker = Worker(loop, self._segment, self._index, logs.output(), spawner(loop))
        self._follow_levels()
        if len(self._wake_fds) > 1 and epoll_descriptor(loop) >= 0:
            loads = WorkerLoads(self._segment, len(self._wake_fds))
            self._shared_accept = SharedAccept(self._worker, loads, self._wake_fds)
        self._worker.ports = self._ports
        self._watching = Watching(self._worker, self._segment)
        heartbeat = Heartbeat(self._segment, self._index, loop)
        heartbeat.beat()
        loop.add_reader(self._channel.fileno(), self._on_packet)
        spawn("control", self._control_loop())
        self._say(Hello(os.getpid(), "" if self._inherited is None else self._inherited.digest))
        gc.freeze()
        # Small steps: a collection of 50,000 objects is a pause of 20 ms.
        gc.set_threshold(5_000, 20, 50)
        await self._finished
        heartbeat.stop()
        if self._worker_relay is not None:
            self._worker_relay.close()
        if self._running is not None:
            await self._running.aclose()
        await self._worker.aclose()
        if self._worker.records is not None:
            await self._worker.records.aclose()

    def _follow_levels(self) -> None:
        least = least_request_line()
        self._worker.access_log_on, self._worker.log_level = least is not None, least or 0

    def _say(self, message: control.Message) -> None:
        try:
            control.send(self._channel, message)
        except OSError:
            pass  # the supervisor is gone or does not read
        except ValueError:  # one answer must not end the loop that answers
            logger.exception("control message is not sent", extra={"type": type(message).__name__})

    def _on_packet(self) -> None:
        try:
            packet = control.receive(self._channel)
        except BlockingIOError:
            return
        except OSError:
            packet = None
        if packet is None:
            self._end()
        else:
            self._queue.put_nowait(packet)

    def _end(self) -> None:
        if self._finished is not None and not self._finished.done():
            self._finished.set_result(None)

    async def _control_loop(self) -> None:
        while True:
            message, descriptors = await self._queue.get()
            match message:
                case Prepare():
                    # Beside what else is asked meanwhile: a large configuration takes seconds beside traffic.
                    self._preparing = spawn("prepare", self._prepare(message, descriptors))
                case Commit():
                    await self._commit()
                    self._say(Done("commit", message.generation))
                case Discard():
                    await self._discard()
                case SetLevels():
                    logs.set_up(Directives(message.directives), message.form)
                    self._follow_levels()
                    self._say(Done("levels", message.number))
                case WatchCommand():
                    self._say(Done("watch", message.number, tuple(self._watch(message, descriptors[0]))))
                case Unwatch():
                    self._watching.drop(message.number)
                case Query():
                    self._say(QueryResult(message.number, self._answer_query(message.what, descriptors)))
                case Permit():
                    from headgate.server.profiling import permit

                    permit(message.pid)
                    self._say(QueryResult(message.number))
                case SampleHeap():
                    from headgate.server import heap

                    heap.switch(message.rate)
                    self._say(QueryResult(message.number))
                case Gather():
                    await self._gather(descriptors[0])
                    self._say(QueryResult(message.number))
                case Identify():
                    from headgate.net.spiffe import IDENTITY

                    IDENTITY.take(load_one(descriptors[0]))
                    self._say(QueryResult(message.number))
                case SendMetrics():
                    parts = load_one(descriptors[0])
                    if self._running is not None:
                        self._running.exporters.push_metrics(parts)
                    self._say(QueryResult(message.number))
                case LeasesCame() | LeaseStoreState():
                    self._lease(message)
                case Drain():
                    spawn("drain", self._drain(message))
                case _:
                    logger.error("unexpected control message", extra={"type": type(message).__name__})

    async def _prepare(self, message: Prepare, descriptors: list[int]) -> None:
        TICKETS.give(*message.tickets)
        if self._worker_relay is None:
            ids = SessionIds(message.session_key)
            self._worker_relay = WorkerRelay(self._worker, self._folder, ids, self._find_relayed)
        for key, descriptor in zip(message.listen, descriptors[1:], strict=True):
            kind = LentSocket if key in message.lent else socket.socket
            self._sockets[key] = kind(fileno=descriptor)
        errors: list[str] = []
        try:
            self._prepared = await self._compile(descriptors[0], message, self._worker_relay.relay)
        except CompileError as error:
            errors = error.errors
        except Exception as error:  # task boundary: a fault in compiling must not end the worker
            logger.exception("compile failed")
            errors = [f"internal error: {type(error).__name__}: {error}"]
        self._say(Done("prepare", message.generation, tuple(errors)))

    async def _compile(self, descriptor: int, message: Prepare, relay: Relay) -> Prepared:
        """Read a configuration and compile it, beside the traffic. Raises CompileError."""
        # Nothing that is compiled is garbage, and a collection that looks at all of it takes far longer than a slice.
        gc.collect(0)
        gc.disable()
        try:
            await asyncio.sleep(0)  # the collection may have taken more than a slice
            await import_beside(message.modules)
            inherited, self._inherited = self._inherited, None
            if inherited is not None and not os.fstat(descriptor).st_size:
                os.close(descriptor)
                received = await in_slices(load_inherited(inherited, self._known))
            else:
                received = await in_slices(load(descriptor, self._known))
            del inherited
            await asyncio.sleep(0)  # a new slice
            work = compile_steps(
                received.gateway,
                self._running,
                worker=self._worker,
                generation=message.generation,
                relay=relay,
                programs=received.programs,
            )
            return Prepared(await in_slices(work), received)
        finally:
            gc.freeze()
            gc.enable()

    async def _discard(self) -> None:
        if self._preparing is not None and not self._preparing.done():
            self._preparing.cancel()
            await asyncio.wait([self._preparing])
        prepared, self._prepared = self._prepared, None
        if prepared is not None and self._running is not None:
            prepared.running.discard(self._running)
            self._release(prepared.running, [prepared.received.new], self._running)
        for key in self._sockets.keys() - self._acceptors.keys():
            self._sockets.pop(key).close()

    async def _commit(self) -> None:
        prepared, self._prepared = self._prepared, None
        if prepared is None or self._worker_relay is None:
            return
        running = prepared.running
        gateway = running.gateway
        before, self._running = self._running, running
        gone = prepared.received.take()
        if running.environment is not None:
            # The same expressions. What was received alone would be freed with all of its texts at once.
            running.environment.programs = self._known.programs
        if gateway.virtual_keys is not None and gateway.virtual_keys.leases is not None:
            self._connect_desk()
        running.activate()
        if before is None:
            # What a worker before this one held, and this configuration does not.
            self._segment.forget_predecessor()
        # Not before: a request that came for a backend that is not there yet would be told that its session is over.
        await self._worker_relay.start()
        self._watching.configured(gateway)
        if before is not None:
            self._release(before, gone, running)
        frontends = {bind.key: bind.frontend or gateway.frontend for bind in gateway.binds}
        for key in running.binds:
            known = key in self._acceptors
            if key not in self._ports:
                self._ports[key] = Port(self._worker, key)
            self._ports[key].secure(running.names.get(key), frontends[key].tls_handshake_timeout_ms / 1000)
            if key not in self._sockets:
                continue
            set_keepalives(self._sockets[key], frontends[key].keepalives)
            if not known:
                self._acceptors[key] = self._acceptor(key, self._ports[key])
                await self._acceptors[key].start()
        if before is None and self._shared_accept is not None:
            self._shared_accept.start()
        for key in self._ports.keys() - running.binds.keys():
            if key in self._acceptors:
                spawn("stop accepting", self._acceptors.pop(key).stop())
            self._sockets.pop(key, None)
            self._ports.pop(key, None)
        # Nobody accepts at a lent socket without a port any more when this configuration is told to be in force.
        await asyncio.sleep(0)
        if before is None:
            spawn("library pages", in_slices(drop_steps()))

    def _acceptor(self, key: str, factory: Factory) -> Acceptor:
        sock = self._sockets[key]
        if self._shared_accept is None:
            return Acceptor(sock, factory)
        return SharedAcceptor(sock, factory, self._shared_accept, key)

    @staticmethod
    def _release(before: RunningConfiguration, gone: list[Any], current: RunningConfiguration) -> None:
        """Free the configuration that `current` has replaced, in slices beside the traffic."""

        def work() -> Steps[None]:
            yield from before.release(current)
            while gone:
                last = gone.pop()
                while isinstance(last, dict) and last:
                    last.popitem()
                    yield
                yield

        spawn("release", in_slices(work()))

    def _watch(self, message: WatchCommand, descriptor: int) -> list[str]:
        gateway = None if self._running is None else self._running.gateway
        return self._watching.add(message, descriptor, gateway)

    def _find_relayed(self, key: str) -> Callable[[BackendCall], Awaitable[None]] | None:
        return None if self._running is None else self._running.relayed(key)

    async def _gather(self, descriptor: int) -> None:
        from headgate.server.request_log import records_counter
        from headgate_engine.log.records import RecordSink

        before, loop = self._worker.records, asyncio.get_running_loop()
        self._worker.records = RecordSink(loop, descriptor, records_counter(self._segment, "dropped"))
        if before is not None:
            await before.aclose()

    def _lease(self, message: LeasesCame | LeaseStoreState) -> None:
        from headgate.policy.leases import DESK

        if isinstance(message, LeasesCame):
            DESK.came(message.number)
        else:
            DESK.set_down(down=message.down)

    def _connect_desk(self) -> None:
        from headgate.policy.leases import DESK

        DESK.say = lambda number, wants: self._say(WantLeases(number, wants))

    def _answer_query(self, what: str, descriptors: list[int]) -> dict[str, object]:
        if what == "numbers":
            return self._numbers()
        if what == "memory":
            return memory()
        with open(descriptors[0], "wb") as file:
            file.write(self._mcp_report() if what == "mcp" else long_report(what, self._index))
        return {}

    def _mcp_report(self) -> bytes:
        # Only ASCII: names and errors of servers may have surrogates that no encoding takes.
        return json.dumps([] if self._running is None else self._running.mcp_targets()).encode()

    def _numbers(self) -> dict[str, object]:
        usage = resource.getrusage(resource.RUSAGE_SELF)
        values: dict[str, object] = {"pid": os.getpid(), **self._worker.stats()}
        values["generation"] = self._running.generation if self._running is not None else 0
        values["cpu_seconds"] = round(usage.ru_utime + usage.ru_stime, 3)
        if self._running is not None:
            values["pools"] = {
                pool.endpoint.decode(): {
                    "open": pool.open,
                    "idle": pool.idle_count,
                    "failed": pool.failed,
                    "waiting": pool.waiting_count,
                    "refused": pool.refused,
                }
                for pool in self._running.pools.by_key.values()
            }
        return values

    async def _drain(self, message: Drain) -> None:
        if self._running is not None:
            self._running.begin_drain()
        if self._shared_accept is not None:
            self._shared_accept.leave()
        for key in message.handed & self._acceptors.keys():
            self._acceptors[key].hand_over()
        await drain(self._worker, list(self._acceptors.values()), message.min_ms / 1000, message.max_ms / 1000)
        self._end()


def least_request_line() -> int | None:
    """Return the least level of access-log lines that the log directives let through (scope `request`): 0 info, 1 warn,
    2 error. None: they let no line through."""
    scope = logging.getLogger("request")
    levels = (logging.INFO, logging.WARNING, logging.ERROR)
    return next((number for number, level in enumerate(levels) if scope.isEnabledFor(level)), None)


class Life(NamedTuple):
    """Runs this process as a worker. The event loop stops when the worker ends."""

    runner: asyncio.Runner
    task: asyncio.Task[None]


def begin(start: WorkerStart, inherited: Gateway | None = None) -> Life:
    """Turn this process, which a template has forked, into a worker. The template may have a configuration already."""
    gc.enable()
    logs.set_up(Directives(start.order.levels), start.order.form)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    start.channel.setblocking(False)
    # The template's own object holds nothing, and knows itself by another name.
    kept = -1 if start.segment.kept is None else start.segment.kept.fd
    process = WorkerProcess(start, Segment.attach(start.segment.fd, start.order.worker + 1, kept), inherited)
    runner = asyncio.Runner(loop_factory=uvloop.new_event_loop)
    loop = runner.get_loop()
    task = spawner(loop)("worker", process.run())
    task.add_done_callback(lambda _: loop.stop())
    return Life(runner, task)
