"""Stored resources in the supervisor: changes that clients ask for, and changes that other gateways have made.

PostgreSQL tells of a change (LISTEN), and is asked for the version now and then, because a pool of connections may
swallow what it tells, and because a connection that is dead says nothing. A file of SQLite is asked every other second.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from headgate.config.load import Loaded, Source
from headgate.ir.gateway import Gateway
from headgate.ir.request_log import RequestLogStore
from headgate.net.tasks import spawn
from headgate.server.failures import ReloadFailed
from headgate.telemetry.metrics import series_key
from headgate_engine.shared.counters import Gauge
from headgate_engine.shared.segment import Segment

if TYPE_CHECKING:  # loaded by a configuration that stores resources
    from headgate.config.resources.stored import ResourceChange, Written

logger = logging.getLogger("headgate.resources")

# How long a gateway waits for word of a change before it asks for the version.
SQLITE_SECONDS: Final = 2.0
POSTGRES_SECONDS: Final = 10.0
# The pauses between attempts to reach a server that is away: the first, and the longest.
FIRST_PAUSE: Final = 0.5
LAST_PAUSE: Final = 30.0
# How often a change is tried when other gateways change something at the same time.
TRIES: Final = 5
BUSY: Final = "other changes came in between: try again"
Confirm = Callable[[], Awaitable[None]]
Install = Callable[[Loaded, Confirm], Awaitable[None]]


class ResourceKeeper:
    """Keeps one gateway in step with its database. `reload` reads the configuration again, `current` is in force."""

    def __init__(
        self, source: Source, segment: Segment, current: Callable[[], Loaded], reload: Callable[[], Awaitable[None]]
    ) -> None:
        self._source = source
        self._segment = segment
        self._current = current
        self._reload = reload
        self._store: RequestLogStore | None = None
        self._task: asyncio.Future[Any] | None = None
        # The version that a reload has failed for.
        self._failed_for = -1
        self._away = False
        self._pause = FIRST_PAUSE

    def follow(self, gateway: Gateway) -> None:
        """Begin or cease to look for changes, as a configuration in force says."""
        store = gateway.process.request_log if gateway.process.stores_resources else None
        if store != self._store:
            self.stop()
            self._store = store
            if store is not None:
                self._task = spawn("stored resources", self._run(store))
        self.count()

    def count(self) -> None:
        """Set the number of resources in force."""
        held = self._current().resources
        if held is not None:
            Gauge(self._segment, series_key("gw_config_resources", {})).set(len(held.resources))

    def stop(self) -> None:
        """Cease to look for changes."""
        if self._task is not None:
            self._task.cancel()
            self._task = None
            self._store = None

    async def change(self, change: ResourceChange, install: Install) -> Written:
        """Apply a change in all workers and store it, or neither.

        Raises ConfigErrors if the configuration does not load with it, InvalidResource, ResourceConflict,
        ResourceMissing, StorageFailure, and what `install` raises.
        """
        from headgate.config.resources import database
        from headgate.config.resources.reading import candidate
        from headgate.config.resources.stored import ResourceConflict, VersionMoved

        for _ in range(TRIES):
            now = time.time_ns() // 1000
            loaded, written, store = await asyncio.to_thread(candidate, self._source, change, now)
            # Workers have prepared the configuration when it is stored, and begin to use it when it is: whatever ends
            # the process in between leaves a state that runs.
            try:
                await install(loaded, partial(asyncio.to_thread, database.write, store, written))
            except VersionMoved:
                continue
            return written
        raise ResourceConflict(BUSY)

    # -- changes of others ---------------------------------------------------------------------------------------------
    async def _run(self, store: RequestLogStore) -> None:
        from headgate.config.resources.stored import StorageFailure

        self._away = False
        while True:
            try:
                await (self._ask_file(store) if store.url is None else self._listen(store))
            except StorageFailure as error:
                self._lost(store, str(error))
            except Exception:  # task boundary: a change later on gets its chance
                logger.exception("stored resources cannot be followed")
            # Gateways that lost the same server do not come back all at once.
            await asyncio.sleep(self._pause * random.uniform(0.8, 1.2))
            self._pause = min(self._pause * 2, LAST_PAUSE)

    async def _ask_file(self, store: RequestLogStore) -> None:
        from headgate.config.resources import sqlite

        while True:
            await self._seen(await asyncio.to_thread(sqlite.version, store))
            await asyncio.sleep(SQLITE_SECONDS)

    async def _listen(self, store: RequestLogStore) -> None:
        from headgate.config.resources import postgres

        async with postgres.listening(store) as (version, told):
            while True:
                told.clear()
                await self._seen(await version())
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(told.wait(), POSTGRES_SECONDS)

    async def _seen(self, version: int) -> None:
        """Note what version is stored, and take it up."""
        self._seen_well()
        held = self._current().resources
        if held is None or version in (held.version, self._failed_for):
            return
        before = self._current()
        await self._reload()
        # A failed reload is not repeated for the same version. One that used an earlier version, because the database
        # did not answer, is.
        self._failed_for = version if self._current() is before else -1

    def _seen_well(self) -> None:
        if self._away:
            self._away = False
            logger.info("stored resources are read again")
        self._pause = FIRST_PAUSE
        self._connected(1)

    def _lost(self, store: RequestLogStore, reason: str) -> None:
        if not self._away:
            self._away = True
            logger.error(
                "the stored resources cannot be read, the configuration stays in force",
                extra={"database": store.shown, "error": reason},
            )
        self._connected(0)

    def _connected(self, value: int) -> None:
        Gauge(self._segment, series_key("gw_config_database_up", {})).set(value)


async def unconfirmed(confirm: Confirm) -> tuple[list[str], Exception]:
    """Return why a configuration that workers have prepared is not applied after all; nothing if it is."""
    from headgate.config.resources.stored import NotStored  # most configurations store none

    try:
        await confirm()
    except NotStored as error:  # whoever asked for the change gets it, when workers have forgotten it
        return [str(error) or type(error).__name__], error
    return [], ReloadFailed("")
