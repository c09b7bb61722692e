"""The guide by task: configurations load as they stand, and its commands are commands."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest
import trustme
from tests.oracles.field_samples import JWKS

from headgate.cli.gwctl import root
from headgate.config.load import TextSource, load

PAGE = (Path(__file__).parents[2] / "docs/guide.md").read_text()
BLOCKS = re.findall(r"^```yaml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
COMMANDS = re.findall(r"^(?:\$ )?(gwctl [^|>\n]*)", PAGE, re.MULTILINE)


@pytest.mark.parametrize("text", BLOCKS, ids=range(len(BLOCKS)))
def test_configurations_load(text: str, tmp_path: Path) -> None:
    if "cert.pem" in text:
        found = trustme.CA().issue_cert("gateway.example")
        found.cert_chain_pems[0].write_to_path(tmp_path / "cert.pem")
        found.private_key_pem.write_to_path(tmp_path / "key.pem")
        text = text.replace("cert.pem", f"{tmp_path}/cert.pem").replace("key.pem", f"{tmp_path}/key.pem")
    if "jwks.json" in text:
        (tmp_path / "jwks.json").write_text(JWKS)
        text = text.replace("jwks.json", f"{tmp_path}/jwks.json")
    variables = dict.fromkeys(re.findall(r"\$\{(\w+)\}", text), "x")
    if "RED_KEY" in variables:
        variables |= {"RED_KEY": "red", "BLUE_KEY": "blue"}
    assert load(TextSource(text), environ=variables).gateway.binds


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_are_commands(command: str) -> None:
    found: click.Command = root
    context = click.Context(root)
    words = shlex.split(command)[1:]
    while isinstance(found, click.Group):
        found = found.get_command(context, words.pop(0)) or pytest.fail(command)
    found.make_context(found.name, words, resilient_parsing=False).close()


def test_there_are_many() -> None:
    assert len(BLOCKS) >= 15
    assert len(COMMANDS) >= 10
