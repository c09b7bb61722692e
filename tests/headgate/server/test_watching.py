"""The watchers of one worker, also of one that has no configuration yet."""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import Any, cast

import pytest

from headgate.config.load import load_text
from headgate.server.control import WatchCommand
from headgate.server.watching import Watching
from headgate_engine.shared.segment import Segment

GATEWAY = load_text("gateways: {default: {port: 3000}}\n", "config.yaml").gateway


class Rig:
    """A worker with its list, and pipes of watchers."""

    def __init__(self) -> None:
        self.worker: Any = SimpleNamespace(watchers=None)
        self.list = Watching(cast(Any, self.worker), Segment.create())

    def offer(self, number: int, expression: str | None = None, *, early: bool = True) -> int:
        """Tell of a watcher; the end of its pipe that the supervisor reads, which then only the worker can write to."""
        reader, writer = os.pipe()
        os.set_blocking(reader, False)
        assert self.list.add(WatchCommand(number, expression, 100), writer, None if early else GATEWAY) == []
        return reader


def held(reader: int) -> bool:
    """Whether the worker still has its end."""
    try:
        return os.read(reader, 1) != b""
    except BlockingIOError:
        return True


@pytest.fixture
def rig() -> Rig:
    return Rig()


def test_those_that_come_before_the_configuration_wait_for_it(rig: Rig) -> None:
    readers = [rig.offer(1), rig.offer(2, "request.method == 'GET'"), rig.offer(3, "nonsense(")]
    assert rig.worker.watchers is None, "there is nothing yet that a trace could tell of"
    rig.list.configured(GATEWAY)
    assert rig.worker.watchers is not None
    assert [held(reader) for reader in readers] == [True, True, False]
    for number in (1, 2):
        rig.list.drop(number)
    assert rig.worker.watchers is None
    assert not any(held(reader) for reader in readers)


def test_one_that_leaves_before_the_configuration_is_forgotten(rig: Rig) -> None:
    reader = rig.offer(1)
    rig.list.drop(1)
    assert not held(reader)
    rig.list.configured(GATEWAY)
    assert rig.worker.watchers is None


@pytest.mark.parametrize("early", [True, False])
def test_one_that_is_told_twice_holds_one_pipe(rig: Rig, early: bool) -> None:
    first, second = rig.offer(1, early=early), rig.offer(1, early=early)
    assert (held(first), held(second)) == (False, True)
    rig.list.configured(GATEWAY)
    rig.list.drop(1)
    assert not held(second)
