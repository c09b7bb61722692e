"""All informers. Those of kinds that CRDs define run only while there is the CRD."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final

from headgate.cluster.calls import ApiError
from headgate.cluster.snapshot import NAMESPACE, GroupKind
from headgate.cluster.watch.informer import Informer, WatchCalls
from headgate.cluster.watch.kinds import WatchedKind
from headgate.cluster.watch.pauses import Pauses
from headgate.cluster.watch.store import Store
from headgate.net.tasks import spawn

logger = logging.getLogger("gw/syncer")

# Seconds that are waited for more namespaces to become visible: each time everything is listed.
SETTLE_S: Final = 0.5
DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


class Informers:
    """`synced` is set once all kinds that the cluster has are listed. `pauses` makes the pauses of one informer."""

    def __init__(
        self,
        client: WatchCalls,
        kinds: Iterable[WatchedKind],
        store: Store,
        pauses: Callable[[], Pauses] = Pauses,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.synced = asyncio.Event()
        self._client = client
        self._kinds = tuple(kinds)
        self._store = store
        self._pauses = pauses
        self._sleep = sleep
        self._running: dict[GroupKind, asyncio.Task[Any]] = {}
        self._pending: set[GroupKind] = {one.kind for one in self._kinds}
        self._optional = {one.definition: one for one in self._kinds if one.optional}
        self._others: list[asyncio.Task[Any]] = []
        self._appeared_namespaces = asyncio.Event()
        store.appeared = self._appeared_namespaces.set

    def start(self) -> None:
        """Begin to read. Each kind has a task of its own. Where not all namespaces are looked at, they come first."""
        if not self._store.selective:
            self._start()
            return
        for one in self._kinds:
            if one.kind == NAMESPACE:
                self._begin(one)

    def _start(self) -> None:
        for one in self._kinds:
            if not one.optional and one.kind not in self._running:
                self._begin(one)
        self._others = [spawn("watch customresourcedefinitions", self._follow_definitions())]
        if self._store.selective:
            self._appeared_namespaces.clear()
            self._others.append(spawn("list what is in new namespaces", self._follow_namespaces()))

    async def _follow_namespaces(self) -> None:
        """List everything when a namespace becomes visible: of what is in it nothing has been kept."""
        while True:
            await self._appeared_namespaces.wait()
            await self._sleep(SETTLE_S)
            self._appeared_namespaces.clear()
            logger.info("other namespaces are visible: listing again")
            for one in self._kinds:
                if one.namespaced and (task := self._running.get(one.kind)) is not None:
                    task.cancel()
                    self._begin(one)

    async def stop(self) -> None:
        tasks = [*self._running.values(), *self._others]
        for one in tasks:
            one.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._running.clear()

    def _begin(self, watched: WatchedKind) -> None:
        def listed() -> None:
            self._done(watched.kind)

        informer = Informer(self._client, watched, self._store, listed, self._pauses(), self._sleep)
        self._running[watched.kind] = spawn(f"watch {watched.plural}", informer.run())

    def _done(self, kind: GroupKind) -> None:
        if kind == NAMESPACE and self._store.selective and not self._others:
            self._start()
        self._pending.discard(kind)
        if not self._pending:
            self.synced.set()

    async def _follow_definitions(self) -> None:
        """Know which CRDs there are, by their names alone: their schemas take megabytes."""
        version = ""
        pauses = self._pauses()
        while True:
            try:
                if not version:
                    version = await self._list_definitions()
                async for event in self._client.watch(DEFINITIONS, version, None, True):
                    pauses.reset()
                    metadata = event["object"]["metadata"]
                    version = metadata["resourceVersion"]
                    if event["type"] == "DELETED":
                        self._vanished(metadata["name"])
                    elif event["type"] != "BOOKMARK":
                        self._appeared(metadata["name"])
                continue
            except ApiError as error:
                if error.status == 410 or error.reason in ("Expired", "Gone"):
                    version = ""
                else:
                    logger.warning("customresourcedefinitions: %s", error)
            await self._sleep(pauses.next())

    async def _list_definitions(self) -> str:
        version = ""
        names: set[str] = set()
        async for page in self._client.list_pages(DEFINITIONS, None, True):
            names.update(one["metadata"]["name"] for one in page.get("items") or ())
            version = version or page["metadata"]["resourceVersion"]
        for name in self._optional:
            if name in names:
                self._appeared(name)
            else:
                self._vanished(name)
        return version

    def _appeared(self, name: str) -> None:
        watched = self._optional.get(name)
        if watched is not None and watched.kind not in self._running:
            logger.info("%s: watched", watched.plural)
            self._begin(watched)

    def _vanished(self, name: str) -> None:
        watched = self._optional.get(name)
        if watched is None:
            return
        task = self._running.pop(watched.kind, None)
        if task is not None:
            logger.info("%s: no longer watched, its definition is gone", watched.plural)
            task.cancel()
            self._store.replace(watched.kind, ())
        self._done(watched.kind)
