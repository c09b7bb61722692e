"""Data planes that take their configuration from a controller over the discovery stream."""

from __future__ import annotations

import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest
from tests.end_to_end.delivery_rig import LOCAL, TOKEN, Controller, bind, data_plane, route
from tests.end_to_end.running import PATIENCE, Gateway, free_port

from headgate.cluster.deliver.certificate import new_authority
from headgate.cluster.deliver.settings import Mode
from headgate.cluster.snapshot import ObjectKey

Start = Callable[..., Gateway]


@pytest.fixture
def controller() -> Iterator[Controller]:
    found = Controller()
    yield found
    found.close()


@pytest.fixture
def port() -> int:
    return free_port()


@pytest.fixture
def start(tmp_path: Path, controller: Controller, port: int) -> Iterator[Start]:
    started: list[Gateway] = []

    def begin(ready: bool = True, workers: int = 1, **environment: str) -> Gateway:
        found = data_plane(tmp_path, controller.environment(tmp_path, **environment), port, workers)
        started.append(found)
        if ready:
            found.wait_ready()
        return found

    yield begin
    for one in started:
        one.process.kill()
        one.process.wait()


def body(gateway: Gateway, name: str) -> tuple[int, str]:
    status, text = gateway.fetch(f"{gateway.url}/{name}")
    return status, text if status == 200 else ""


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_a_data_plane_serves_what_it_is_sent(controller: Controller, start: Start, port: int) -> None:
    controller.update(*bind(port), route("a", "one"), generation=4)
    gateway = start()
    assert controller.wait(lambda it: it.generation == 4).rejection == ""
    assert body(gateway, "a") == (200, "one")
    controller.update(*bind(port), route("a", "two"), route("b", "new"), generation=5)
    controller.wait(lambda it: it.generation == 5)
    assert body(gateway, "a") == (200, "two")
    assert body(gateway, "b") == (200, "new")
    controller.update(*bind(port), route("b", "new"), generation=6)
    controller.wait(lambda it: it.generation == 6)
    assert body(gateway, "a")[0] == 404


def test_it_is_ready_when_the_first_state_is_applied(controller: Controller, start: Start, port: int) -> None:
    gateway = start(ready=False)
    gateway.wait_log("not synced yet")
    status, text = gateway.fetch(f"http://127.0.0.1:{gateway.readiness}/healthz/ready")
    assert (status, text) == (500, "not ready, pending: configuration stream\n")
    controller.update(*bind(port), route("a", "one"))
    gateway.wait_ready()
    assert body(gateway, "a") == (200, "one")


def test_a_broken_part_is_rejected_and_the_others_are_in_force(controller: Controller, start: Start, port: int) -> None:
    controller.update(*bind(port), route("a", "one"), route("b", "one"), generation=1)
    gateway = start()
    controller.wait(lambda it: it.generation == 1)
    bad = route("a", "two", policies={"noSuchPolicy": {}})
    controller.update(*bind(port), bad, route("b", "two"), route("c", "new", policies={"timeout": {"requestTimeout": "x"}}), generation=2)
    found = controller.wait(lambda it: it.rejection != "")
    assert found.generation == 1
    assert "route/shop/a.00.http: " in found.rejection
    assert "noSuchPolicy" in found.rejection
    assert "route/shop/c.00.http: " in found.rejection
    # What was good goes on, and what is good is in force.
    assert body(gateway, "a") == (200, "one")
    assert body(gateway, "b") == (200, "two")
    assert body(gateway, "c")[0] == 404
    assert gateway.metric("gw_delivery_rejected_resources") == 2
    # A change of something else does not hide that.
    controller.update(*bind(port), bad, route("b", "three"), generation=3)
    until(lambda: body(gateway, "b") == (200, "three"))
    assert "noSuchPolicy" in controller.acknowledged().rejection
    controller.update(*bind(port), route("a", "four"), route("b", "three"), generation=4)
    controller.wait(lambda it: it.generation == 4 and not it.rejection)
    assert body(gateway, "a") == (200, "four")


def test_a_port_that_is_taken_is_rejected_and_the_others_are_served(controller: Controller, start: Start, port: int) -> None:
    with socket.create_server(("0.0.0.0", 0)) as taken:
        number = taken.getsockname()[1]
        other = [one for one in bind(number, ObjectKey("shop", "second"))]
        controller.update(*bind(port), route("a", "one"), *other)
        gateway = start()
        found = controller.wait(lambda it: it.rejection != "")
        assert f"bind/{number}/shop/second: its port cannot be opened" in found.rejection
        assert body(gateway, "a") == (200, "one")
    # The other process has gone, and nobody has changed anything.
    controller.wait(lambda it: it.generation == 1 and not it.rejection)
    with socket.create_connection(("127.0.0.1", number)):
        pass
    assert gateway.metric("gw_delivery_rejected_resources") == 0


