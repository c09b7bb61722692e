"""What the arguments say, and the file that is made on the first start."""

from __future__ import annotations

from pathlib import Path

import pytest

from headgate.cli.main import default_file, options_of
from headgate.cli.options import parser
from headgate.config.load import FileSource, load


@pytest.mark.parametrize("name", ["plain", 'with "quotes" and ${HOME} é'])
def test_it_loads_and_keeps_its_data_beside_itself(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / name))
    path = default_file()
    gateway = load(FileSource(path)).gateway
    assert gateway.process.request_log.path == str(tmp_path / name / "headgate" / "data.db")
    assert [bind.port for bind in gateway.binds] == [4000]
    Path(path).write_text("gateways: {}\n")
    assert default_file() == path
    assert Path(path).read_text() == "gateways: {}\n"


@pytest.mark.parametrize("words", [
    ["-f", "a.yaml"], ["--file", "a.yaml"], ["-f", "-"], ["-f", "./-a"], ["-f", "a=b"], ["-fa.yaml"], ["--file=a.yaml"], [], ["-c", "{}"],
    ["-f", "a", "--validate-only"], ["-f", ""], ["--validate-only"], ["-f", "oneshot"], ["oneshot", "-f", "a"], ["-V"],
], ids=" ".join)  # fmt: skip
def test_what_is_read_without_a_parser_is_what_the_parser_reads(words: list[str]) -> None:
    assert vars(options_of(words)) == vars(parser().parse_args(words))


@pytest.mark.parametrize("words", [["-f", "-x"], ["-f", "--"], ["-f", "--version"], ["-f"], ["-x", "a"]], ids=" ".join)
def test_what_the_parser_refuses_is_refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        options_of(words)
    assert "usage: headgate" in capsys.readouterr().err
