"""What the controller uses of its other parts: who sends configurations to gateways, and who deploys them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol

from headgate.cluster.calls import ApiCalls
from headgate.cluster.snapshot import ObjectKey, Snapshot
from headgate.cluster.translate.deployed import Placed
from headgate.cluster.translate.fragments import Fragment
from headgate.cluster.translate.gateway import Acknowledged


class States(Protocol):
    """The states of Gateways, and which of them their data planes have taken."""

    def update(
        self, gateways: Mapping[ObjectKey, tuple[Fragment, ...]], generations: Mapping[ObjectKey, int]
    ) -> None: ...

    def acknowledged(self) -> dict[ObjectKey, Acknowledged]: ...


class Delivers(Protocol):
    """Serves the states to data planes; every replica does."""

    async def start(self) -> None: ...

    async def stop(self) -> None: ...


class Deploys(Protocol):
    """Deploys data planes; the leader does. `want` is quick, `run` is cancelled when this replica leads no longer."""

    def want(self, snapshot: Snapshot) -> None: ...

    async def run(self) -> None: ...

    def results(self) -> Mapping[ObjectKey, Placed]: ...


class Parts(NamedTuple):
    """Any may be missing: then nothing is sent, or nothing deployed and no address told."""

    states: States | None = None
    service: Delivers | None = None
    deployer: Deploys | None = None


# Makes the parts. The function that it is given tells the controller that what they say may have changed.
MakeParts = Callable[[ApiCalls, Callable[[], None]], Parts]


def no_parts(_calls: ApiCalls, _changed: Callable[[], None]) -> Parts:
    """Return no parts: statuses are written, and nothing is sent or deployed."""
    return Parts()
