"""Puts a configuration into force that is delivered part by part. Whoever brings the parts is handed down (`Feed`)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Final, Protocol

from headgate.config.delivered import DeliveredPart, DeliveredParts, Key
from headgate.config.delivered_reader import DeliveredReader
from headgate.config.load import Source
from headgate.config.source_reader import SourceReader
from headgate.errors import ConfigErrors
from headgate.server.failures import ReloadFailed, WorkerLost
from headgate.telemetry.metrics import series_key
from headgate_engine.shared.counters import Counter, Gauge
from headgate_engine.shared.segment import Segment

logger = logging.getLogger("headgate.delivery")
# What readiness waits for.
PENDING: Final = "configuration stream"
# How often a change is tried with other parts left out.
MAX_TRIES: Final = 8
PAUSE_S: Final = 0.5
Take = Callable[[Mapping[Key, DeliveredPart], Iterable[Key]], Awaitable[dict[Key, str]]]


class Feed(Protocol):
    """Brings parts."""

    def restore(self, parts: DeliveredParts) -> None:
        """Bring the last known parts before the start."""

    async def run(self, parts: DeliveredParts, take: Take, meter: DeliveryMeter) -> None:
        """Bring parts until cancelled. `take` puts a change into force: new parts, and keys of those that are gone. It
        returns why parts are refused, by key, and raises ReloadFailed if the change was not taken at all. Without a
        change it tries what may be taken now (`parts.passing`).
        """


class DeliveryMeter:
    """The metrics of a delivery."""

    def __init__(self, segment: Segment) -> None:
        self._connected = Gauge(segment, series_key("gw_delivery_connected", {}))
        self._resources = Gauge(segment, series_key("gw_delivery_resources", {}))
        self._rejected = Gauge(segment, series_key("gw_delivery_rejected_resources", {}))
        self._connects = Counter(segment, series_key("gw_delivery_connects_total", {}))
        self._results = {
            result: Counter(segment, series_key("gw_delivery_responses_total", {"result": result}))
            for result in ("accepted", "rejected")
        }

    def connected(self, there: bool) -> None:
        """Note that there is a stream, or is none."""
        self._connected.set(int(there))
        if there:
            self._connects.add()

    def taken(self, resources: int, rejected: int) -> None:
        """Note an answer: how many parts there are now, and how many of them are refused."""
        self._resources.set(resources)
        self._rejected.set(rejected)
        self._results["rejected" if rejected else "accepted"].add()


class Delivery:
    """Takes what a feed brings. `renew` reads and applies the configuration; raises as Supervisor.renew() does."""

    def __init__(
        self, feed: Feed, reader: SourceReader, renew: Callable[[], Awaitable[None]], lock: asyncio.Lock,
        pending: set[str],
    ) -> None:  # fmt: skip
        assert isinstance(reader, DeliveredReader)
        self._feed = feed
        self._parts = parts = reader.parts
        self._renew = renew
        self._lock = lock
        self._pending = pending
        if not parts.wanted:
            pending.add(PENDING)

    async def run(self, segment: Segment) -> None:
        """Take parts until cancelled."""
        await self._feed.run(self._parts, self.take, DeliveryMeter(segment))

    async def take(self, parts: Mapping[Key, DeliveredPart], removed: Iterable[Key]) -> dict[Key, str]:
        """Put a change into force (see Feed.run). Without one, what was refused for something that may have passed is
        tried again."""
        async with self._lock:
            if not parts and not removed:
                self._parts.retry()
            self._parts.change(parts, removed)
            await self._in_force()
        self._pending.discard(PENDING)
        return dict(self._parts.refused)

    async def _in_force(self) -> None:
        for _ in range(MAX_TRIES):
            try:
                await self._renew()
            except WorkerLost as error:
                logger.warning("a worker died during a change, which is tried again", extra={"error": str(error)})
                await asyncio.sleep(PAUSE_S)
            except (ReloadFailed, ConfigErrors, OSError) as error:
                if not self.refused(error):
                    raise ReloadFailed(str(error)) from error
            else:
                self._parts.settle()
                return
        raise ReloadFailed("the change could not be applied")

    def refused(self, error: Exception) -> bool:
        """Leave out what a failure is about; tell whether there was anything."""
        logger.error("delivered configuration failed", extra={"error": str(error)})
        if isinstance(error, ReloadFailed) and error.ports:
            keys = [key for key in self._parts.binds_at(error.ports)]
            self._parts.refuse_for_now({key: f"its port cannot be opened: {error}" for key in keys})
            if keys:
                return True
        return self._parts.refuse_unsettled(str(error))


def delivered_reader(source: Source, feed: Feed) -> DeliveredReader:
    """Return a reader of a source with what a feed remembers."""
    reader = DeliveredReader(source)
    feed.restore(reader.parts)
    return reader
