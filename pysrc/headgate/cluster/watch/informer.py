"""One kind of objects, kept up to date: listed in pages, then watched from the version of the list.

https://kubernetes.io/docs/reference/using-api/api-concepts/#efficient-detection-of-changes
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from typing import Final, Protocol

from headgate.cluster.calls import ApiError
from headgate.cluster.snapshot import Json, ObjectKey
from headgate.cluster.watch.kinds import Kept, WatchedKind, kept
from headgate.cluster.watch.pauses import Pauses
from headgate.cluster.watch.store import Store

logger = logging.getLogger("gw/syncer")

_NOT_FOUND: Final = 404
_GONE: Final = 410
# Objects or events that are taken in one turn of the loop: about a millisecond.
_SLICE: Final = 32


class WatchCalls(Protocol):
    """What an informer asks of a client."""

    def list_pages(
        self, path: str, query: Mapping[str, str] | None = None, metadata: bool = False
    ) -> AsyncIterator[Json]: ...

    def watch(
        self, path: str, version: str, query: Mapping[str, str] | None = None, metadata: bool = False
    ) -> AsyncIterator[Json]: ...


class Informer:
    """`listed` is called after the first list, also of a kind that the server does not have."""

    def __init__(
        self,
        client: WatchCalls,
        watched: WatchedKind,
        store: Store,
        listed: Callable[[], None],
        pauses: Pauses,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._client = client
        self._watched = watched
        self._store = store
        self._listed = listed
        self._pauses = pauses
        self._sleep = sleep
        # Which of the kind's versions is read.
        self._index = 0

    async def run(self) -> None:
        """List and watch until cancelled."""
        version = ""
        while True:
            try:
                if not version:
                    version = await self._list()
                    self._listed()
                heard = False
                async for after in self._watch(version):
                    version, heard = after, True
                    self._pauses.reset()
                if heard:
                    continue  # the server has ended the watch
            except ApiError as error:
                if error.status == _GONE or error.reason in ("Expired", "Gone"):
                    logger.info("%s: too much has changed; listing again", self._watched.plural)
                    version = ""
                elif error.status == _NOT_FOUND:
                    version = ""
                    self._absent()
                else:
                    logger.warning("%s: %s", self._watched.plural, error)
            await self._sleep(self._pauses.next())

    async def _list(self) -> str:
        found: list[Kept] = []
        version = ""
        about = self._watched.api_version(self._index)
        path, metadata = self._watched.path(self._index), self._watched.metadata
        async for page in self._client.list_pages(path, self._watched.query, metadata):
            items = page.get("items") or []
            for start in range(0, len(items), _SLICE):
                found += [
                    kept(self._watched, about, one)
                    for one in items[start : start + _SLICE]
                    if self._store.shows(one["metadata"].get("namespace", ""))
                ]
                await asyncio.sleep(0)
            # That of the first page: what changes while the others are read comes as an event.
            version = version or page["metadata"]["resourceVersion"]
        self._store.replace(self._watched.kind, found)
        logger.debug("%s: %d objects at version %s", self._watched.plural, len(found), version)
        return version

    async def _watch(self, version: str) -> AsyncGenerator[str, None]:
        """Take events, and yield the version that each leaves behind."""
        about = self._watched.api_version(self._index)
        count = 0
        path, query = self._watched.path(self._index), self._watched.query
        async for event in self._client.watch(path, version, query, self._watched.metadata):
            found = event["object"]
            match event["type"]:
                case "ADDED" | "MODIFIED":
                    self._store.apply(self._watched.kind, kept(self._watched, about, found))
                case "DELETED":
                    metadata = found["metadata"]
                    self._store.remove(
                        self._watched.kind, ObjectKey(metadata.get("namespace", ""), metadata["name"])
                    )
            yield found["metadata"]["resourceVersion"]
            count += 1
            if count % _SLICE == 0:
                await asyncio.sleep(0)

    def _absent(self) -> None:
        """The server does not have the kind, in this version at least."""
        self._index = (self._index + 1) % len(self._watched.versions)
        if self._index == 0:
            self._store.replace(self._watched.kind, ())
            self._listed()
