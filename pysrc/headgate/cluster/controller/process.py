"""The controller: what a cluster says becomes configurations of gateways and statuses of objects."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

from headgate.cluster.calls import ApiCalls, ApiError
from headgate.cluster.controller.classes import apply_classes
from headgate.cluster.controller.components import ComponentLevels
from headgate.cluster.controller.debounce import Debounce
from headgate.cluster.controller.events import GatewayWarnings
from headgate.cluster.controller.known import RETURN_S, with_known_addresses, with_known_answers
from headgate.cluster.controller.metrics import ControllerMetrics, Reconciliation
from headgate.cluster.controller.parts import Delivers, MakeParts, delivery_families, no_parts
from headgate.cluster.controller.servers import ControllerServers, ControllerView
from headgate.cluster.controller.settings import ControllerSettings
from headgate.cluster.leader import LeaderElection
from headgate.cluster.snapshot import GATEWAY, GroupKind, Json, ObjectKey, Snapshot, generation
from headgate.cluster.status.translated import LastTranslation
from headgate.cluster.status.wanted import WantedStatuses
from headgate.cluster.status.writer import StatusWriter
from headgate.cluster.translate.deployed import Placed
from headgate.cluster.translate.everything import World
from headgate.cluster.translate.gateway import Acknowledged
from headgate.cluster.translate.memory import TranslationMemory
from headgate.cluster.watch.informer import WatchCalls
from headgate.cluster.watch.informers import Informers
from headgate.cluster.watch.kinds import KINDS, OF_DEPLOYER, OF_INFERENCE
from headgate.cluster.watch.pauses import Pauses
from headgate.cluster.watch.store import Store
from headgate.net.tasks import spawn

logger = logging.getLogger("gateway-controller")
translator = logging.getLogger("gw/translator")

_BY_KIND = {one.kind: one for one in (*KINDS, *OF_INFERENCE)}


class ControllerClient(ApiCalls, WatchCalls, Protocol):
    """What the controller asks of a client."""


class Controller:
    """`parts` makes what sends and deploys."""

    def __init__(
        self,
        client: ControllerClient,
        settings: ControllerSettings,
        levels: ComponentLevels,
        parts: MakeParts = no_parts,
    ) -> None:
        self.metrics = ControllerMetrics()
        self._settings = settings
        self._client = client
        self._changes = Debounce()
        self._parts = parts(client, self._changes.touch)
        deploys = self._parts.deployer is not None
        kinds = (*KINDS, *(OF_INFERENCE if settings.inference else ()), *(OF_DEPLOYER if deploys else ()))
        self._store = Store(kinds, self._changes.touch, self._judged, settings.selectors)
        self._informers = Informers(client, kinds, self._store)
        self._warnings = GatewayWarnings(client, settings.identity, self._gateway)
        for one in (self._parts.service, self._parts.deployer):
            if one is not None:
                one.warned = self._warnings.warn
        self._writer = StatusWriter(client, self._store, self._path, self._wrote)
        lease = (settings.namespace, settings.lease)
        self._election = LeaderElection(client, lease, settings.identity, self._led, self._lost)
        view = ControllerView(self.metrics, levels, lambda: self._world is not None, self._shown)
        self._servers = ControllerServers(view, settings)
        self._memory = TranslationMemory(settings.global_policies)
        self._statuses = WantedStatuses()
        # Translations run beside the loop, which serves streams: the first of many routes takes a second.
        self._thread = ThreadPoolExecutor(1, "translation")
        self._world: World | None = None
        self._leads = False
        # Data planes may not have come back yet to the replica that leads.
        self._returning = True
        self._return: asyncio.TimerHandle | None = None
        self._leading: list[asyncio.Task[Any]] = []
        self.metrics.add("controller_objects", "gauge", "Objects that are known, by kind.", self._counts)
        self.metrics.add(
            "controller_pending_statuses", "gauge", "Objects whose status waits to be looked at or written.",
            lambda: {(): self._writer.pending()},
        )  # fmt: skip
        self.metrics.add("controller_leader", "gauge", "1 while this replica leads.", self._leader)
        self.metrics.add(
            "controller_dropped_events_total", "counter", "Warnings about Gateways that became no Events.",
            lambda: {(): self._warnings.dropped},
        )  # fmt: skip
        if self._parts.service is not None:
            delivery_families(self.metrics, self._parts.service)

    async def run(self) -> None:
        """Run until cancelled. Raises OSError if a port cannot be opened."""
        await self._servers.start()
        tasks: list[asyncio.Task[Any]] = []
        try:
            self._informers.start()
            await self._informers.synced.wait()
            logger.info("all kinds are listed")
            await self._turn()
            # What is known now lives on: the collector need not look through it again and again.
            gc.collect()
            gc.freeze()
            gc.enable()
            if self._parts.service is not None:
                await self._serve(self._parts.service)
            if self._settings.election:
                tasks.append(spawn("leader election", self._election.run()))
            else:
                self._led()
            while True:
                await self._changes.wait()
                await self._turn()
        finally:
            await self._end(tasks)

    async def _serve(self, service: Delivers) -> None:
        """Open the port for data planes. Its certificate is kept in the cluster, which may not answer now."""
        pauses = Pauses()
        while True:
            try:
                await service.start()
            except ApiError as error:
                logger.warning("data planes are not served yet: %s", error)
                await asyncio.sleep(pauses.next())
            else:
                return

    async def _end(self, tasks: list[asyncio.Task[Any]]) -> None:
        for one in tasks:
            one.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._election.release()
        await self._lost()
        if self._parts.service is not None:
            await self._parts.service.stop()
        await self._informers.stop()
        await self._servers.close()
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def _turn(self) -> None:
        """Translate what is known, hand configurations on, and then statuses."""
        parts, led = self._parts, self._leads
        snapshot = self._store.snapshot()
        said, there = self._known(snapshot)
        began = self.metrics.began("translator")
        result = "error"
        loop = asyncio.get_running_loop()
        try:
            world, ready = await loop.run_in_executor(self._thread, self._translated, snapshot, said, there)
            result = "success"
        except Exception:  # noqa: BLE001 (what was in force stays so, and the next change is another chance)
            translator.exception("translation failed")
            return
        finally:
            self.metrics.ended(Reconciliation("translator"), result, began)
        self._world = world
        translator.debug(
            "translated", extra={"gateways": len(world.gateways), "computed": self._memory.computed}
        )
        if parts.states is not None:
            known: Mapping[ObjectKey, Any] = snapshot.kinds.get(GATEWAY, {})
            parts.states.update(world.gateways, {key: generation(known[key]) for key in world.gateways}, ready)
        # Gateways have it before anybody looks through the statuses, which are as many as there are objects.
        changed = await loop.run_in_executor(self._thread, self._statuses.changed, world.groups)
        self._writer.want(changed, LastTranslation(snapshot, world.gateways))
        if led and self._leads:
            # Not earlier: what this replica thought of statuses before it led was made of older ones.
            self._writer.lead()
            if parts.deployer is not None:
                parts.deployer.want(snapshot)

    def _known(
        self, snapshot: Snapshot
    ) -> tuple[Mapping[ObjectKey, Acknowledged], Mapping[ObjectKey, Placed] | None]:
        """Return what data planes have said, and what has been deployed."""
        parts = self._parts
        gateways = snapshot.kinds.get(GATEWAY, {})

        def stored(key: ObjectKey) -> Json:
            found = self._store.stored(GATEWAY, key)
            return {} if found is None else found.status

        said: Mapping[ObjectKey, Acknowledged] = parts.states.acknowledged() if parts.states is not None else {}
        if parts.states is not None and self._returning:
            said = with_known_answers(said, gateways, stored)
        if parts.deployer is None:
            return said, None
        return said, with_known_addresses(parts.deployer.results(), gateways, stored)

    def _returned(self) -> None:
        """Data planes have had the time to come back: who has not is not there."""
        self._returning = False
        self._changes.touch()

    def _translated(
        self,
        snapshot: Snapshot,
        acknowledged: Mapping[ObjectKey, Acknowledged],
        deployed: Mapping[ObjectKey, Placed] | None,
    ) -> tuple[World, Any]:
        world = self._memory.translate(snapshot, acknowledged, deployed)
        states = self._parts.states
        return world, None if states is None else states.prepared(world.gateways)

    def _gateway(self, key: ObjectKey) -> Json | None:
        return self._store.snapshot().find(GATEWAY, *key)

    def _judged(self, kind: GroupKind, key: ObjectKey) -> None:
        self._writer.look(kind, key)

    def _wrote(self, kind: GroupKind, result: str) -> None:
        self.metrics.counted(Reconciliation(f"status/{kind.kind}"), result)

    def _led(self) -> None:
        self._leads = True
        self._return = asyncio.get_running_loop().call_later(RETURN_S, self._returned)
        self._changes.touch()
        if self._parts.service is not None:
            self._parts.service.lead(True)
        self._leading = [
            spawn("gateway classes", apply_classes(self._client, self._settings)),
            spawn("events", self._warnings.run()),
        ]
        if self._parts.deployer is not None:
            self._leading.append(spawn("deployer", self._parts.deployer.run()))
            self._parts.deployer.want(self._store.snapshot())

    async def _lost(self) -> None:
        if self._leads and self._parts.service is not None:
            self._parts.service.lead(False)
        self._leads, self._returning = False, True
        if self._return is not None:
            self._return.cancel()
        leading, self._leading = self._leading, []
        for one in leading:
            one.cancel()
        await asyncio.gather(*leading, return_exceptions=True)
        await self._writer.follow()

    def _counts(self) -> dict[tuple[tuple[str, str], ...], float]:
        return {(("kind", kind.kind),): count for kind, count in self._store.counts().items()}

    def _leader(self) -> dict[tuple[tuple[str, str], ...], float]:
        return {(): int(self._leads)}

    def _shown(self) -> dict[str, Any]:
        """Return what is known, by name: contents may be secret."""
        world = self._world
        snapshot = self._store.snapshot()
        return {
            "objects": {
                f"{kind.kind}.{kind.group}" if kind.group else kind.kind: [str(key) for key in sorted(found)]
                for kind, found in snapshot.kinds.items()
            },
            "gateways": {} if world is None else {
                str(key): [one.key for one in fragments] for key, fragments in world.gateways.items()
            },
            "statuses": [] if world is None else [
                {"kind": one.kind.kind, "name": str(one.key), "status": one.content} for one in world.statuses
            ],
            "delivery": [] if self._parts.states is None else self._parts.states.shown(),
        }  # fmt: skip

    def _path(self, kind: GroupKind, key: ObjectKey) -> str | None:
        watched = _BY_KIND.get(kind)
        if watched is None or not watched.judged:
            return None
        # Not all servers have the newest version of a kind.
        version = self._store.version_of(kind, key)
        index = next((one for one in range(len(watched.versions)) if watched.api_version(one) == version), 0)
        return watched.path_of(key, index)
