"""Credentials that expire: fetched once for all requests, and renewed in the background before they expire.

If a fetch fails, the current credential remains in use until it expires; after that, requests that need it are refused.
Fetches are repeated with increasing pauses. Other requests are not delayed.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Final

from headgate.document.lazy_dataclass import dataclass
from headgate_engine.steps.aws_signature import AwsKeys
from headgate_engine.steps.held import HeldCredential

logger = logging.getLogger("headgate.credentials")

# Maximum time that a request waits for a credential.
WAIT_SECONDS: Final = 5.0
LEAST_PAUSE: Final = 1.0
MOST_PAUSE: Final = 60.0
# Seconds before the expiry at which the credential is renewed, and at which it is no longer used.
RENEWED_BEFORE: Final = 300.0
UNUSED_BEFORE: Final = 10.0


class CredentialError(Exception):
    """No credential is available. The text gives the reason and contains no secret: it goes to logs and clients."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """A credential, its lifetime in seconds, and the seconds until it is renewed (None: shortly before it expires)."""

    value: bytes | AwsKeys
    lives_s: float
    renew_s: float | None = None

    def times(self) -> tuple[float, float]:
        """Return the seconds until the credential is renewed, and until it is no longer used."""
        # For short lifetimes, the margins are a quarter and a tenth of the lifetime.
        end = self.lives_s - min(UNUSED_BEFORE, self.lives_s / 10)
        renew = self.lives_s - min(RENEWED_BEFORE, self.lives_s / 4) if self.renew_s is None else self.renew_s
        return min(renew, end), end


Fetch = Callable[[], Awaitable[Fetched]]


def silence(*libraries: str) -> None:
    """Turn off the loggers of libraries that fetch credentials: they log requests and responses, including tokens."""
    for name in libraries:
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)


class CredentialRefresher:
    """One credential of a worker. `name` appears in logs and errors."""

    def __init__(self, name: str, fetch: Fetch, spawn: Callable[..., asyncio.Task[None]]) -> None:
        self.name = name
        self.held = HeldCredential()
        self._fetch = fetch
        self._spawn = spawn
        self._task: asyncio.Task[None] | None = None
        self._failures = 0
        self._not_before = 0.0
        self._error = "it is being fetched"

    def renew(self) -> None:
        """Start to fetch the credential, unless a fetch is in progress or failed recently."""
        if self._task is None and time.monotonic() >= self._not_before:
            self._task = self._spawn(f"credentials {self.name}", self._work())

    async def wait(self) -> None:
        """Return when the credential is usable; raises CredentialError if it is not within WAIT_SECONDS."""
        if self.held.usable:
            return
        self.renew()
        if self._task is not None:
            await asyncio.wait([self._task], timeout=WAIT_SECONDS)
            if self._task is not None and not self.held.usable:
                raise CredentialError(f"{self.name}: no answer in {WAIT_SECONDS:g}s")
        if not self.held.usable:
            raise CredentialError(f"{self.name}: {self._error}")

    def close(self) -> None:
        """Cancel the background task."""
        if self._task is not None:
            self._task.cancel()

    async def _work(self) -> None:
        failed: str | None = "a fault of the gateway"      # an unexpected exception; the task logs it
        try:
            found = await self._fetch()
            renew_s, expires_s = found.times()
            if expires_s <= 0:
                raise CredentialError("it has expired already")
            self.held.keep(found.value, renew_s, expires_s)
            failed = None
        except CredentialError as error:
            failed = str(error)
        finally:
            self._task = None
            if failed is None:
                self._failures = 0
            else:
                self._failed(failed)

    def _failed(self, reason: str) -> None:
        pause = min(LEAST_PAUSE * float(1 << self._failures), MOST_PAUSE)
        self._failures = min(self._failures + 1, 8)
        self._not_before = time.monotonic() + pause
        self._error = reason
        logger.warning("cannot get credentials", extra={"credentials": self.name, "error": reason})
