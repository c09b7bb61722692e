"""`config` of the dump."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from headgate.config.dump_process import duration, settings
from headgate.ir.gateway import Gateway


def shown(loaded: Callable[..., Gateway], config: str) -> dict[str, Any]:
    return settings(loaded(f"gateways: {{default: {{port: 3000}}}}\nconfig: {config}"), 7, 2)


def test_addresses_of_servers_are_tagged(loaded: Callable[..., Gateway]) -> None:
    config = shown(loaded, '{statsAddr: localhost:1, readinessAddr: "off"}')
    assert config["adminAddr"] == {"SocketAddr": "127.0.0.1:15000"}
    assert config["statsAddr"] == {"Localhost": [True, 1]}
    assert config["readinessAddr"] == "Off"


def test_tunnels_of_a_mesh(loaded: Callable[..., Gateway]) -> None:
    said = {
        "windowSize": 70000, "connectionWindowSize": 80000, "frameSize": 20000, "poolMaxStreamsPerConn": 7,
        "poolUnusedReleaseTimeout": "1m0s",
    }  # fmt: skip
    assert shown(loaded, f"{{hbone: {said}}}".replace("1m0s", "60s"))["hbone"] == said
    usual = {
        "windowSize": 4194304, "connectionWindowSize": 16777216, "frameSize": 1048576, "poolMaxStreamsPerConn": 100,
        "poolUnusedReleaseTimeout": "5m0s",
    }  # fmt: skip
    assert shown(loaded, "{}")["hbone"] == usual


def test_another_setting_of_tunnels_is_another_configuration(loaded: Callable[..., Gateway]) -> None:
    first, second = (shown(loaded, f"{{hbone: {{frameSize: {size}}}}}")["digest"] for size in (20000, 20001))
    assert first != second


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [(0, "0s"), (250, "250ms"), (1500, "1.5s"), (5000, "5s"), (90_000, "1m30s"), (3_600_000, "1h0m0s")],
)
def test_durations_print_as_go_does(milliseconds: int, text: str) -> None:
    assert duration(milliseconds) == text
