"""Components in the log of the controller."""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Iterator

import pytest

from headgate.cluster.controller.components import COMPONENTS, BadLevel, ComponentLevels, log_to_stderr


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    for name in COMPONENTS:
        logging.getLogger(name).setLevel(logging.NOTSET)


def test_a_change_is_of_one_component() -> None:
    levels = ComponentLevels("info")
    levels.change("gw/translator=debug")
    assert str(levels) == "gw/syncer: info\ngw/translator: debug\ngateway-controller: info\ndeployer: info\ndefault: info\n"
    assert logging.getLogger("gw/translator").isEnabledFor(logging.DEBUG)
    for name in COMPONENTS:
        if name not in ("gw/translator", "default"):
            assert not logging.getLogger(name).isEnabledFor(logging.DEBUG)
    assert not logging.getLogger("headgate.tasks").isEnabledFor(logging.DEBUG)
    levels.change("error,deployer=warn")
    assert str(levels).splitlines() == [f"{name}: {'warn' if name == 'deployer' else 'error'}" for name in COMPONENTS]
    levels.reset()
    assert str(levels).splitlines() == [f"{name}: info" for name in COMPONENTS]


@pytest.mark.parametrize("text", ["loud", "gw/translator=", "other=debug", "debug,", "=debug,x"])
def test_a_malformed_change_changes_nothing(text: str) -> None:
    levels = ComponentLevels("warn")
    with pytest.raises(BadLevel):
        levels.change(text)
    assert set(str(levels).split()[1::2]) == {"warn"}


def test_each_line_names_its_component(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    with os.fdopen(writing, "w") as file:
        monkeypatch.setattr(sys, "stderr", file)
        log_to_stderr("json")
        ComponentLevels("info")
        logging.getLogger("deployer").info("one")
        logging.getLogger("headgate.tasks").info("two", extra={"task": "t"})
        logging.getLogger().handlers[:] = []
    lines = [json.loads(line) for line in os.fdopen(reading).read().splitlines()]
    assert [(one["component"], one["message"]) for one in lines] == [("deployer", "one"), ("default", "two")]
