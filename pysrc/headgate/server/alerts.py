"""Tells of limits of virtual keys that have come to their warning: a metric, a line of the log, and a webhook.

The supervisor looks at the sums once a second, so no request waits for it. A limit warns once in its window: gateways
at one database claim a warning there before they tell it.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import heapq
import hmac
import json
import logging
import time
import uuid
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from headgate.ir.gateway import Gateway
from headgate.ir.virtual_keys import AlertHook, VirtualKeys, warns_from
from headgate.net.tasks import spawn
from headgate.net.webhook import WebhookFailure, post
from headgate.telemetry.metrics import series_key
from headgate.telemetry.requests.stores import LogFailure
from headgate.telemetry.spend.rows import Warned
from headgate_engine.limit.account import UsageAccount, UsageLimits
from headgate_engine.shared.counters import Counter
from headgate_engine.shared.segment import Segment

logger = logging.getLogger("headgate.alerts")

WARNINGS: Final = "gw_key_warnings_total"
ALERTS: Final = "gw_key_alerts_total"
LOOK_SECONDS: Final = 1.0
# Limits that are looked at between two turns of the loop.
STEP: Final = 500
# The same of limits that are taken up, in at most 2 ms.
FRESH_STEP: Final = 200
PERCENT: Final = 100
PICOS: Final = 10**12
# Alerts that wait for the receiver; further ones are dropped.
MOST_WAITING: Final = 1000
# Alerts that are under way to the receiver at once: one that hangs holds the others for `timeout` only when all do.
AT_ONCE: Final = 8
# Attempts at one alert, and the pauses between them, in seconds: about five minutes in all.
ATTEMPTS: Final = 10
FIRST_PAUSE_S, LAST_PAUSE_S = 1.0, 60.0
# Answers that may be another one later.
LATER: Final = frozenset((408, 425, 429))
SERVER_ERROR: Final = 500
# What of an alert is in the log, beside whose limit it is.
LOGGED: Final = ("scope", "unit", "window", "limit", "used", "ends")
TIME_FORM: Final = "%Y-%m-%dT%H:%M:%SZ"


class Crossing(NamedTuple):
    """A warning with what was used, and the limit."""

    warned: Warned
    used: int
    most: int


class PendingAlert(NamedTuple):
    """An alert that waits. `due`: time of the loop from which it is sent, `number`: its id, `attempt`: the next one."""

    due: float
    number: str
    body: bytes
    attempt: int = 1


def document_of(crossing: Crossing, now: float, number: str) -> dict[str, Any]:
    """Return what the receiver gets. Amounts of dollars are decimal texts, which are exact."""
    warned = crossing.warned

    def amount(value: int) -> int | str:
        return f"{value // PICOS}.{value % PICOS:012d}" if warned.unit == "dollars" else value

    def moment(at_s: float) -> str:
        return datetime.fromtimestamp(at_s, UTC).strftime(TIME_FORM)

    return {
        "id": number, "type": "budget.warning", "at": moment(now), "scope": warned.scope, "name": warned.name,
        "unit": warned.unit, "window": warned.window, "limit": amount(crossing.most), "used": amount(crossing.used),
        "percent": crossing.used * PERCENT // crossing.most if crossing.most else PERCENT,
        "starts": moment(warned.start_s), "ends": moment(warned.end_s),
    }  # fmt: skip


def signature(secret: bytes, at_s: int, body: bytes) -> str:
    """Return the value of the signature's field: the time, and the HMAC of it and the body (RFC 2104)."""
    digest = hmac.new(secret, b"%d." % at_s + body, hashlib.sha256).hexdigest()
    return f"t={at_s},v1={digest}"


