"""The naive oracle, loaded from where shared test code lives."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

ORACLES = Path(__file__).resolve().parents[2] / "oracles"


@pytest.fixture(scope="session")
def naive() -> ModuleType:
    """Return tests/oracles/route_naive.py."""
    name = "oracle_route_naive"
    spec = importlib.util.spec_from_file_location(name, ORACLES / "route_naive.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
