"""Writing statuses: the newest value of each object, one write at a time, and none without a difference.

The first statuses of a cluster, or a change of all objects, may take a minute to write. Few that have changed do not
wait for these.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final, Protocol

from headgate.cluster.calls import ApiCalls, ApiError
from headgate.cluster.snapshot import GroupKind, Json, ObjectKey, Snapshot
from headgate.cluster.status.merge import emptied, merged
from headgate.cluster.status.translated import LastTranslation
from headgate.cluster.translate.conditions import ObjectStatus
from headgate.cluster.watch.pauses import Pauses
from headgate.cluster.watch.store import Stored
from headgate.net.tasks import spawn

logger = logging.getLogger("gateway-controller")

# Writes at a time: an API server does some 600 in a second.
PARALLEL: Final = 32
# Those of them that look first at what waits longest, so that it is written however much changes.
PATIENT: Final = 4
# Statuses that change at once and are still written before those that wait.
MOST_URGENT: Final = 64
TRIES: Final = 5
CONFLICT_SECONDS: Final = 0.1
_NOT_FOUND: Final = 404
_CONFLICT: Final = 409

About = tuple[GroupKind, ObjectKey]


class StoredStatuses(Protocol):
    """What is known of the statuses that objects have."""

    def stored(self, kind: GroupKind, key: ObjectKey) -> Stored | None: ...

    def all_stored(self) -> Iterable[tuple[GroupKind, ObjectKey, Stored]]: ...


class Translated(Protocol):
    """A LastTranslation."""

    def uid(self, kind: GroupKind, key: ObjectKey) -> str: ...

    def decides(self, kind: GroupKind, key: ObjectKey, reference: Json) -> bool: ...


def now_text() -> str:
    """Return the time as the API writes it: RFC 3339 in UTC, whole seconds."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class StatusWriter:
    """Writes nothing until `lead`. `path`: of an object, None for a kind without a status. `wrote`: told of
    each try, with the result `success`, `conflict` or `error`."""

    def __init__(
        self,
        calls: ApiCalls,
        known: StoredStatuses,
        path: Callable[[GroupKind, ObjectKey], str | None],
        wrote: Callable[[GroupKind, str], None] = lambda _kind, _result: None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.now = now_text
        self._calls = calls
        self._known = known
        self._path = path
        self._translated: Translated = LastTranslation(Snapshot({}), ())
        self._wrote = wrote
        self._sleep = sleep
        self._wanted: dict[About, ObjectStatus] = {}
        # What waits to be written, in the order in which it came; the values say nothing.
        self._urgent: dict[About, None] = {}
        self._others: dict[About, None] = {}
        self._waiting = asyncio.Semaphore(0)
        self._busy: set[About] = set()
        # Objects that are wanted otherwise, or have changed, while they are written, and those whose write failed; and
        # whether they are urgent then.
        self._again: dict[About, bool] = {}
        # What was written and has not been read yet.
        self._written: dict[About, Stored] = {}
        # Objects that have taken the place of those that were judged: the next translation has seen them.
        self._replaced: set[About] = set()
        self._workers: list[asyncio.Task[Any]] = []
        self._first = True

    def want(self, changed: Iterable[ObjectStatus], translated: Translated) -> None:
        """Take statuses that have changed (WantedStatuses). What was said of an object that was `translated` is never
        written to another of its name."""
        self._translated = translated
        found = list(changed)
        for one in found:
            about = (one.kind, one.key)
            if one.content:
                self._wanted[about] = one
                self._enqueue(about, urgent=len(found) <= MOST_URGENT)
            else:
                self._wanted.pop(about, None)
        # What is said of them may be the same as of those before them.
        replaced, self._replaced = self._replaced, set()
        for about in replaced & self._wanted.keys():
            self._enqueue(about)
        if self._first:
            self._first = False
            self._leftovers()

    def look(self, kind: GroupKind, key: ObjectKey) -> None:
        """An object has been read whose status or version has changed: somebody may have overwritten what is wanted."""
        if (kind, key) in self._wanted:
            self._enqueue((kind, key))
        if self._known.stored(kind, key) is None:
            self._written.pop((kind, key), None)

    def lead(self) -> None:
        """Begin to write."""
        if self._workers:
            return
        self._workers = [
            spawn(f"status writer {number}", self._work(patient=number < PATIENT)) for number in range(PARALLEL)
        ]
        for about in self._wanted:
            self._enqueue(about)

    async def follow(self) -> None:
        """Write nothing any more. Writes that have begun are broken off: the server does them or does not."""
        workers, self._workers = self._workers, []
        for one in workers:
            one.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
        self._urgent, self._others, self._waiting = {}, {}, asyncio.Semaphore(0)
        self._busy.clear()
        self._again.clear()
        self._replaced.clear()

    def pending(self) -> int:
        """Return how many objects wait to be looked at, or are being written."""
        return len(self._urgent) + len(self._others) + len(self._busy)

    def _enqueue(self, about: About, urgent: bool = False) -> None:
        if not self._workers or about in self._urgent:
            return
        if about not in self._others:
            (self._urgent if urgent else self._others)[about] = None
            self._waiting.release()
        elif urgent:
            del self._others[about]
            self._urgent[about] = None

    def _next(self, patient: bool) -> About:
        """Take an object out of those that wait, of which there is one."""
        first, second = (self._others, self._urgent) if patient else (self._urgent, self._others)
        found = first or second
        about = next(iter(found))
        del found[about]
        return about

    def _leftovers(self) -> None:
        """Take away what an earlier run of this controller said of objects that nothing is said of now."""
        for kind, key, one in self._known.all_stored():
            if (kind, key) not in self._wanted and (
                content := emptied(one.status, partial(self._translated.decides, kind, key))
            ) is not None:
                self._wanted[kind, key] = ObjectStatus(kind, key, content)
                self._enqueue((kind, key))

    async def _work(self, patient: bool) -> None:
        pauses = Pauses()
        while True:
            await self._waiting.acquire()
            about = self._next(patient)
            if about in self._busy:
                self._again[about] = True
                continue
            self._busy.add(about)
            try:
                await self._write(about)
                pauses.reset()
            except ApiError as error:
                self._wrote(about[0], "error")
                logger.warning("status of %s %s: %s", about[0].kind, about[1], error)
                self._again.setdefault(about, False)
                await self._sleep(pauses.next())
            finally:
                self._busy.discard(about)
            if about in self._again:
                self._enqueue(about, self._again.pop(about))
            await asyncio.sleep(0)  # the queue may be long, and nothing to write

    async def _write(self, about: About) -> None:
        """Write what is wanted. Raises ApiError."""
        path = self._path(*about)
        stored = self._newest(about)
        for turn in range(TRIES):
            wanted = self._wanted.get(about)
            if wanted is None or stored is None or path is None:
                if wanted is not None and stored is None and not any(wanted.content.values()):
                    # Nothing is to be said of it, and it is gone.
                    del self._wanted[about]
                return
            if stored.uid != self._translated.uid(*about):
                self._replaced.add(about)
                return
            fields = merged(stored.status, wanted.content, self.now(), partial(self._translated.decides, *about))
            if not fields:
                return
            document = {"metadata": {"resourceVersion": stored.version}, "status": fields}
            try:
                answer = await self._calls.merge(f"{path}/status", document)
            except ApiError as error:
                if error.status == _NOT_FOUND:
                    return
                if error.status != _CONFLICT or turn == TRIES - 1:
                    raise
                self._wrote(about[0], "conflict")
                await self._sleep(CONFLICT_SECONDS)
                stored = await self._asked(path)
                continue
            self._wrote(about[0], "success")
            self._written[about] = _stored(answer)
            return

    async def _asked(self, path: str) -> Stored | None:
        try:
            found = await self._calls.get(path)
        except ApiError as error:
            if error.status == _NOT_FOUND:
                return None
            raise
        return _stored(found)

    def _newest(self, about: About) -> Stored | None:
        """Return what is known of an object: what was read of it, or what was written since."""
        read = self._known.stored(*about)
        written = self._written.get(about)
        if read is None or written is None:
            self._written.pop(about, None)
            return read
        if not _is_later(written.version, read.version):
            del self._written[about]
            return read
        return written


def _stored(found: Json) -> Stored:
    about = found["metadata"]
    return Stored(about["resourceVersion"], found.get("status") or {}, about.get("uid", ""))


def _is_later(version: str, other: str) -> bool:
    """Versions of one object are compared as numbers, as the API allows since Kubernetes 1.35."""
    return version.isdigit() and other.isdigit() and int(version) > int(other)
