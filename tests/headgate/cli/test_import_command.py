"""`headgate import`."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
import yaml

from headgate.cli.import_command import INCOMPLETE, run

SERVERS = {"mcpServers": {"a": {"command": "npx", "env": {"T": "${TOKEN}"}}}}


def test_the_result_goes_to_standard_output_and_notes_to_standard_error(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("model_list: [{model_name: a, litellm_params: {model: gpt-5, timeout: 1, api_key: os.environ/KEY}}]\n")
    assert run(["litellm", str(path), "--port", "4100"]) == 0
    said = capsys.readouterr()
    assert yaml.safe_load(said.out)["gateways"] == {"default": {"port": 4100}}
    assert "headgate import: model_list[0].litellm_params.timeout: has no counterpart\n" in said.err
    assert "headgate import: variables to set: KEY\n" in said.err
    assert run(["litellm", str(path), "--strict"]) == INCOMPLETE


def test_files_of_editors_have_comments_and_commas(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    text = '// mine\n{"servers": {/* one */ "a": {"url": "https://a.example//mcp", "type": "http",},\n},}'
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    assert run(["mcp-servers", "-", "--strict"]) == 0
    assert yaml.safe_load(capsys.readouterr().out)["mcp"]["targets"] == [{"name": "a", "mcp": {"host": "https://a.example//mcp"}}]


def test_a_file_is_for_its_owner(tmp_path: Path) -> None:
    source, output = tmp_path / "mcp.json", tmp_path / "config.yaml"
    source.write_text(json.dumps(SERVERS))
    assert run(["mcp-servers", str(source), "-o", str(output)]) == 0
    assert output.stat().st_mode & 0o777 == 0o600
    assert yaml.safe_load(output.read_text())["mcp"]["targets"][0]["name"] == "a"


@pytest.mark.parametrize(("text", "why"), [
    ("[]", "expected a map"), ("{}", "found no servers"), ("{", "Expecting"), ("a: [", "while parsing"),
    (json.dumps({"mcpServers": {"a": {"url": "ftp://x"}}}), "the result cannot be used"),
])  # fmt: skip
def test_what_cannot_be_used_is_told(text: str, why: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text(text)
    assert run(["mcp-servers", str(path)]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith(f"headgate import: {path}: ")
    assert why in said.err


def test_a_file_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["litellm", "/none/x"]) == 1
    assert "No such file" in capsys.readouterr().err
