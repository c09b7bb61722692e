"""The page on routing: its configurations load as they stand."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from example_files import lay_out

from headgate.config.load import FileSource, load

PAGE = (Path(__file__).parents[2] / "docs/routing.md").read_text()
BLOCKS = re.findall(r"^```yaml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("text", BLOCKS)
def test_configurations_load(text: str, tmp_path: Path) -> None:
    lay_out(tmp_path)
    (tmp_path / "config.yaml").write_text(text)
    gateway = load(FileSource(str(tmp_path / "config.yaml"))).gateway
    assert gateway.binds


def test_there_are_some() -> None:
    assert BLOCKS
