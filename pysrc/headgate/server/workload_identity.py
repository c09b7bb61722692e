"""The gateway's X.509-SVID in the supervisor: fetched from the SPIFFE Workload API, and given to all workers.

One stream to the agent tells of every new SVID. While the agent is away, the last one stays until it expires; then
workers have none, and handshakes that need it fail. A start waits a while for the first one and then goes on without.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
import time
from collections.abc import Callable, Iterable
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Final

from headgate.ir.gateway import Gateway
from headgate.ir.process import WorkloadEndpoint
from headgate.ir.tls import Svid
from headgate.net.tasks import spawn
from headgate.server.transfer import store_one
from headgate.server.worker_pool import WorkerHandle
from headgate.telemetry.metrics import series_key
from headgate_engine.shared.counters import Gauge
from headgate_engine.shared.segment import Segment

logger = logging.getLogger("headgate.spiffe")

FAMILY: Final = "gw_spiffe_svid_expiry_timestamp_seconds"
# How long a configuration waits that is the first to need an SVID.
FIRST_SECONDS: Final = 10.0
# Pauses between two attempts grow from the first to the last.
FIRST_PAUSE, LAST_PAUSE, GROWTH, JITTER = 0.25, 5.0, 2.0, 0.2
# The clock of the machine may be set: it is looked at again after this time, in seconds.
LOOK_SECONDS: Final = 60.0


class WorkloadIdentityKeeper:
    """Fetches the SVID while a configuration needs it. `workers` returns those that run; `segment` has its metric."""

    def __init__(self, workers: Callable[[], Iterable[WorkerHandle]], segment: Segment) -> None:
        self._workers = workers
        self._segment = segment
        self._gauge: Gauge | None = None
        self._endpoint: WorkloadEndpoint | None = None
        self._task: asyncio.Task[None] | None = None
        self._expiry: asyncio.TimerHandle | None = None
        self._svid: Svid | None = None
        self._came = asyncio.Event()
        # What has been said of an agent that does not answer.
        self._told = ""

    async def prepare(self, gateway: Gateway, workers: Iterable[WorkerHandle]) -> None:
        """Have workers that will run a configuration get the SVID, if it needs one. Call this before they compile."""
        endpoint = gateway.process.workload_api if gateway.spiffe else None
        if endpoint is None:
            return
        if self._task is None or self._endpoint != endpoint:
            self.stop()
            self._endpoint = endpoint
            self._came.clear()
            self._task = spawn("workload api", self._run(endpoint))
            try:
                await asyncio.wait_for(self._came.wait(), FIRST_SECONDS)
            except TimeoutError:
                told = {"endpoint": endpoint.text, "error": self._told or "no answer"}
                logger.warning("there is no X.509-SVID yet: handshakes that need it fail", extra=told)
        await self._give(workers)

    def forget(self, gateway: Gateway) -> None:
        """Stop if a configuration, which is in force, needs no SVID."""
        if not gateway.spiffe:
            self.stop()

    def stop(self) -> None:
        """Fetch no more."""
        if self._task is not None:
            self._task.cancel()
        if self._expiry is not None:
            self._expiry.cancel()
        self._task = self._expiry = self._svid = None
        if self._gauge is not None:
            self._gauge.set(0)

    async def _run(self, endpoint: WorkloadEndpoint) -> None:
        from headgate.net.grpc import GrpcError  # h2 and protobuf: only where they are needed
        from headgate.net.workload_api import svids

        pause = FIRST_PAUSE
        while True:
            error = "the agent closed the stream"
            try:
                async with aclosing(svids(endpoint)) as found:
                    async for svid in found:
                        pause = FIRST_PAUSE
                        self._told = ""
                        await self._take(svid)
            except (GrpcError, OSError, ValueError) as failure:
                error = str(failure)
            except Exception as failure:  # task boundary: the next attempt gets its chance
                logger.exception("the SPIFFE Workload API could not be asked")
                error = type(failure).__name__
            if error != self._told:
                told = {"endpoint": endpoint.text, "error": error, "svid": self._shown()}
                logger.warning("the SPIFFE Workload API does not answer", extra=told)
            self._told = error
            await asyncio.sleep(pause * random.uniform(1 - JITTER, 1 + JITTER))
            pause = min(pause * GROWTH, LAST_PAUSE)

    def _shown(self) -> str:
        return "none" if self._svid is None else f"good until {_time_of(self._svid)}"

    async def _take(self, svid: Svid) -> None:
        left = svid.expires - time.time()
        if left <= 0:
            raise ValueError(f"the X.509-SVID has expired at {_time_of(svid)}")
        self._svid = svid
        logger.info("X.509-SVID received", extra={"spiffe_id": svid.spiffe_id, "expires": _time_of(svid)})
        await self._give(self._workers())
        self._watch_expiry()
        self._came.set()

    def _watch_expiry(self) -> None:
        if self._expiry is not None:
            self._expiry.cancel()
        if self._svid is not None:
            left = max(0.0, self._svid.expires - time.time())
            self._expiry = asyncio.get_running_loop().call_later(min(left, LOOK_SECONDS), self._look)

    def _look(self) -> None:
        if self._svid is not None and self._svid.expires <= time.time():
            logger.error("the X.509-SVID has expired: handshakes that need it fail", extra={"svid": self._shown()})
            self._svid = None
            spawn("workload identity", self._give(self._workers()))
        self._watch_expiry()

    async def _give(self, workers: Iterable[WorkerHandle]) -> None:
        if self._gauge is None:
            self._gauge = Gauge(self._segment, series_key(FAMILY, {}))
        self._gauge.set(0 if self._svid is None else int(self._svid.expires))
        descriptor = store_one(self._svid)
        try:
            await asyncio.gather(*(worker.identify(descriptor) for worker in workers))
        finally:
            os.close(descriptor)


def _time_of(svid: Svid) -> str:
    return datetime.fromtimestamp(svid.expires, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
