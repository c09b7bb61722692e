"""Credentials that run out: fetched once for all requests, again before they end, and beside the requests.

A fetch that fails leaves what there is until that runs out; from then on requests that need it are refused, and there
is another try after a pause that grows. Nothing else is held up.
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

# How long a request waits for a credential.
WAIT_SECONDS: Final = 5.0
LEAST_PAUSE: Final = 1.0
MOST_PAUSE: Final = 60.0
# What is left of a life when the next one is fetched, and what is left when it is used no more, in seconds.
RENEWED_BEFORE: Final = 300.0
UNUSED_BEFORE: Final = 10.0


class CredentialError(Exception):
    """There is no credential. The text says why, and holds no secret: it goes into logs and to clients."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """A credential, for how many seconds it is good, and after how many another one is looked for (None: shortly before
    its end).
    """

    value: bytes | AwsKeys
    lives_s: float
    renew_s: float | None = None

    def times(self) -> tuple[float, float]:
        """Return after how many seconds it is fetched anew, and after how many it is used no more."""
        # Short lives keep a quarter and a tenth of themselves.
        end = self.lives_s - min(UNUSED_BEFORE, self.lives_s / 10)
        renew = self.lives_s - min(RENEWED_BEFORE, self.lives_s / 4) if self.renew_s is None else self.renew_s
        return min(renew, end), end


Fetch = Callable[[], Awaitable[Fetched]]


def silence(*libraries: str) -> None:
    """Stop the logs of libraries that find credentials: they tell requests and answers, tokens among them."""
    for name in libraries:
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)


class CredentialRefresher:
    """One credential of a worker. `name` is for logs."""

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
        """Begin to fetch, unless that is under way or failed a moment ago."""
        if self._task is None and time.monotonic() >= self._not_before:
            self._task = self._spawn(f"credentials {self.name}", self._work())

    async def wait(self) -> None:
        """Return when the credential can be used; CredentialError when there is none in time."""
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
        """End what runs in the background."""
        if self._task is not None:
            self._task.cancel()

    async def _work(self) -> None:
        failed: str | None = "a fault of the gateway"      # which the log of tasks tells
        try:
            found = await self._fetch()
            renew_s, expires_s = found.times()
            if expires_s <= 0:
                raise CredentialError("it has run out already")
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
