"""The ledger of virtual keys in the supervisor: emptied into the database once a second, and at the end."""

from __future__ import annotations

import asyncio
import logging
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from headgate.ir.gateway import Gateway
from headgate.ir.request_log import RequestLogStore
from headgate.net.tasks import spawn
from headgate_engine.shared.segment import Segment

if TYPE_CHECKING:  # loaded by a configuration with virtual keys
    from headgate.telemetry.spend.ledger import SpendLedger
    from headgate.telemetry.spend.rows import Warned

logger = logging.getLogger("headgate.spend")

# How old the ledger may be, and what other gateways have spent may be unknown.
CARRY_SECONDS: Final = 1.0
LEFT: Final = 2
UNKEPT: Final = (
    "if the whole gateway is killed, the spending of its last second is lost: it started without virtual keys or with "
    "another database; restart it to change that"
)


def _same(one: RequestLogStore, other: RequestLogStore | None) -> bool:
    """Tell whether two stores are the same database."""
    return other is not None and one.database == other.database


class SpendKeeper:
    """Keeps the ledger of a gateway that has virtual keys and a database."""

    def __init__(self, segment: Segment) -> None:
        self._segment = segment
        self._ledger: SpendLedger | None = None
        # Those of the stores before, up to LEFT: one comes back when a configuration is not taken, and knows what the
        # accounts know of it.
        self._left: list[SpendLedger] = []
        self._task: asyncio.Future[Any] | None = None
        self._away = False
        # The memory can say of one ledger that its spending is for it.
        self._free = segment.kept is not None
        self._begun = False

    async def prepare(self, gateway: Gateway) -> None:
        """Take up the keys of a configuration before it comes into force: their limits know what was spent before."""
        store, keys = gateway.process.request_log, gateway.virtual_keys
        if self._ledger is not None and not _same(self._ledger.store, store):
            await self.stop()
        begun, self._begun = self._begun, True
        if store is None or (keys is None and self._ledger is None):
            return
        if self._ledger is None:
            from headgate.telemetry.spend.ledger import SpendLedger

            left = next((one for one in self._left if _same(one.store, store)), None)
            if left is None:
                folder = None if keys is None else keys.journal
                left = SpendLedger(self._segment, store, folder, kept=self._free)
                if begun and not self._free:
                    logger.warning(UNKEPT)
                self._free = False
            self._ledger = left
            self._left = [one for one in self._left if one is not left]
            self._task = spawn("spend", self._run())
        # In a thread: the ledger is another thread's as long as a database does not answer.
        if self._ledger.store != store:
            await asyncio.to_thread(self._ledger.use, store)
        await asyncio.to_thread(self._ledger.watch, keys)
        await self.carry()

    async def carry(self) -> bool:
        """Bring ledger and accounts to the same state. Return whether that could be done."""
        if self._ledger is None:
            return True
        from headgate.telemetry.requests.stores import LogFailure

        try:
            await asyncio.to_thread(self._ledger.carry, datetime.now(UTC))
        except LogFailure as error:
            if not self._away:
                self._away = True
                logger.error("the ledger cannot be written, spending is kept in memory", extra={"error": str(error)})
            return False
        if self._away:
            self._away = False
            logger.info("the ledger is written again")
        return True

    async def sums(self, first: str, last: str, by: tuple[str, ...]) -> list[tuple[str | int, ...]]:
        """Return what was spent up to now, as LedgerStore.read() does. Raises LogFailure."""
        ledger = self._ledger
        if ledger is None:
            return []
        await self.carry()
        return await asyncio.to_thread(ledger.read, first, last, by)

    async def claim(self, warned: list[Warned]) -> list[Warned]:
        """Return those of limits that have warned that no gateway has claimed before. Raises LogFailure."""
        ledger = self._ledger
        return warned if ledger is None else await asyncio.to_thread(ledger.claim, warned)

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(CARRY_SECONDS)
            try:
                await self.carry()
            except Exception:  # task boundary: the next second gets its chance
                logger.exception("the ledger cannot be updated")

    async def end(self) -> None:
        """Write what is left at the end of the gateway: workers have ended."""
        if self._task is not None:
            self._task.cancel()
            self._task = None
        if self._ledger is not None:
            # Where it cannot be written, the file stays for the next start, and so does what says whose it is.
            written = await self.carry()
            await asyncio.to_thread(partial(self._ledger.end, datetime.now(UTC), written=written))
        elif self._segment.kept is not None:
            from headgate.telemetry.spend import journal

            journal.remove_own(self._segment)

    async def stop(self) -> None:
        """Write what is left, and stop."""
        if self._task is not None:
            self._task.cancel()
            self._task = None
        await self.carry()
        if self._ledger is not None:
            await asyncio.to_thread(self._ledger.leave)
            self._left = [*self._left, self._ledger][-LEFT:]
        self._ledger = None
