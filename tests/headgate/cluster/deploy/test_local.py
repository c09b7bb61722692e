"""Gateways as processes of this machine: real `headgate` processes with a configuration of their own."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import inspect
import os
import signal
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from manifests import Json, gateway, gateway_class, listener, made, own
from recorded_calls import RecordedCalls
from tests.end_to_end.running import PATIENCE, free_port

from headgate.cluster.deploy.local import LocalDeployer
from headgate.cluster.deploy.local_ports import USUAL
from headgate.cluster.deploy.outcome import Deployed
from headgate.cluster.deploy.pod import STATS_PORT
from headgate.cluster.deploy.settings import DeploySettings
from headgate.cluster.snapshot import ObjectKey, Snapshot
from headgate.cluster.translate.conditions import Unmet

KEY = ObjectKey("edge", "main")
ACCOUNT = "/api/v1/namespaces/edge/serviceaccounts/main"
SETTINGS = DeploySettings(xds_address="http://127.0.0.1:9", authority="a certificate\n")


def static(port: int) -> Json:
    """Return GatewayParameters whose gateway answers at a port without a controller."""
    answer = {"directResponse": {"status": 200, "body": "here"}}
    route = {"name": "all", "policies": answer}
    return made("GatewayParameters", "edge/own", {"rawConfig": {"binds": [{"port": port, "listeners": [{"routes": [route]}]}]}}, "headgate.dev/v1alpha1")


def edge(*, name: str = "edge/main", addresses: tuple[Json, ...] = (), **infrastructure: Any) -> Json:
    found = gateway(listener(), name=name, uid=f"uid-of-{name}")
    found["spec"]["infrastructure"] = {"parametersRef": own("own", "GatewayParameters"), **infrastructure}
    if addresses:
        found["spec"]["addresses"] = list(addresses)
    return found


class Rig:
    """A deployer that runs, and what it told."""

    def __init__(self, folder: Path | None = None) -> None:
        self.calls = RecordedCalls()
        self.port, self.taken = free_port(), free_port()
        self._told = asyncio.Event()
        self.deployer = LocalDeployer(self.calls, SETTINGS, self._told.set, "127.77.0.0/16", folder)

    def want(self, *gateways: Json, parameters: Json | None = None) -> None:
        self.deployer.want(Snapshot.of([gateway_class(), parameters or static(self.port), *gateways]))

    async def result(self, holds: Callable[[Deployed], object] = bool, key: ObjectKey = KEY) -> Deployed:
        async with asyncio.timeout(PATIENCE):
            while True:
                self._told.clear()
                found = self.deployer.results().get(key)
                if found is not None and holds(found):
                    return found
                await self._told.wait()

    async def address(self, key: ObjectKey = KEY) -> str:
        return str((await self.result(lambda one: one.addresses, key)).addresses[0]["value"])

    async def served(self) -> None:
        """Wait until the gateway answers, at its own address: ports of its file are opened there as well."""
        address = await self.address()
        async with asyncio.timeout(PATIENCE), httpx.AsyncClient() as client:
            while True:
                with contextlib.suppress(httpx.TransportError):
                    answer = await client.get(f"http://{address}:{self.port}/")
                    assert answer.text == "here"
                    return
                await asyncio.sleep(0.05)


def rigged(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """Run a test with a rig whose deployer is ended afterwards."""

    @contextlib.asynccontextmanager
    async def running(rig: Rig) -> AsyncIterator[Rig]:
        work = asyncio.get_running_loop().create_task(rig.deployer.run())
        try:
            yield rig
        finally:
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)

    @functools.wraps(test)
    def run(**fixtures: Any) -> None:
        async def whole() -> None:
            async with running(Rig()) as rig:
                await test(rig, **fixtures)

        asyncio.run(whole())

    signature = inspect.signature(test)
    run.__signature__ = signature.replace(parameters=list(signature.parameters.values())[1:])  # type: ignore[attr-defined]
    return run


def gateways_of(address: str) -> list[int]:
    """Return the supervisors that were told to listen on an address."""
    found = []
    for one in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            command = (one / "cmdline").read_bytes().split(b"\0")
            if f"BIND_ADDRESS={address}".encode() in (one / "environ").read_bytes().split(b"\0") and b"headgate.cli.main" in command:
                found.append(int(one.name))
    # Templates and workers below the supervisor have its command line until they have titles of their own.
    return [pid for pid in found if not any(one in found for one in ancestors(pid))]


def ancestors(pid: int) -> list[int]:
    found = []
    while (pid := parent(pid)) > 1:
        found.append(pid)
    return found


def parent(pid: int) -> int:
    """Return the parent of a process, 0 if it has ended (and perhaps nobody has asked for its exit status)."""
    with contextlib.suppress(OSError):
        state, number = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[:2]
        return 0 if state in "ZX" else int(number)
    return 0


def environment(pid: int) -> dict[str, str]:
    pairs = Path(f"/proc/{pid}/environ").read_bytes().decode().split("\0")
    return dict(one.split("=", 1) for one in pairs if "=" in one)


async def until(holds: Callable[[], object]) -> None:
    async with asyncio.timeout(PATIENCE):
        while True:
            if holds():
                return
            await asyncio.sleep(0.02)


async def gone(pid: int) -> None:
    await until(lambda: not parent(pid))


def check_files(told: dict[str, str]) -> None:
    """Look at the files of a gateway, by its environment: nobody else may read them."""
    token = Path(told["XDS_TOKEN_FILE"])
    assert token.read_text().startswith("token-")
    assert Path(told["XDS_ROOT_CA"]).read_text() == "a certificate\n"
    assert Path(told["STATE_DIRECTORY"]).stat().st_mode & 0o777 == 0o700
    assert token.stat().st_mode & 0o777 == 0o600
    assert (token.parent / "process.json").stat().st_mode & 0o077 == 0
    assert (token.parent / "log.txt").stat().st_mode & 0o077 == 0


@rigged
async def test_a_gateway_runs_with_what_it_needs_and_ends_with_its_resource(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", "/secret")
    rig.want(edge())
    address = await rig.address()
    assert address.startswith("127.77.")
    await rig.served()
    [pid] = gateways_of(address)
    told = environment(pid)
    assert {name: told[name] for name in ("GATEWAY", "NAMESPACE", "INSTANCE_IP", "XDS_ADDRESS", "RUST_LOG")} == {
        "GATEWAY": "main", "NAMESPACE": "edge", "INSTANCE_IP": address, "XDS_ADDRESS": "http://127.0.0.1:9", "RUST_LOG": "info",
    }  # fmt: skip
    assert "KUBECONFIG" not in told
    assert len(told["SESSION_KEY"]) == 64
    check_files(told)
    async with httpx.AsyncClient() as client:
        # It serves its file, and is not ready before a controller has sent it something.
        ready = await client.get(f"http://{told['READINESS_ADDR']}/healthz/ready")
        assert ready.status_code == 500
        assert "configuration stream" in ready.text
    rig.want()
    await gone(pid)
    await until(lambda: not Path(told["XDS_TOKEN_FILE"]).parent.exists() and not rig.deployer.results())


@rigged
async def test_labels_and_annotations_are_passed_on(rig: Rig) -> None:
    rig.want(edge(labels={"key2": "value2"}, annotations={"key1": "value1"}))
    await rig.address()
    for kind in ("serviceaccounts", "services"):
        about = rig.calls.objects[f"/api/v1/namespaces/edge/{kind}/main"]["metadata"]
        assert about["labels"]["key2"] == "value2"
        assert about["labels"]["gateway.networking.k8s.io/gateway-name"] == "main"
        assert about["annotations"]["key1"] == "value1"
    assert rig.calls.objects["/api/v1/namespaces/edge/services/main"]["spec"]["type"] == "ClusterIP"


@rigged
async def test_the_token_is_one_of_the_service_account_for_the_controller(rig: Rig) -> None:
    rig.want(edge())
    await rig.address()
    requests = [one for one in rig.calls.bodies if one["kind"] == "TokenRequest"]
    assert [one["spec"]["audiences"] for one in requests] == [["headgate.dev/controller"]]
    assert ("create", f"{ACCOUNT}/token") in rig.calls.calls


@rigged
async def test_one_that_dies_is_started_again(rig: Rig) -> None:
    expected = rig.deployer._range.choose(KEY, ())
    with socket.create_server((expected, STATS_PORT)):
        rig.want(edge())
        address = await rig.address()
        await rig.served()
    [first] = gateways_of(address)
    # Another program has the usual port of the statistics.
    servers = {name: environment(first)[name].rpartition(":")[2] for name in USUAL}
    assert servers["STATS_ADDR"] != str(STATS_PORT)
    assert servers["READINESS_ADDR"] == str(USUAL["READINESS_ADDR"])
    os.kill(first, signal.SIGKILL)
    await gone(first)
    await rig.served()
    [second] = gateways_of(address)
    assert second != first
    assert {name: environment(second)[name].rpartition(":")[2] for name in USUAL} == servers
    assert await rig.address() == address


@rigged
async def test_other_settings_need_another_process(rig: Rig) -> None:
    rig.want(edge())
    address = await rig.address()
    await rig.served()
    [first] = gateways_of(address)
    parameters = static(rig.port)
    parameters["spec"]["env"] = [{"name": "MARK", "value": "new"}]
    rig.want(edge(), parameters=parameters)
    await gone(first)
    await rig.served()
    [second] = gateways_of(address)
    assert environment(second)["MARK"] == "new"
    assert environment(second)["SESSION_KEY"]
    warned: list[str] = []
    rig.deployer.warned = lambda _key, _reason, message: warned.append(message)
    with socket.create_server(("127.0.0.1", rig.taken)):
        parameters = static(rig.port)
        parameters["spec"]["env"] = [{"name": "STATS_ADDR", "value": f"127.0.0.1:{rig.taken}"}]
        rig.want(edge(), parameters=parameters)
        failed = await rig.result(lambda one: one.refusal)
        assert failed.refusal is not None
        assert (failed.refusal.reason, failed.condition, failed.addresses[0]["value"]) == ("DeploymentFailed", "Programmed", address)
        assert f"stats server: cannot listen on 127.0.0.1:{rig.taken}" in failed.refusal.message
        assert f"stats server: cannot listen on 127.0.0.1:{rig.taken}" in warned[0]
    # The port is free: the next start is the last.
    await rig.served()
    assert await rig.result(lambda one: not one.refusal)


@rigged
async def test_addresses_that_are_asked_for(rig: Rig) -> None:
    static_address = {"type": "IPAddress", "value": "127.77.1.2"}
    rig.want(edge(addresses=(static_address,)))
    assert await rig.address() == "127.77.1.2"
    other = edge(name="edge/other", addresses=(static_address,))
    rig.want(edge(addresses=(static_address,)), other)
    taken = await rig.result(lambda one: one.refusal, ObjectKey("edge", "other"))
    assert (taken.refusal, taken.condition) == (Unmet("AddressNotUsable", "127.77.1.2 is the address of another Gateway"), "Programmed")
    rig.want(edge(addresses=({"value": "192.0.2.1"}, static_address)))
    unusable = await rig.result(lambda one: one.refusal)
    assert (unusable.refusal, unusable.addresses) == (Unmet("AddressNotUsable", "192.0.2.1 is no address of this machine's range"), ())
    await until(lambda: not gateways_of("127.77.1.2"))
    rig.want(edge(addresses=({"type": "example.test/fake", "value": "x"}, static_address)))
    invalid = await rig.result(lambda one: one.condition == "Accepted")
    assert invalid.refusal == Unmet("UnsupportedAddress", "addresses of type example.test/fake are not supported")
    # One without a value is ours to choose.
    rig.want(edge(addresses=({"type": "IPAddress"},)))
    assert await rig.address() in rig.deployer._range


@rigged
async def test_variables_of_pods_are_refused(rig: Rig) -> None:
    parameters = static(rig.port)
    parameters["spec"]["env"] = [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]
    rig.want(edge(), parameters=parameters)
    found = await rig.result(lambda one: one.refusal)
    assert found.refusal == Unmet("InvalidParameters", "env A: valueFrom needs a pod")


def test_a_process_is_found_again_by_the_next_controller(tmp_path: Path) -> None:
    """The controller is killed: its queue ends and its processes do not."""

    async def first() -> tuple[int, str]:
        rig = Rig(tmp_path)
        work = asyncio.get_running_loop().create_task(rig.deployer._queue.run())
        rig.want(edge())
        address = await rig.address()
        await until(lambda: gateways_of(address))
        [pid] = gateways_of(address)
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)
        return pid, address

    async def second(port: int) -> None:
        rig = Rig(tmp_path)
        rig.port = port
        work = asyncio.get_running_loop().create_task(rig.deployer.run())
        rig.want(edge())
        assert await rig.address() == address
        assert gateways_of(address) == [pid]
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)
        # It ended with the controller's orderly end.
        await gone(pid)

    pid, address = asyncio.run(first())
    asyncio.run(second(free_port()))
