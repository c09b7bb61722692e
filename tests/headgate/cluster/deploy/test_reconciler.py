"""Which Gateways are looked at again when a cluster changes."""

from __future__ import annotations

import copy
import random
from typing import Any

import pytest
from manifests import Json, gateway, gateway_class, made, service
from recorded_calls import RecordedCalls

from headgate.cluster.deploy.naming import short_name
from headgate.cluster.deploy.outcome import Deployed, DeployRefused
from headgate.cluster.deploy.ports import named_by_sets
from headgate.cluster.deploy.reconciler import GatewayReconciler, _lives
from headgate.cluster.deploy.settings import deploy_settings
from headgate.cluster.snapshot import GATEWAY, ObjectKey, Snapshot, key_of, kind_of

SETTINGS = deploy_settings({"HEADGATE_XDS_ADDRESS": "https://controller:1"}, "headgate-system", "", {})
LONG = "a-gateway-whose-name-is-longer-than-what-the-names-of-objects-may-have"
# The name of the second is that of an object of the first.
NAMES = ("edge/main", "edge/main-session-key", "edge/inner", f"shop/{LONG}")
SET = made("ListenerSet", "edge/more", {"parentRef": {"name": "main"}, "listeners": [{"name": "x", "port": 81, "protocol": "HTTP"}]}, "gateway.networking.k8s.io/v1")
OTHER_SET = made("ListenerSet", "edge/more", {**SET["spec"], "parentRef": {"name": "inner"}}, "gateway.networking.k8s.io/v1")


def objects() -> list[Json]:
    """All that may be there, some of it in two forms."""
    found = [gateway_class(), made("Namespace", "edge", {}, "v1", labels={"a": "b"}), made("Namespace", "edge", {}, "v1"), SET, OTHER_SET]
    for name in NAMES:
        found += [gateway(name=name), gateway(name=name, sets="All")]
        space, _, own = name.partition("/")
        about = f"{space}/{short_name(own)}"
        for kind in ("ConfigMap", "Secret"):
            found += [made(kind, f"{about}{end}", {}, "v1", labels={"n": label}) for end in ("", "-session-key", "-xds-ca") for label in "ab"]
        found += [service(about), service(about, {"port": 1}), made("Deployment", about, {}, "apps/v1", generation=1), made("Deployment", about, {}, "apps/v1", generation=2)]
    return [*found, service("edge/elsewhere"), made("Secret", "shop/elsewhere", {}, "v1")]


class Queueing(GatewayReconciler):
    """Notes what it would work on."""

    def __init__(self) -> None:
        super().__init__(RecordedCalls(), SETTINGS, lambda: None)
        self.queued: set[ObjectKey] = set()
        self.looked = 0
        self._queue.add = self.queued.add  # type: ignore[method-assign, assignment]

    def _trigger(self, snapshot: Snapshot, gateway: Json, has_sets: bool) -> Any:
        self.looked += 1
        return super()._trigger(snapshot, gateway, has_sets)

    def all_that_differ(self, snapshot: Snapshot) -> set[ObjectKey]:
        """Look at every Gateway."""
        sets = named_by_sets(snapshot)
        now = {
            key: super(Queueing, self)._trigger(snapshot, one, key in sets)
            for key, one in snapshot.kinds.get(GATEWAY, {}).items() if _lives(snapshot, one)
        }  # fmt: skip
        return {key for key in now.keys() | self._triggers.keys() if now.get(key) != self._triggers.get(key)}

    async def reconcile(self, snapshot: Snapshot, gateway: Json) -> Deployed:
        raise NotImplementedError

    async def gone(self, key: ObjectKey) -> None:
        raise NotImplementedError

    async def refused(self, key: ObjectKey, refusal: DeployRefused) -> None:
        raise NotImplementedError


@pytest.mark.parametrize("seed", range(8))
def test_it_is_as_if_every_gateway_were_looked_at(seed: int) -> None:
    chance = random.Random(seed)
    reconciler, every = Queueing(), objects()
    kinds: dict[Any, dict[ObjectKey, Json]] = {kind_of(one): {} for one in every if chance.random() < 0.9}
    for turn in range(120):
        for _ in range(chance.choice((1, 1, 1, 3))):
            one = copy.deepcopy(chance.choice(every))
            known = kinds.get(kind_of(one), {})
            kinds[kind_of(one)] = {key: each for key, each in known.items() if key != key_of(one)}
            if chance.random() < 0.7:
                kinds[kind_of(one)][key_of(one)] = one
        snapshot = Snapshot(dict(kinds))
        expected = reconciler.all_that_differ(snapshot)
        reconciler.queued.clear()
        reconciler.want(snapshot)
        assert reconciler.queued == expected, (seed, turn)


def test_only_gateways_whose_objects_changed_are_looked_at() -> None:
    reconciler = Queueing()
    fleet = [gateway(name=f"edge/g{number}") for number in range(50)]
    parts = [service(f"edge/g{number}") for number in range(50)]
    known = Snapshot.of([gateway_class(), *fleet, *parts]).kinds
    reconciler.want(Snapshot(known))
    assert (len(reconciler.queued), reconciler.looked) == (50, 50)
    services = kind_of(parts[0])
    for other, looked in ((service("edge/elsewhere"), 0), (service("edge/g7", {"port": 1}), 1)):
        reconciler.looked = 0
        known = {**known, services: {**known[services], key_of(other): other}}
        reconciler.want(Snapshot(known))
        assert reconciler.looked == looked
