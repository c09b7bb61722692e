"""The controller with its real delivery and deployers, put together from the environment."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from manifests import Json, gateway, gateway_class
from recorded_calls import RecordedCalls

from headgate.cluster.controller.assembly import DeployerOfLeader, LocalGateways, delivery_settings, parts_of
from headgate.cluster.controller.settings import ControllerSettings
from headgate.cluster.deploy.outcome import Deployed
from headgate.cluster.deploy.reconciler import GatewayReconciler
from headgate.cluster.deploy.settings import DeploySettings
from headgate.cluster.errors import ClusterError
from headgate.cluster.snapshot import ObjectKey, Snapshot

KEY = ObjectKey("edge", "main")


class Noting(GatewayReconciler):
    """A deployer that notes what it is told."""

    def __init__(self) -> None:
        self.done: asyncio.Queue[str] = asyncio.Queue()
        super().__init__(RecordedCalls(), DeploySettings(xds_address="http://127.0.0.1:9"), lambda: None)

    def lead(self, leading: bool) -> None:
        super().lead(leading)
        self.done.put_nowait(f"lead {leading}")

    async def reconcile(self, snapshot: Snapshot, gateway: Json) -> Deployed:
        self.done.put_nowait(f"reconcile {gateway['metadata']['name']}")
        return Deployed(({"value": "192.0.2.1"},), generation=1)

    async def gone(self, key: ObjectKey) -> None:
        raise AssertionError

    async def refused(self, key: ObjectKey, refusal: object) -> None:
        raise AssertionError


def test_names_and_ports_of_the_delivery_follow_from_the_environment() -> None:
    environ = {"HEADGATE_XDS_NAMES": "a.test, b.test", "HEADGATE_XDS_PORT": "29978", "HEADGATE_XDS_MODE": "either", "HEADGATE_XDS_AUDIENCE": "own"}
    found = delivery_settings(environ, "ns", local=False)
    assert found.names == (
        "localhost", "127.0.0.1", "headgate", "headgate.ns", "headgate.ns.svc", "headgate.ns.svc.cluster.local", "a.test", "b.test",
    )  # fmt: skip
    assert (found.port, found.mode, found.authenticate, found.plain_secrets, found.namespace) == (29978, "either", True, False, "ns")
    assert found.audience == "own"
    local = delivery_settings({"HEADGATE_XDS_AUTH": "false"}, "ns", local=True)
    assert (local.host, local.names, local.authenticate, local.mode) == ("127.0.0.1", ("localhost", "127.0.0.1"), False, "tls")


@pytest.mark.parametrize(("name", "text"), [
    ("XDS_MODE", "loud"), ("XDS_PORT", "x"), ("XDS_AUTH", "perhaps"), ("XDS_PLAIN_SECRETS", "1"), ("XDS_SERVICE_PORT", "0"),
    ("ISTIO_ENABLED", "yes"),
])  # fmt: skip
def test_what_is_wrong_is_told_before_anything_starts(name: str, text: str) -> None:
    with pytest.raises(ClusterError, match=f"HEADGATE_{name}"):
        parts_of({f"HEADGATE_{name}": text}, ControllerSettings())


def test_a_deployer_is_made_when_this_replica_leads_and_made_once() -> None:
    async def run() -> None:
        made: list[Noting] = []

        def make() -> Noting:
            made.append(Noting())
            return made[-1]

        deployer = DeployerOfLeader(make)
        deployer.want(Snapshot.of([gateway_class(), gateway()]))
        assert (made, deployer.results()) == ([], {})
        for again in (False, True):
            work = asyncio.get_running_loop().create_task(deployer.run())
            async with asyncio.timeout(60):
                while await _next(work, made) != "reconcile main":
                    pass
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)
            [one] = made
            assert one.done.get_nowait() == "lead False"
            assert deployer.results()[KEY].addresses == ({"value": "192.0.2.1"},), again

    asyncio.run(run())


async def _next(work: asyncio.Task[None], made: list[Noting]) -> str:
    while not made:
        assert not work.done()
        await asyncio.sleep(0)
    return await made[0].done.get()


def test_local_gateways_need_a_range_that_can_be_used(tmp_path: Path) -> None:
    async def run() -> None:
        environ = {"HEADGATE_XDS_MODE": "plaintext", "HEADGATE_XDS_ADDRESS": "http://127.0.0.1:9"}
        make = parts_of(environ, ControllerSettings(), LocalGateways("nowhere", tmp_path))
        parts = make(RecordedCalls(), lambda: None)
        assert parts.deployer is not None
        assert parts.service is not None
        await parts.service.start()
        try:
            with pytest.raises(ClusterError, match="range of addresses 'nowhere'"):
                await parts.deployer.run()
        finally:
            await parts.service.stop()

    asyncio.run(run())