def test_the_controller_goes_and_comes_back(controller: Controller, start: Start, port: int) -> None:
    controller.update(*bind(port), route("a", "one"))
    gateway = start()
    controller.wait(lambda it: it.generation == 1)
    controller.stop()
    gateway.wait_log("no stream to the controller")
    assert body(gateway, "a") == (200, "one")
    controller.start()
    controller.update(*bind(port), route("a", "one"), generation=7)
    controller.wait(lambda it: it.generation == 7)
    received = [line for line in gateway.log().splitlines() if "configuration received" in line]
    assert "changed=0" in received[-1]
    assert "removed=0" in received[-1]
    # The difference between what it has and what there is by now.
    controller.stop()
    controller.start()
    controller.update(*bind(port), route("b", "two"), generation=8)
    controller.wait(lambda it: it.generation == 8)
    assert body(gateway, "a")[0] == 404
    assert body(gateway, "b") == (200, "two")


def test_it_starts_with_its_last_state_when_the_controller_is_away(
    controller: Controller, start: Start, port: int, tmp_path: Path
) -> None:
    controller.update(*bind(port), route("a", "one"), generation=1)
    first = start()
    controller.wait(lambda it: it.generation == 1)
    bad = route("a", "two", policies={"noSuchPolicy": {}})
    controller.update(*bind(port), bad, route("b", "$HOME"), generation=2)
    controller.wait(lambda it: it.rejection != "")
    state = tmp_path / "delivered-state"
    until(lambda: state.exists() and b"$HOME" in state.read_bytes())
    assert state.stat().st_mode & 0o777 == 0o600
    first.process.terminate()
    assert first.process.wait(PATIENCE) == 0
    controller.stop()
    second = start()
    # The part that was refused is so again, and what was good in its place is there.
    assert body(second, "a") == (200, "one")
    assert body(second, "b") == (200, "$HOME")
    controller.start()
    controller.update(*bind(port), bad, route("b", "$HOME"), generation=2)
    found = controller.wait(lambda it: it.rejection != "")
    assert "noSuchPolicy" in found.rejection
    received = [line for line in second.log().splitlines() if "configuration received" in line]
    assert "changed=0" in received[-1]


@pytest.mark.parametrize(("token", "why"), [
    ("unknown", "UNAUTHENTICATED: the token is not valid"),
    ("", "UNAUTHENTICATED: a bearer token is required"),
    ("other", "PERMISSION_DENIED: service account shop/other is not that of Gateway shop/web"),
])  # fmt: skip
def test_a_wrong_token_is_refused_and_a_new_one_is_read(
    controller: Controller, start: Start, port: int, tmp_path: Path, token: str, why: str
) -> None:
    controller.update(*bind(port), route("a", "one"))
    gateway = start(ready=False, token=token)
    gateway.wait_log(why)
    assert gateway.fetch(f"http://127.0.0.1:{gateway.readiness}/healthz/ready")[0] == 500
    assert controller.service.counters["xds_auth_rq_failure_total"] > 0
    (tmp_path / "token").write_text(TOKEN)
    gateway.wait_ready()
    assert body(gateway, "a") == (200, "one")


def test_the_file_is_reloaded_beside_what_is_delivered(controller: Controller, start: Start, port: int) -> None:
    controller.update(*bind(port), route("a", "one"))
    gateway = start()
    gateway.reload(f"gateways: {{default: {{port: {gateway.spare}}}}}\nroutes: [{{name: own, policies: {{directResponse: {{status: 200, body: own}}}}}}]")
    assert httpx.get(f"http://127.0.0.1:{gateway.spare}/").text == "own"
    assert body(gateway, "a") == (200, "one")
    controller.update(*bind(port), route("a", "two"), generation=2)
    controller.wait(lambda it: it.generation == 2)
    assert body(gateway, "a") == (200, "two")
    dump = gateway.fetch(f"http://127.0.0.1:{gateway.admin}/config_dump")[1]
    assert '"two"' in dump
    before = gateway.log().count("configuration reloaded")
    gateway.write("")
    gateway.process.send_signal(signal.SIGHUP)
    until(lambda: gateway.log().count("configuration reloaded") > before)
    assert body(gateway, "a") == (200, "two")
    gateway.put("config: {nonsense: 1}\n")
    gateway.wait_log("Failed to reload config")
    assert "config.yaml:1" in gateway.log()
    assert body(gateway, "a") == (200, "two")


