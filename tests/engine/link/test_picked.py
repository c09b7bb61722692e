"""Endpoints that are picked for a request: those of the backend, others where they may be, in order."""

from __future__ import annotations

from rig import GET, Rig, on_rig

from headgate_engine.context.request import RequestContext
from headgate_engine.link.dynamic import Destinations
from headgate_engine.link.picked import PickedBackend, note_picked, picked_places
from headgate_engine.link.pool import Pool
from headgate_engine.link.upstream import Http1Upstream
from headgate_engine.plan.plans import BackendPlan
from headgate_engine.plan.step import PythonStep

OWN = b"backend:80"


class Places:
    """Endpoints that nobody knew; `opened`: those that were wanted."""

    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        self.opened: list[bytes] = []
        self.pools: list[Pool] = []

    def settle(self, authority: bytes) -> bytes:
        if b"odd" in authority:
            raise ValueError("not host:port")
        return authority

    def open(self, place: bytes) -> Pool:
        self.opened.append(place)
        self.pools.append(Pool(self.rig.worker, place.decode(), place, self.rig.connect_upstream if b"new" in place else refuse, Http1Upstream(self.rig.worker)))
        return self.pools[-1]


async def refuse(factory: object) -> None:
    raise ConnectionRefusedError("refused")


def picking(rig: Rig, places: list[bytes], others: Places | None = None) -> list[list[bytes] | None]:
    """Each request of the rig's route gets these endpoints; what was noted for each."""
    noted: list[list[bytes] | None] = []
    destinations = None if others is None else Destinations(rig.worker, others.settle, others.open, 600.0)
    backend = BackendPlan("b", "http", PickedBackend(destinations))
    backend.pool = rig.pool
    rig.route.__init__("r", "default", "", (backend,), (1,))  # type: ignore[misc]

    def pick(ctx: RequestContext) -> None:
        if places:
            note_picked(ctx, places)
        noted.append(picked_places(ctx))

    rig.route.request_steps = (PythonStep("pick", pick),)
    return noted


@on_rig()
async def test_the_one_that_is_known(rig: Rig) -> None:
    noted = picking(rig, [OWN])
    assert (await rig.ask(GET)).status == 200
    assert noted == [[OWN]]


@on_rig()
async def test_without_any_the_backend_answers(rig: Rig) -> None:
    assert picking(rig, []) == []
    assert (await rig.ask(GET)).status == 200


@on_rig()
async def test_others_are_refused_where_they_may_not_be(rig: Rig) -> None:
    picking(rig, [b"new:80"])
    assert (await rig.ask(GET)).status == 503
    assert rig.accepted == 0


@on_rig()
async def test_others_where_they_may_be(rig: Rig) -> None:
    others = Places(rig)
    picking(rig, [b"odd", b"new:80"], others)
    assert (await rig.ask(GET)).status == 200
    assert others.opened == [b"new:80"]
    for pool in others.pools:
        pool.close()


@on_rig()
async def test_the_next_one_follows_an_attempt_that_fails(rig: Rig) -> None:
    others = Places(rig)
    picking(rig, [b"away:80", b"new:80"], others)
    assert (await rig.ask(GET)).status == 200
    assert others.opened == [b"away:80", b"new:80"]
    for pool in others.pools:
        pool.close()


@on_rig()
async def test_there_are_at_most_sixteen(rig: Rig) -> None:
    noted = picking(rig, [OWN] * 20)
    assert (await rig.ask(GET)).status == 200
    assert noted == [[OWN] * 16]
