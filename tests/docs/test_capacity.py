"""The page on `headgate bench`: its commands are ones that it takes."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from headgate.capacity.workload import FORMATS, KINDS
from headgate.cli.bench import command

PAGE = (Path(__file__).parents[2] / "docs/capacity.md").read_text()
COMMANDS = re.findall(r"^(headgate bench.*)$", PAGE, re.MULTILINE)


@pytest.mark.parametrize("line", COMMANDS)
def test_its_commands_are_taken(line: str) -> None:
    words = shlex.split(line)[2:]
    name = words.pop(0) if words and words[0] in command.commands else "run"
    command.commands[name].make_context(name, words)


def test_all_kinds_and_formats_are_there() -> None:
    assert len(COMMANDS) > 8
    assert [name for name in KINDS if f"| `{name}` |" not in PAGE] == []
    assert [name for name in FORMATS if f"`{name}`" not in PAGE] == []


def test_every_option_that_it_names_is_there() -> None:
    options = {option for one in command.commands.values() for parameter in one.params for option in parameter.opts}
    assert set(re.findall(r"`(--[a-z0-9-]+)", PAGE)) - options == set()
