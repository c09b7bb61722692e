"""Writes plain values as YAML that `document.read` reads as the same values."""

from __future__ import annotations

from typing import Any, Final

import yaml

from headgate.document.read import resolve

_TEXT: Final = "tag:yaml.org,2002:str"
WIDTH: Final = 120


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)


def _string(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    if "\n" in value.rstrip("\n") and value.isprintable() is False and "\t" not in value and "\r" not in value:
        return dumper.represent_scalar(_TEXT, value, style="|")
    # The emitter implements YAML 1.1, so texts that are numbers only in the core schema of YAML 1.2 are quoted here.
    quoted = not isinstance(resolve(value), str)
    return dumper.represent_scalar(_TEXT, value, style="'" if quoted else None)


_Dumper.add_representer(str, _string)


def write(value: Any, *, short: bool = False) -> str:
    """Return the YAML text of a value that consists of JSON types. Keys keep their order. `short`: maps and lists of
    nothing but scalars stand on one line."""
    style = None if short else False
    return yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=WIDTH, default_flow_style=style)
