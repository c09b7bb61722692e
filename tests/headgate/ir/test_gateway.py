"""Laws of the whole IR."""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import FrozenInstanceError, is_dataclass

import pytest

import headgate.ir
from headgate.ir.route import Route

MODULES = [f"headgate.ir.{module.name}" for module in pkgutil.iter_modules(headgate.ir.__path__)]


@pytest.mark.parametrize("name", MODULES)
def test_every_class_of_the_ir_is_frozen_and_slotted_and_takes_keywords_only(name: str) -> None:
    module = importlib.import_module(name)
    for kind in vars(module).values():
        if isinstance(kind, type) and kind.__module__ == name and is_dataclass(kind):
            with pytest.raises(FrozenInstanceError):
                object.__new__(kind).anything = 1
            assert "__slots__" in vars(kind), kind
            assert kind.__match_args__ == (), kind


def test_a_value_of_the_ir_cannot_be_changed() -> None:
    route = Route(key="k", name="n", namespace="d", rule_name=None)
    with pytest.raises(FrozenInstanceError):
        route.name = "x"  # type: ignore[misc]