def test_its_ports_listen_on_one_address(controller: Controller, tmp_path: Path, port: int) -> None:
    controller.update(*bind(port), route("a", "one"))
    planes = []
    try:
        for number in (5, 6):
            address = f"127.0.0.{number}"
            folder = tmp_path / address
            folder.mkdir()
            gateway = data_plane(folder, controller.environment(folder, BIND_ADDRESS=address), port)
            planes.append(gateway)
            gateway.wait_ready()
            assert httpx.get(f"http://{address}:{port}/a").text == "one"
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"http://127.0.0.1:{port}/a")
    finally:
        for one in planes:
            one.process.kill()
            one.process.wait()


def test_changes_among_a_thousand_routes_lose_no_request(controller: Controller, start: Start, port: int) -> None:
    routes = {f"r{number}": route(f"r{number}", "x") for number in range(1000)}
    controller.update(*bind(port), route("steady", "here"), *routes.values())
    gateway = start(workers=2)
    stop = threading.Event()
    failures: list[str] = []
    asked = [0]

    def ask() -> None:
        with httpx.Client(timeout=PATIENCE) as client:
            while not stop.is_set():
                try:
                    answer = client.get(f"{gateway.url}/steady")
                    if (answer.status_code, answer.text) != (200, "here"):
                        failures.append(f"{answer.status_code} {answer.text[:100]}")
                except httpx.HTTPError as error:
                    failures.append(repr(error))
                asked[0] += 1

    threads = [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for number in range(2, 12):
            name = f"r{number * 71}"
            routes[name] = route(name, f"v{number}")
            controller.update(*bind(port), route("steady", "here"), *routes.values(), generation=number)
            controller.wait(lambda it, number=number: it.generation == number)
            assert body(gateway, name) == (200, f"v{number}")
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert failures == []
    assert asked[0] > 0


@pytest.mark.parametrize("mode", ["tls", "either"])
def test_with_tls_the_authority_is_verified(tmp_path: Path, port: int, mode: Mode) -> None:
    controller = Controller(LOCAL._replace(mode=mode))
    planes = []
    try:
        controller.update(*bind(port), route("a", "one"))
        gateway = data_plane(tmp_path, controller.environment(tmp_path), port)
        planes.append(gateway)
        gateway.wait_ready()
        assert body(gateway, "a") == (200, "one")
        # Another authority.
        other = tmp_path / "other"
        other.mkdir()
        environment = controller.environment(other)
        (other / "ca.crt").write_bytes(new_authority(datetime.now(UTC))[0])
        stranger = data_plane(other, environment, free_port())
        planes.append(stranger)
        stranger.wait_log("CERTIFICATE_VERIFY_FAILED")
        # Without TLS.
        plain = tmp_path / "plain"
        plain.mkdir()
        environment = controller.environment(plain)
        environment["XDS_ADDRESS"] = environment["XDS_ADDRESS"].replace("https", "http")
        bare = data_plane(plain, {**environment, "BIND_ADDRESS": "127.0.0.7"}, port)
        planes.append(bare)
        if mode == "tls":
            bare.wait_log("no stream to the controller")
            assert bare.fetch(f"http://127.0.0.1:{bare.readiness}/healthz/ready")[0] == 500
        else:
            bare.wait_ready()
    finally:
        for one in planes:
            one.process.kill()
            one.process.wait()
        controller.close()


def test_secrets_are_not_sent_without_tls(controller: Controller, start: Start, port: int) -> None:
    key = {"apiKey": {"keys": [{"key": "very-secret-key"}]}}
    controller.update(*bind(port), route("a", "one", policies=key))
    gateway = start(ready=False)
    gateway.wait_log("route/shop/a.00.http has a secret, which is not sent without TLS")
    assert "very-secret-key" not in gateway.log()
    controller.stop()
    controller.settings = controller.settings._replace(plain_secrets=True)
    controller.start()
    controller.update(*bind(port), route("a", "one", policies=key))
    gateway.wait_ready()
    assert body(gateway, "a")[0] == 401


def test_what_the_environment_says_wrong_ends_the_start(tmp_path: Path) -> None:
    for address, why in (("tcp://x", "XDS_ADDRESS is not"), ("http://x:1", "GATEWAY is required")):
        folder = tmp_path / why.partition(" ")[0]
        gateway = data_plane(folder, {"XDS_ADDRESS": address, "GATEWAY": ""}, free_port())
        assert gateway.process.wait(PATIENCE) == 1
        assert why in gateway.log()
