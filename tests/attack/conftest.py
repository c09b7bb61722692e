"""A gateway, a backend and a bystander for all tests of a module: attacks are many, and each is small."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.attack.recording_rig import Recording
from tests.end_to_end.running import Gateway


def is_long() -> bool:
    """Whether this is `make attack`: more of everything, with figures."""
    return os.environ.get("HEADGATE_ATTACK") == "long"


@pytest.fixture(scope="session")
def long() -> bool:
    return is_long()


@pytest.fixture(scope="module")
def recording() -> Iterator[Recording]:
    found = Recording()
    yield found
    found.close()


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Gateway]]:
    """`serving(text, workers=1, environment={}, settings="")` starts a gateway that ends with the module; no fault of ours may be in its log."""
    started: list[Gateway] = []

    def start(text: str, workers: int = 1, environment: dict[str, str] | None = None, settings: str = "") -> Gateway:
        found = Gateway(tmp_path_factory.mktemp("gateway"), text, workers, environment or {}, settings)
        started.append(found)
        found.wait_ready()
        return found

    yield start
    ended: list[Any] = []
    for one in started:
        with contextlib.suppress(OSError):
            ended.append((one, one.stop()))
    for one, status in ended:
        assert "Traceback" not in one.log(), one.log()[-5000:]
        assert status == 0, one.log()[-5000:]
