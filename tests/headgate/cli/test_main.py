"""The file that is made on the first start."""

from __future__ import annotations

from pathlib import Path

import pytest

from headgate.cli.main import default_file
from headgate.config.load import FileSource, load


@pytest.mark.parametrize("name", ["plain", 'with "quotes" and ${HOME} é'])
def test_it_loads_and_keeps_its_data_beside_itself(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / name))
    path = default_file()
    gateway = load(FileSource(path)).gateway
    assert gateway.process.request_log == str(tmp_path / name / "headgate" / "data.db")
    assert [bind.port for bind in gateway.binds] == [4000]
    Path(path).write_text("gateways: {}\n")
    assert default_file() == path
    assert Path(path).read_text() == "gateways: {}\n"
