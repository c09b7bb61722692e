"""Warnings about Gateways as Events of the cluster, which `kubectl describe` shows.

https://kubernetes.io/docs/reference/kubernetes-api/cluster-resources/event-v1/. Equal warnings are one Event, whose
name follows from what it says: it is counted up, also by the next leader, and the API server deletes it an hour after
its last change.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from headgate.cluster.calls import ApiCalls, ApiError
from headgate.cluster.deploy.naming import short_name
from headgate.cluster.snapshot import Json, ObjectKey
from headgate.cluster.translate.gateway import CONTROLLER

logger = logging.getLogger("gateway-controller")

# Characters; the API server takes 1,024 bytes, and says no more of it.
MAX_MESSAGE: Final = 1000
# Seconds after which a warning that comes again is written again.
REPEAT_S: Final = 60.0
# Different warnings of one Gateway that are written at once, and the seconds until it may have one more.
BURST: Final = 10
REFILL_S: Final = 30.0
# Warnings that are known, and Gateways whose allowance is: the oldest are forgotten.
MAX_KNOWN: Final = 1000
# Warnings that wait to be written. Those that come then are dropped, and counted.
MAX_WAITING: Final = 100
# Seconds between two tries of one that could not be written, and how many there are.
RETRY_S: Final = 2.0
TRIES: Final = 3
_NOT_FOUND: Final = 404


@dataclass(slots=True)
class _Warning:
    """`count`: how often it came since it was written last; `written`: when that was, by the monotonic clock."""

    path: str
    document: Json
    count: int = 0
    written: float | None = None
    waits: bool = False


@dataclass(slots=True)
class _Allowance:
    left: float
    since: float


class GatewayWarnings:
    """`find` returns the object of a Gateway, `identity` names this replica. `dropped`: warnings without an Event."""

    def __init__(
        self,
        calls: ApiCalls,
        identity: str,
        find: Callable[[ObjectKey], Json | None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.dropped = 0
        self._calls = calls
        self._identity = identity
        self._find = find
        self._clock = clock
        self._known: dict[tuple[str, str, str], _Warning] = {}
        self._allowances: dict[ObjectKey, _Allowance] = {}
        self._waiting: asyncio.Queue[_Warning] = asyncio.Queue(MAX_WAITING)

    def warn(self, key: ObjectKey, reason: str, message: str) -> None:
        """Have a warning written. `reason`: a word in CamelCase."""
        gateway = self._find(key)
        if gateway is None:
            return
        message = message[:MAX_MESSAGE]
        about = (gateway["metadata"].get("uid", ""), reason, message)
        found = self._known.pop(about, None)
        if found is None:
            if not self._allowed(key):
                self.dropped += 1
                return
            found = self._new(gateway, reason, message)
            while len(self._known) >= MAX_KNOWN:
                del self._known[next(iter(self._known))]
        self._known[about] = found
        found.count += 1
        now = self._clock()
        if found.waits or (found.written is not None and now - found.written < REPEAT_S):
            return
        try:
            self._waiting.put_nowait(found)
            found.waits = True
        except asyncio.QueueFull:
            self.dropped += 1

    async def run(self) -> None:
        """Write warnings until cancelled."""
        while True:
            found = await self._waiting.get()
            found.waits = False
            for turn in range(TRIES):
                try:
                    await self._write(found)
                    break
                except ApiError as error:
                    logger.warning("Event about %s: %s", found.document["involvedObject"]["name"], error)
                    if turn < TRIES - 1:
                        await asyncio.sleep(RETRY_S)
            else:
                self.dropped += 1

    async def _write(self, found: _Warning) -> None:
        """Raises ApiError."""
        count, now = found.count, datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        if found.written is None:
            document = {**found.document, "firstTimestamp": now, "lastTimestamp": now, "count": count}
            try:
                await self._calls.create(found.path.rpartition("/")[0], document)
            except ApiError as error:
                if error.reason != "AlreadyExists":
                    raise
                await self._counted_up(found, count, now)
        else:
            try:
                await self._counted_up(found, count, now)
            except ApiError as error:
                if error.status != _NOT_FOUND:
                    raise
                found.written = None  # its hour is over
                await self._write(found)
                return
        found.written = self._clock()
        found.count -= count

    async def _counted_up(self, found: _Warning, count: int, now: str) -> None:
        before = (await self._calls.get(found.path)).get("count") or 0
        await self._calls.merge(found.path, {"count": before + count, "lastTimestamp": now})

    def _allowed(self, key: ObjectKey) -> bool:
        """Take one of what a Gateway may have written; tell whether there was any."""
        now = self._clock()
        found = self._allowances.pop(key, None) or _Allowance(float(BURST), now)
        found.left, found.since = min(float(BURST), found.left + (now - found.since) / REFILL_S), now
        while len(self._allowances) >= MAX_KNOWN:
            del self._allowances[next(iter(self._allowances))]
        self._allowances[key] = found
        if found.left < 1:
            return False
        found.left -= 1
        return True

    def _new(self, gateway: Json, reason: str, message: str) -> _Warning:
        about = gateway["metadata"]
        namespace, uid = about["namespace"], about.get("uid", "")
        digest = hashlib.sha256("\0".join((uid, reason, message)).encode()).hexdigest()[:16]
        name = f"{short_name(about['name'])}.{digest}"
        document = {
            "apiVersion": "v1", "kind": "Event", "metadata": {"name": name, "namespace": namespace},
            "involvedObject": {
                "apiVersion": gateway["apiVersion"], "kind": gateway["kind"], "namespace": namespace,
                "name": about["name"], "uid": uid,
            },
            "type": "Warning", "reason": reason, "message": message, "source": {"component": CONTROLLER},
            "reportingComponent": CONTROLLER, "reportingInstance": self._identity,
        }  # fmt: skip
        return _Warning(f"/api/v1/namespaces/{namespace}/events/{name}", document)
