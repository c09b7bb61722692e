"""What is kept of statuses while nobody has said anything else."""

from __future__ import annotations

import pytest

from headgate.cluster.controller.known import RETURN_S, with_known_addresses, with_known_answers
from headgate.cluster.deliver import data_plane
from headgate.cluster.snapshot import Json, ObjectKey
from headgate.cluster.translate.conditions import Unmet
from headgate.cluster.translate.deployed import Placement
from headgate.cluster.translate.gateway import Acknowledged

KEY = ObjectKey("edge", "main")
ADDRESS = {"type": "IPAddress", "value": "192.0.2.1"}


def status(state: str = "True", **more: object) -> Json:
    return {"conditions": [{"type": "Accepted", "status": "True"}, {"type": "Programmed", "status": state, **more}]}


@pytest.mark.parametrize(("said", "known", "found"), [
    ({}, status(observedGeneration=3), {KEY: Acknowledged(3)}),
    ({KEY: Acknowledged()}, status(observedGeneration=3), {KEY: Acknowledged(3)}),
    ({KEY: Acknowledged(2)}, status(observedGeneration=3), {KEY: Acknowledged(2)}),
    ({KEY: Acknowledged(-1, "no")}, status(observedGeneration=3), {KEY: Acknowledged(-1, "no")}),
    ({}, status("False", observedGeneration=3), {}),
    ({}, status(), {}),
    ({}, {}, {}),
])  # fmt: skip
def test_what_is_programmed_stays_so_until_data_planes_say_otherwise(
    said: dict[ObjectKey, Acknowledged], known: Json, found: dict[ObjectKey, Acknowledged]
) -> None:
    assert with_known_answers(said, [KEY], lambda _key: known) == found


def test_addresses_stay_until_the_deployer_has_looked() -> None:
    known = {"addresses": [ADDRESS]}
    assert with_known_addresses({}, [KEY], lambda _key: known) == {KEY: Placement((ADDRESS,))}
    assert with_known_addresses({}, [KEY], lambda _key: {}) == {}
    failed = {"addresses": [ADDRESS], **status("False", reason="DeploymentFailed", message="no quorum", observedGeneration=3)}
    told = Placement((ADDRESS,), Unmet("DeploymentFailed", "no quorum"), "Programmed", 3)
    assert with_known_addresses({}, [KEY], lambda _key: failed) == {KEY: told}
    pending = {"addresses": [ADDRESS], **status("False", reason="Pending", message="soon")}
    assert with_known_addresses({}, [KEY], lambda _key: pending) == {KEY: Placement((ADDRESS,))}
    refused = Placement((), Unmet("AddressNotUsable", "no"))
    assert with_known_addresses({KEY: refused}, [KEY], lambda _key: known) == {KEY: refused}


def test_data_planes_have_the_time_of_their_longest_pause() -> None:
    # Two pauses, each up to half longer, and a try of 10 s between them.
    assert RETURN_S == 2 * 1.5 * data_plane.MOST_PAUSE_S + 10
