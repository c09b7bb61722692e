"""Pages that are made from sources: log fields, command lines, custom resources."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType

import click
import pytest
from tests.deploy.script_rig import script

from headgate.cli.gwctl import root
from headgate.cli.main import PROGRAMS
from headgate.cli.options import parser
from headgate.cluster.resources.kinds import KINDS
from headgate_engine.log.keys import FIELDS, ORDER

HOME = Path(__file__).parents[2]
log_fields, commands, crds = (script(f"ci/pages/{name}.py") for name in ("log_fields", "commands", "crds"))
PAGES = (
    (log_fields, "docs/log-fields.md", "log-fields"), (commands, "docs/commands.md", "commands"), (crds, "docs/crds.md", "crds-page"),
)  # fmt: skip
# What a step adds to the line of its request, where the key is written there.
ADDED = re.compile(r"(?:add_log_field|_log(?:_once)?)\(\s*\"([a-z_0-9.]+)\"|found\.append\(\(\"([a-z_0-9.]+)\",")


@pytest.mark.parametrize(("module", "path", "target"), PAGES, ids=[path for _, path, _ in PAGES])
def test_committed_pages_are_current(
    module: ModuleType, path: str, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    assert (HOME / path).read_text() == module.page(), f"run: make {target}"


def test_every_field_that_a_step_adds_is_on_the_page() -> None:
    listed = log_fields.MEANINGS.keys() | log_fields.OTHERS.keys()
    found = {
        name
        for folder in ("engine/headgate_engine", "pysrc/headgate")
        for suffix in ("*.pyx", "*.py")
        for path in (HOME / folder).rglob(suffix)
        for pair in ADDED.findall(path.read_text())
        for name in pair
        if "." in name
    }
    assert len(found) > 15
    assert sorted(found - listed) == []
    assert set(ORDER) | set(FIELDS) <= listed


def test_a_field_without_a_meaning_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_fields, "ORDER", (*ORDER, "new.field"))
    with pytest.raises(KeyError, match=r"new\.field"):
        log_fields.page()
    monkeypatch.setattr(log_fields, "ORDER", ORDER[:-1])
    with pytest.raises(KeyError, match="duration"):
        log_fields.page()


def test_every_command_and_option_is_on_the_page() -> None:
    page = (HOME / "docs/commands.md").read_text()
    waiting = [click.Context(root, info_name="gwctl")]
    while waiting:
        context = waiting.pop()
        assert re.search(rf"^##+ {re.escape(context.command_path)}$", page, re.MULTILINE), context.command_path
        section = re.split(rf"^##+ {re.escape(context.command_path)}$", page, flags=re.MULTILINE)[1].split("\n##", 1)[0]
        for parameter in context.command.params:
            for option in parameter.opts if isinstance(parameter, click.Option) and not parameter.hidden else ():
                assert option in section, f"{context.command_path} {option}"
        if isinstance(context.command, click.Group):
            for name in context.command.list_commands(context):
                below = context.command.get_command(context, name)
                assert below is not None
                waiting.append(click.Context(below, info_name=name, parent=context))
    for action in parser()._actions:
        assert all(f"`{option}" in page for option in action.option_strings)
    for name in PROGRAMS:
        assert f"`headgate {name}`" in page


def test_a_program_that_is_described_nowhere_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "PROGRAMS", {**PROGRAMS, "new": "new"})
    with pytest.raises(KeyError, match="new"):
        commands.page()


def test_every_kind_and_its_fields_are_on_the_page() -> None:
    page = (HOME / "docs/crds.md").read_text()
    for kind in KINDS:
        section = page.split(f"## {kind.name}\n", 1)[1].split("\n## ", 1)[0]
        for name in dict(kind.spec)["properties"]:
            assert re.search(rf"^\| `{name}[\[`. ]", section, re.MULTILINE), f"{kind.name} {name}"


def test_types_of_fields() -> None:
    assert crds.kind_of({"type": "integer", "minimum": 1, "maximum": 65535}) == "integer (1..65535)"
    assert crds.kind_of({"type": "array", "maxItems": 4, "items": {"type": "string"}}) == "list of string (..4)"
    assert crds.kind_of({"type": "object", "additionalProperties": {"type": "boolean"}}) == "map of boolean"
    assert crds.kind_of({"enum": list("abcdefghij")}).endswith("`h` and 2 more")
    assert crds.kind_of({}) == "any value"
