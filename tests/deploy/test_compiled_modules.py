"""A wheel of modules that were compiled before (HEADGATE_COMPILED), which spares CI a second compilation of all of them."""

from __future__ import annotations

import importlib.util
import os
import sysconfig
from pathlib import Path
from types import ModuleType

import pytest
from setuptools import Distribution, Extension

SETUP = Path(__file__).parents[2] / "setup.py"
MODULE = Path("package", f"one{sysconfig.get_config_var('EXT_SUFFIX')}")


@pytest.fixture
def compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a source of one module."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "engine"
    (folder / "package").mkdir(parents=True)
    (folder / "package" / "one.pyx").write_text("this is not compiled")
    monkeypatch.setenv("HEADGATE_COMPILED", str(folder))
    return folder


def definitions() -> ModuleType:
    """Return what setup.py defines."""
    spec = importlib.util.spec_from_file_location("headgate_setup", SETUP)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def build(folder: Path) -> Path:
    """Build the module into a folder; return its path there."""
    command = definitions().BuildExt(Distribution({"ext_modules": [Extension("package.one", ["engine/package/one.pyx"])]}))
    command.build_lib, command.build_temp = str(folder), str(folder / "temporary")
    command.ensure_finalized()
    command.run()
    return folder / MODULE


def test_the_module_beside_its_source_is_taken(compiled: Path, tmp_path: Path) -> None:
    (compiled / MODULE).write_bytes(b"machine code")
    assert build(tmp_path / "built").read_bytes() == b"machine code"


def test_one_that_is_missing_or_older_than_its_source_is_not(compiled: Path, tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"one\..*so is not compiled from the one\.pyx beside it"):
        build(tmp_path / "built")
    module = compiled / MODULE
    module.write_bytes(b"machine code")
    os.utime(module, (1, 1))
    with pytest.raises(SystemExit, match="build in place first"):
        build(tmp_path / "built")
