"""The configurations of gateways that measurements start."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from headgate.capacity.errors import BenchError
from headgate.capacity.own_gateway import BenchGateway, configuration, free_port, write_configuration
from headgate.capacity.workload import FORMATS, KINDS
from headgate.config.load import FileSource, load


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("kind", KINDS)
def test_they_load(kind: str, form: str, tmp_path: Path) -> None:
    path = write_configuration(tmp_path, configuration(kind, form, 4000, 8000, 3))
    loaded = load(FileSource(str(path)))
    assert loaded.warnings == ()
    assert "127.0.0.1:8000" in json.loads(path.read_text()).__str__()


def test_a_gateway_that_does_not_start_says_why(tmp_path: Path) -> None:
    path = write_configuration(tmp_path, {"gateways": {"default": {"prt": free_port()}}})
    with pytest.raises(BenchError, match="prt"):
        BenchGateway(["-f", str(path)])
