"""What both ways of running gateways have in common: which Gateways to look at, when, and what came of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, Final

from headgate.cluster.calls import ApiCalls, ApiError
from headgate.cluster.deploy.applier import SETTLE_S, Applier, LeadLost, live, object_keys
from headgate.cluster.deploy.naming import short_name
from headgate.cluster.deploy.outcome import Deployed, DeployRefused, NoUsablePort
from headgate.cluster.deploy.owned_kinds import OWNED, SERVICE
from headgate.cluster.deploy.parameters import PARAMETERS, parameter_documents
from headgate.cluster.deploy.ports import INTERNAL, LISTENER_SET, listener_ports, named_by_sets
from headgate.cluster.deploy.settings import DeploySettings
from headgate.cluster.deploy.work_queue import WorkQueue
from headgate.cluster.errors import ClusterError
from headgate.cluster.snapshot import (
    GATEWAY,
    GATEWAY_CLASS,
    NAMESPACE,
    GroupKind,
    ObjectKey,
    Snapshot,
    differing,
    generation,
)
from headgate.cluster.translate.conditions import Unmet
from headgate.cluster.translate.gateway import is_own

Json = dict[str, Any]
FAILED: Final = "DeploymentFailed"
# What decides about data planes. Routes are not among it.
_OF_ALL: Final = (GATEWAY_CLASS, PARAMETERS, LISTENER_SET, NAMESPACE)
_KINDS: Final = (GATEWAY, *_OF_ALL, *(one.group_kind for one in OWNED))
_NONE: Final[Mapping[ObjectKey, Json]] = {}


class GatewayReconciler(ABC):
    """`changed` is called when the results have changed. It leads from the start; `lead` says otherwise."""

    def __init__(self, calls: ApiCalls, settings: DeploySettings, changed: Callable[[], None]) -> None:
        self._calls = calls
        self._settings = settings
        self._changed = changed
        # Told of each failure: of which Gateway, a reason in CamelCase, and what happened.
        self.warned: Callable[[ObjectKey, str, str], None] = lambda _key, _reason, _message: None
        self._leading = True
        self._applier = Applier(calls, settings, lambda: self._leading)
        self._snapshot = Snapshot({})
        # What decided about each Gateway when it was queued.
        self._triggers: dict[ObjectKey, Any] = {}
        # The Gateways that an object of a name may belong to: names of different kinds may meet.
        self._owners: dict[ObjectKey, set[ObjectKey]] = {}
        self._results: dict[ObjectKey, Deployed] = {}
        self._queue = WorkQueue("deployer", self._work)

    def want(self, snapshot: Snapshot) -> None:
        """Queue the Gateways whose data planes may have to change.

        Costs nothing when no kind that matters has changed (its map is the one of the last snapshot), else some 20 us
        for each Gateway that a changed object belongs to, and for each Gateway where a class, parameters, a ListenerSet
        or a namespace has changed.
        """
        before, self._snapshot = self._snapshot, snapshot
        changed = _changed(before, snapshot)
        if not changed and before.kinds.keys() == snapshot.kinds.keys():
            return
        gateways = snapshot.kinds.get(GATEWAY, _NONE)
        touched = {*changed.pop(GATEWAY, ())}
        if changed.keys() & {*_OF_ALL} or before.kinds.keys() != snapshot.kinds.keys():
            touched |= gateways.keys() | self._triggers.keys()
        else:
            touched |= {owner for keys in changed.values() for key in keys for owner in self._owners.get(key, ())}
        with_sets = named_by_sets(snapshot) if touched else set()
        for key in touched:
            self._look(snapshot, key, gateways.get(key), key in with_sets)

    def _look(self, snapshot: Snapshot, key: ObjectKey, gateway: Json | None, has_sets: bool) -> None:
        """Queue a Gateway if something that decides about its data plane differs from when it was queued last."""
        if gateway is not None and _lives(snapshot, gateway):
            trigger = self._trigger(snapshot, gateway, has_sets)
            if self._triggers.get(key) != trigger:
                self._triggers[key] = trigger
                for one in object_keys(key):
                    self._owners.setdefault(one, set()).add(key)
                self._queue.add(key)
        elif key in self._triggers:
            del self._triggers[key]
            for one in object_keys(key):
                owners = self._owners.get(one, set())
                owners.discard(key)
                if not owners:
                    self._owners.pop(one, None)
            self._queue.add(key)

    def lead(self, leading: bool) -> None:
        """Begin or stop to change anything. A replica that leads anew looks at every Gateway."""
        self._leading = leading
        self._queue.hold(not leading)
        if leading:
            self._applier.forget_all()
            for key in self._triggers:
                self._queue.add(key)

    def results(self) -> dict[ObjectKey, Deployed]:
        """Return what has become of each Gateway that was looked at."""
        return dict(self._results)

    async def run(self) -> None:
        """Work until it is cancelled. It may be run again, and then looks at every Gateway: others led meanwhile."""
        self._applier.forget_all()
        self._results.clear()
        for key in self._triggers:
            self._queue.add(key)
        await self._queue.run()

    def _trigger(self, snapshot: Snapshot, gateway: Json, has_sets: bool) -> Any:
        spec, about = gateway["spec"], gateway["metadata"]
        namespace, name = about["namespace"], short_name(about["name"])
        service = snapshot.find(SERVICE.group_kind, namespace, name) or {}
        return (
            about.get("uid"),
            spec,
            (about.get("annotations") or {}).get(INTERNAL),
            (snapshot.find(GATEWAY_CLASS, "", spec["gatewayClassName"]) or {}).get("spec"),
            [one and one.get("spec") for one in parameter_documents(snapshot, gateway, self._settings)],
            listener_ports(snapshot, gateway) if has_sets else None,
            live(snapshot, namespace, name),
            (service.get("status") or {}).get("loadBalancer"),
        )

    async def _work(self, key: ObjectKey) -> None:
        snapshot = self._snapshot
        gateway = snapshot.find(GATEWAY, *key)
        if gateway is None or key not in self._triggers:
            self._applier.forget(key)
            await self.gone(key)
            self._forget(key)
            return
        about = generation(gateway)
        try:
            self._store(key, await self.reconcile(snapshot, gateway))
            if self._applier.unsettled(key):
                self._queue.add_later(key, SETTLE_S)
        except DeployRefused as refusal:
            await self.refused(key, refusal)
            self.warned(key, refusal.reason, str(refusal))
            self._store(key, Deployed((), Unmet(refusal.reason, str(refusal)), refusal.condition, about))
        except NoUsablePort:
            self._store(key, Deployed(generation=about))
        except LeadLost:
            return
        except (ApiError, ClusterError, OSError) as error:
            self.warned(key, FAILED, str(error))
            before = self._results.get(key, Deployed())
            self._store(key, Deployed(before.addresses, Unmet(FAILED, str(error)), "Programmed", about))
            raise

    def _store(self, key: ObjectKey, result: Deployed) -> None:
        if key in self._triggers and self._results.get(key) != result:
            self._results[key] = result
            self._changed()

    def _forget(self, key: ObjectKey) -> None:
        if self._results.pop(key, None) is not None:
            self._changed()

    @abstractmethod
    async def reconcile(self, snapshot: Snapshot, gateway: Json) -> Deployed:
        """Bring a data plane about. Raises DeployRefused, NoUsablePort, and for what is tried again ApiError,
        ClusterError and OSError."""

    @abstractmethod
    async def gone(self, key: ObjectKey) -> None:
        """Called when a Gateway is gone, or is no longer ours."""

    @abstractmethod
    async def refused(self, key: ObjectKey, refusal: DeployRefused) -> None:
        """Called when a Gateway is refused, which may have been served before."""


def _changed(before: Snapshot, after: Snapshot) -> dict[GroupKind, list[ObjectKey]]:
    """Return the objects that differ, of the kinds that matter."""
    found: dict[GroupKind, list[ObjectKey]] = {}
    for kind in _KINDS:
        old, new = before.kinds.get(kind, _NONE), after.kinds.get(kind, _NONE)
        if old is not new and (keys := differing(old, new)):
            found[kind] = keys
    return found


def _lives(snapshot: Snapshot, gateway: Json) -> bool:
    """Tell whether a Gateway is ours and not on its way out, when its objects are being deleted."""
    return not gateway["metadata"].get("deletionTimestamp") and is_own(snapshot, gateway)
