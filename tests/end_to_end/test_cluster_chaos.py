"""Everything that may die in a cluster does, at random, while routes change: nothing is lost but what was on a data plane that died.

Short here, with each fault once; `make chaos-cluster` has 1,000 routes and goes on for HEADGATE_CHAOS seconds, with several
faults at a time. HEADGATE_CHAOS_SEED decides what happens when.
"""

from __future__ import annotations

import os
import ssl
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from cluster_lab import RunningCluster, built, kubernetes
from manifests import gateway, listener
from tests.end_to_end.acceptance_rig import Lab, namespaces, real_lab, small_lab
from tests.end_to_end.chaos_onlooker_rig import Onlooker
from tests.end_to_end.chaos_programs_rig import Program, Store
from tests.end_to_end.chaos_rig import BUSY, STEADY, STEADY_ROUTES, ChaosLab, Traffic, seconds, versioned
from tests.end_to_end.faulty_api_rig import SAID, FaultyApi

__all__ = ["kubernetes"]
SEED = int(os.environ.get("HEADGATE_CHAOS_SEED", "1"))
LONG = seconds() > 0
ROUTES = 1_000 if LONG else 30


@pytest.fixture(params=["small", "real"])
def chaos(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ChaosLab]:
    """A cluster with Gateways `edge/steady` and `edge/busy`, of which the second may die."""
    with ExitStack() as stack:
        programs: dict[str, Program] = {}
        if request.param == "small":
            lab = stack.enter_context(small_lab(tmp_path))
            context, store = None, None
        else:
            built()
            cluster: RunningCluster = request.getfixturevalue("kubernetes")
            lab = stack.enter_context(real_lab(cluster, tmp_path))
            folder = cluster.kubeconfig.parent
            programs = {name: Program(folder, name) for name in ("kube-apiserver", "etcd")}
            store = Store(folder)
            context = ssl.create_default_context(cafile=str(folder / "pki" / "ca.crt"))
        api = FaultyApi(str(lab.client.base_url).rstrip("/"), context, SEED)
        stack.callback(api.close)
        found = ChaosLab(lab, api, programs, store, ROUTES, SEED)
        stack.callback(found.close)
        prepare(found)
        yield found


def prepare(chaos: ChaosLab) -> None:
    lab: Lab = chaos.lab
    lab.apply(*namespaces("edge", "shop", "default"))
    lab.served("shop/cart")
    for name in (STEADY, BUSY):
        lab.apply(gateway(listener(port=lab.port), name=name))
    lab.apply(*(versioned(f"shop/steady-{number}", STEADY, "steady") for number in range(STEADY_ROUTES)))
    chaos.changes.begin()
    chaos.settle()


@pytest.mark.timeout(1_800 + 3 * int(seconds()))
def test_nothing_is_lost_and_nothing_flaps(chaos: ChaosLab) -> None:
    began, since, before = time.monotonic(), chaos.transitions(), chaos.accepted_since()
    traffic = Traffic(chaos.address_of(STEADY), chaos.lab.port)
    onlooker = Onlooker(chaos.lab.client, STEADY, chaos.attached(STEADY) // 2)
    traffic.begin()
    onlooker.begin()
    names = list(chaos.faults())
    chaos.random.shuffle(names)
    struck, returned = 0, False
    try:
        while struck < len(names) or time.monotonic() - began < seconds():
            chaos.changes.pause(False)
            # Short runs let each fault end before the next begins.
            for _ in range(chaos.random.choice((1, 2, 3)) if LONG else 1):
                returned = returned or names[struck % len(names)] == "controller dies"
                chaos.strike(names[struck % len(names)], 0.2 + chaos.random.random() * (6 if LONG else 1))
                struck += 1
                if struck % len(names) == 0:
                    chaos.random.shuffle(names)
            chaos.settle()
            assert not traffic.lost, (traffic.lost[:5], chaos.told[-5:])
            assert not onlooker.flaps, (onlooker.flaps[:5], chaos.told[-5:])
            now = chaos.transitions()
            if returned and chaos.late:
                # A machine that is this busy cannot show that nothing flaps when the controller dies.
                since |= {name: one for name, one in now.items() if name.endswith("Programmed")}
            returned = chaos.late = False
            assert now == since, chaos.told[-5:]
            after = chaos.accepted_since()
            same = before.keys() & after.keys()
            assert {key: before[key] for key in same} == {key: after[key] for key in same}, chaos.told[-5:]
            before = after
        assert traffic.asked > struck
        assert chaos.api.did["cut"]
        assert chaos.api.did["expired"]
        assert onlooker.read > chaos.changes.made
        if chaos.programs:
            assert all(chaos.api.did[name] for name in SAID.values()), chaos.api.did
    finally:
        traffic.close()
        onlooker.close()
        if LONG:
            print(f"\n{struck} faults, {chaos.changes.made} changes, {traffic.asked} requests, {onlooker.read} versions read; {dict(chaos.api.did)}")