class AlertSender:
    """Sends alerts to a receiver, AT_ONCE at a time, and tries again while it fails.

    New alerts do not wait for those that are to be sent again: each of these has a time of its own.
    """

    def __init__(self, hook: AlertHook, segment: Segment) -> None:
        self.hook = hook
        self._fresh: deque[PendingAlert] = deque()
        # Those to be sent again, as a heap by their time.
        self._later: list[PendingAlert] = []
        self._came = asyncio.Event()
        self._counts = {
            outcome: Counter(segment, series_key(ALERTS, {"outcome": outcome}))
            for outcome in ("delivered", "failed", "dropped")
        }
        self._tasks = [spawn("alerts", self._run()) for _ in range(AT_ONCE)]

    def put(self, document: dict[str, Any]) -> None:
        """Send an alert, later; it is dropped if too many wait."""
        if len(self._fresh) + len(self._later) >= MOST_WAITING:
            self._counts["dropped"].add()
            logger.warning("an alert is dropped, because too many are waiting", extra={"receiver": self.hook.place})
            return
        body = json.dumps(document, separators=(",", ":")).encode()
        self._fresh.append(PendingAlert(0.0, document["id"], body))
        self._came.set()

    async def _run(self) -> None:
        while True:
            pending = await self._next()
            try:
                outcome = await self._deliver(pending)
            except Exception:  # task boundary: the next alert gets its chance
                logger.exception("an alert cannot be sent")
                outcome = "failed"
            if outcome:
                self._counts[outcome].add()

    async def _next(self) -> PendingAlert:
        """Return the alert whose turn it is: new ones in their order, then those whose time has come."""
        loop = asyncio.get_running_loop()
        while True:
            if self._fresh:
                return self._fresh.popleft()
            left = self._later[0].due - loop.time() if self._later else None
            if left is not None and left <= 0:
                return heapq.heappop(self._later)
            self._came.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(left):
                    await self._came.wait()

    async def _deliver(self, pending: PendingAlert) -> str:
        """Send an alert once. Return its outcome, empty for one that is to be sent again."""
        attempt = pending.attempt
        again, reason = await self._attempt(pending.number, pending.body, attempt)
        if not reason:
            return "delivered"
        told = {"receiver": self.hook.place, "alert": pending.number, "attempt": attempt, "error": reason}
        if not again or attempt == ATTEMPTS:
            logger.error("an alert could not be delivered", extra=told)
            return "failed"
        logger.warning("an alert could not be sent, and is sent again later", extra=told)
        pause = min(FIRST_PAUSE_S * 2 ** (attempt - 1), LAST_PAUSE_S)
        due = asyncio.get_running_loop().time() + pause
        heapq.heappush(self._later, pending._replace(due=due, attempt=attempt + 1))
        # Others that wait know nothing of this time, and the one that does may take a new alert first.
        self._came.set()
        return ""

    async def _attempt(self, number: str, body: bytes, attempt: int) -> tuple[bool, str]:
        """Send it once. Return whether it may be sent again, and why it was not taken: empty, it was."""
        headers = [
            ("content-type", "application/json"), ("user-agent", "headgate"), ("x-headgate-alert", number),
            ("x-headgate-attempt", str(attempt)),
        ]  # fmt: skip
        if self.hook.secret is not None:
            signed = signature(self.hook.secret.reveal().encode(), int(time.time()), body)
            headers.append(("x-headgate-signature", signed))
        try:
            status = await post(self.hook.url.reveal(), headers, body, self.hook.timeout_ms / 1000)
        except WebhookFailure as error:
            return True, str(error)
        if 200 <= status < 300:
            return False, ""
        return status in LATER or status >= SERVER_ERROR, f"status {status}"

    def stop(self) -> None:
        """End; what waits is not sent any more."""
        for task in self._tasks:
            task.cancel()


class AlertWatch:
    """Looks for limits that have reached their warning. claim(): returns the warnings that nobody has sent."""

    def __init__(self, segment: Segment, claim: Callable[[list[Warned]], Awaitable[list[Warned]]]) -> None:
        self._segment = segment
        self._claim = claim
        self._limits: list[UsageLimits] = []
        self._told: set[Warned] = set()
        self._sender: AlertSender | None = None
        self._task: asyncio.Future[None] | None = None

    async def prepare(self, gateway: Gateway) -> None:
        """Look at the limits of a configuration."""
        keys = gateway.virtual_keys
        limits: list[UsageLimits] = []
        for one in () if keys is None else self._watched(keys):
            limits.append(one)
            if not len(limits) % FRESH_STEP:
                await asyncio.sleep(0)
        self._limits = limits
        hook = None if keys is None or not self._limits else keys.alerts
        if self._sender is not None and self._sender.hook != hook:
            self._sender.stop()
            self._sender = None
        if self._sender is None and hook is not None:
            self._sender = AlertSender(hook, self._segment)
        if self._task is None and self._limits:
            self._task = spawn("alert watch", self._run())

    def _watched(self, keys: VirtualKeys) -> Iterable[UsageLimits]:
        owners = [("key", one.name, one.limits) for one in keys.keys]
        owners += [("team", one.name, one.limits) for one in keys.teams]
        for scope, name, limits in owners:
            warning = [
                (one.window, one.unit, one.most, warns_from(one)) for one in limits if one.warn_percent is not None
            ]
            if warning:
                yield UsageLimits(UsageAccount(self._segment, scope, name), warning)

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            try:
                await self.look(time.time())
            except LogFailure as error:
                # Told by the ledger as well; the warning is found again in the next second.
                logger.debug("warnings cannot be claimed", extra={"error": str(error)})
            except Exception:  # task boundary: the next second gets its chance
                logger.exception("limits cannot be checked")

    async def look(self, now: float) -> None:
        """Tell of the limits that have come to their warning. Raises LogFailure."""
        found: dict[Warned, Crossing] = {}
        for number, limits in enumerate(list(self._limits)):
            for window, unit, start, end, used, most in limits.crossed(int(now)) or ():
                warned = Warned(limits.account.scope, limits.account.name, window, unit, start, end)
                if warned not in self._told:
                    found[warned] = Crossing(warned, used, most)
            if not number % STEP:
                await asyncio.sleep(0)
        if not found:
            return
        fresh = await self._claim(list(found))
        self._told = {one for one in self._told if one.end_s > now} | found.keys()
        for warned in fresh:
            self._tell(found[warned], now)

    def _tell(self, crossing: Crossing, now: float) -> None:
        warned = crossing.warned
        labels = {"scope": warned.scope, "unit": warned.unit, "window": warned.window}
        Counter(self._segment, series_key(WARNINGS, labels)).add()
        document = document_of(crossing, now, str(uuid.uuid4()))
        told = {"owner": warned.name, **{name: document[name] for name in LOGGED}}
        logger.warning("a limit has reached its warning threshold", extra=told)
        if self._sender is not None:
            self._sender.put(document)

    def stop(self) -> None:
        """End."""
        if self._task is not None:
            self._task.cancel()
            self._task = None
        if self._sender is not None:
            self._sender.stop()
            self._sender = None
