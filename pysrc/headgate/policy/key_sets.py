"""Remote key sets: refreshed in the background, and fetched again if a token names an unknown key.

If a fetch fails, the old keys remain valid; requests whose token needs another key get 401, never 503.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable, Sequence
from typing import Final

from headgate.crypto.jwks import MAX_BYTES, KeySet, parse_jwks
from headgate.crypto.jws import Checks
from headgate.ir.policy.document_source import DocumentSource
from headgate_engine.link.client import CallError, HttpClient
from headgate_engine.steps.verified import VerifiedTokens

logger = logging.getLogger("headgate.keys")

FETCH_SECONDS: Final = 10.0
# Minimum time between two fetches, however many tokens name unknown keys.
LEAST_PAUSE: Final = 5.0
# Different checks of one key set; after that many, policies of a later configuration share with one another only.
MAX_CHECKS: Final = 1024
MOST_PAUSE: Final = 300.0


class KeyStore:
    """One key set of a worker. `verified`: the tokens that its keys have verified, for all policies. It is cleared when
    the keys change.
    """

    def __init__(
        self, source: DocumentSource, clients: Sequence[HttpClient], spawn: Callable[..., asyncio.Task[None]]
    ) -> None:
        self.source = source
        self.keys = parse_jwks(source.document) if source.document is not None else KeySet(())
        self.verified = VerifiedTokens()
        self._checks: dict[Checks, Checks] = {}
        self._clients = clients
        self._spawn = spawn
        self._fetching: asyncio.Task[None] | None = None
        self._last = 0.0
        self._failures = 0
        self._refresher: asyncio.Task[None] | None = None

    def shared(self, checks: Checks) -> Checks:
        """Return one object for equal checks: policies that require the same share the tokens that passed."""
        if len(self._checks) >= MAX_CHECKS:
            self._checks.clear()
        return self._checks.setdefault(checks, checks)

    def start(self) -> None:
        """Start the background refresh of a remote set."""
        if self._clients and self._refresher is None:
            self._refresher = self._spawn(f"keys {self.source.shown}", self._keep_fresh())

    def close(self) -> None:
        """Cancel the background tasks."""
        for task in (self._refresher, self._fetching):
            if task is not None:
                task.cancel()

    @property
    def may_refetch(self) -> bool:
        """Return True if another fetch may find new keys: the set is remote, and the last fetch was not recent."""
        if not self._clients:
            return False
        return self._fetching is not None or time.monotonic() - self._last >= self._pause()

    def _pause(self) -> float:
        return min(LEAST_PAUSE * float(1 << self._failures), MOST_PAUSE)

    async def refetch(self) -> None:
        """Fetch the keys, or wait for the fetch in progress."""
        if self._fetching is None:
            self._fetching = self._spawn(f"fetch keys {self.source.shown}", self._fetch())
        await asyncio.wait([self._fetching])

    async def _keep_fresh(self) -> None:
        while True:
            await self.refetch()
            await asyncio.sleep(self._pause() if self._failures else self.source.refresh_s)

    async def _fetch(self) -> None:
        self._last = time.monotonic()
        try:
            async with asyncio.timeout(FETCH_SECONDS):
                found = await self._load()
        except (CallError, ValueError, TimeoutError, OSError) as error:
            self._failures = min(self._failures + 1, 8)
            reason = str(error) or type(error).__name__
            logger.warning("cannot fetch keys", extra={"url": self.source.shown, "error": reason})
        else:
            self._failures = 0
            for reason in found.skipped:
                logger.warning("key not usable", extra={"url": self.source.shown, "error": reason})
            # Compare the keys, not just their ids: a provider may replace a key under the same id.
            changed = found.keys != self.keys.keys
            self.keys = found
            if changed:
                self.verified.clear()
        finally:
            self._fetching = None

    async def _load(self) -> KeySet:
        """Return the keys of the first endpoint that has some; raises what the last one failed with."""
        chosen = random.sample(self._clients, len(self._clients))
        for client in chosen[:-1]:
            try:
                return await self._load_from(client)
            except (CallError, ValueError, OSError) as error:
                logger.info("no keys at an endpoint", extra={"url": self.source.shown, "error": str(error)})
        return await self._load_from(chosen[-1])

    async def _load_from(self, client: HttpClient) -> KeySet:
        response = await client.request("GET", self.source.path, [("accept", "application/json")])
        try:
            if response.status != 200:
                raise ValueError(f"status {response.status}")
            body = await response.read(MAX_BYTES)
        finally:
            await response.aclose()
        found = parse_jwks(body)
        if not found.keys:
            raise ValueError("there are no usable keys")
        return found
