"""Data planes that take their configuration from a controller over the discovery stream."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.end_to_end.delivery_rig import Controller, bind, data_plane, route
from tests.end_to_end.running import PATIENCE, Gateway, free_port

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
