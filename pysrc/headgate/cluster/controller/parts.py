"""What the controller uses of its other parts: who sends configurations to gateways, and who deploys them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, Protocol

from headgate.cluster.calls import ApiCalls
from headgate.cluster.controller.metrics import ControllerMetrics
from headgate.cluster.snapshot import ObjectKey, Snapshot
from headgate.cluster.translate.deployed import Placed
from headgate.cluster.translate.fragments import Fragment
from headgate.cluster.translate.gateway import Acknowledged


class States(Protocol):
    """The states of Gateways, and which of them their data planes have taken."""

    def prepared(self, gateways: Mapping[ObjectKey, tuple[Fragment, ...]]) -> Any:
        """Return what `update` is given; called in a thread, and not beside it."""

    def update(
        self,
        gateways: Mapping[ObjectKey, tuple[Fragment, ...]],
        generations: Mapping[ObjectKey, int],
        prepared: Any = None,
    ) -> None: ...

    def acknowledged(self) -> dict[ObjectKey, Acknowledged]: ...

    def shown(self) -> list[dict[str, object]]:
        """Return each Gateway with its data planes, without anything secret."""


# Tells of something that went wrong for a Gateway: a reason in CamelCase, and what happened.
Warned = Callable[[ObjectKey, str, str], None]


class Delivers(Protocol):
    """Serves the states to data planes. The port of every replica is open, and the leader's takes data planes in.
    `warned`: told when one of them rejects something."""

    warned: Warned

    @property
    def counters(self) -> Mapping[str, int]:
        """What has been counted, by the name of a family."""

    def streams(self) -> int: ...

    def lead(self, leading: bool) -> None: ...

    async def start(self) -> None: ...

    async def stop(self) -> None: ...


class Deploys(Protocol):
    """Deploys data planes; the leader does. `want` is quick, `run` is cancelled when this replica leads no longer.
    `warned`: told when that fails."""

    warned: Warned

    def want(self, snapshot: Snapshot) -> None: ...

    async def run(self) -> None: ...

    def results(self) -> Mapping[ObjectKey, Placed]: ...


class Parts(NamedTuple):
    """Any may be missing: then nothing is sent, or nothing deployed and no address told."""

    states: States | None = None
    service: Delivers | None = None
    deployer: Deploys | None = None


# Families of the delivery, each a counter without labels.
_COUNTED: Final = {
    "xds_auth_rq_total": "Streams of data planes whose token was looked at.",
    "xds_auth_rq_success_total": "Those of them that were let in.",
    "xds_auth_rq_failure_total": "Those of them that were refused, or could not be checked.",
    "xds_rejects_total": "States of which a data plane has not taken all.",
}


def delivery_families(metrics: ControllerMetrics, service: Delivers) -> None:
    """Show what the delivery counts among the metrics of the controller."""

    def counter(name: str) -> Callable[[], dict[tuple[tuple[str, str], ...], float]]:
        return lambda: {(): service.counters[name]}

    for name, text in _COUNTED.items():
        metrics.add(name, "counter", text, counter(name))
    metrics.add("xds_streams", "gauge", "Data planes that are connected.", lambda: {(): service.streams()})


# Makes the parts. The function that it is given tells the controller that what they say may have changed.
MakeParts = Callable[[ApiCalls, Callable[[], None]], Parts]


def no_parts(_calls: ApiCalls, _changed: Callable[[], None]) -> Parts:
    """Return no parts: statuses are written, and nothing is sent or deployed."""
    return Parts()
