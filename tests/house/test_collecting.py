"""What is done before the first test of a run (tests/collecting.py)."""

from __future__ import annotations

import gc
import os
import sys
from pathlib import Path

import pytest
from tests import collecting

TEXT = "def test_one() -> None:\n    assert 1 == 1\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    for name in ("test_one.py", "test_two.py", "conftest.py", "rig.py"):
        (tmp_path / name).write_text(TEXT)
    return tmp_path


def test_assertions_are_rewritten_once(folder: Path, pytestconfig: pytest.Config) -> None:
    tests = [folder / name for name in ("conftest.py", "test_one.py", "test_two.py")]
    assert collecting.stale(tests) == tests
    collecting.rewrite_all(pytestconfig, folder, processes=2)
    assert collecting.stale(tests) == []
    assert not collecting.cache_of(folder / "rig.py").exists(), "it is no test"
    (folder / "test_one.py").write_text(TEXT + "\n")
    os.utime(folder / "test_one.py", (1, 1))
    assert collecting.stale(tests) == [folder / "test_one.py"]


def test_a_fault_is_left_to_pytest(folder: Path, pytestconfig: pytest.Config) -> None:
    (folder / "test_one.py").write_text("def (:\n")
    collecting.rewrite_all(pytestconfig, folder, processes=1)
    assert collecting.stale([folder / "test_one.py", folder / "test_two.py"]) == [folder / "test_one.py"]


def test_nothing_is_written_where_bytecode_is_not_wanted(
    folder: Path, pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    collecting.rewrite_all(pytestconfig, folder)
    assert not (folder / "__pycache__").exists()


def test_the_collector_rests_and_goes_on() -> None:
    with collecting.without_collector():
        assert not gc.isenabled()
    assert gc.isenabled()
