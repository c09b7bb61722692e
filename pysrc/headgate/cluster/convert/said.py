"""What a file says, with the names and words of its tables, and where each part stands.

A file is read here after the loader has found no fault in it. Other spellings of fields and words are gone, and so is
what counts as left out.
"""

from __future__ import annotations

from typing import Any

from headgate.config.check import Checker
from headgate.config.shape.vocabulary import (
    Case,
    ListOf,
    MapOf,
    Object,
    Ref,
    Scalar,
    Shape,
    Union,
    WordChoice,
)
from headgate.document.nodes import DocumentNode, Report, child, plain
from headgate.document.read import resolve


class Hidden(str):
    """A text that is a secret."""

    __slots__ = ()


class SaidMap(dict[str, Any]):
    """A map with fields. `shape` is the name of its table, `path` its place in the file; `lines` has the line of each
    field, and `line` that of the map."""

    __slots__ = ("line", "lines", "path", "shape")

    def __init__(self, shape: str, path: str, line: int) -> None:
        super().__init__()
        self.shape = shape
        self.path = path
        self.line = line
        self.lines: dict[str, int] = {}

    def at(self, name: str) -> tuple[str, int]:
        """Return path and line of a field; those of the map for one that is not there."""
        return (child(self.path, name), self.lines[name]) if name in self.lines else (self.path, self.line)

    def maps(self, name: str) -> list[SaidMap]:
        """Return the list `name` of maps, empty when it is absent."""
        found: list[SaidMap] = self.get(name) or []
        return found

    def inner(self, name: str) -> SaidMap:
        """Return the map `name`, an empty one when it is absent."""
        found = self.get(name)
        return found if isinstance(found, SaidMap) else SaidMap("", *self.at(name))


def said(shape: Shape, node: DocumentNode, path: str = "") -> Any:
    """Return the value of a node that a shape admits: a SaidMap for a map with fields, else plain JSON."""
    match shape:
        case Ref():
            return said(shape.target(), node, path)
        case Object():
            return _object(shape, node, path)
        case ListOf():
            assert isinstance(node.value, list)
            return [said(shape.item, one, f"{path}[{index}]") for index, one in enumerate(node.value)]
        case MapOf():
            assert isinstance(node.value, dict)
            return {key: said(shape.item, one.node, child(path, key)) for key, one in node.value.items()}
        case Union():
            fits = Checker(Report("")).fits
            for case in shape.cases:
                inner = case.shape if isinstance(case, Case) else case
                if fits(case, inner, node):
                    return said(inner, node, path)
            raise AssertionError(f"{path} is no {shape.name}")
        case WordChoice():
            return shape.spellings()[str(node.value)]
        case Scalar() if node.loose and type(node.value) not in shape.types:
            return resolve(str(node.value))
        case Scalar() if shape.secret and isinstance(node.value, str):
            return Hidden(node.value)
        case _:
            return plain(node)


def _object(shape: Object, node: DocumentNode, path: str) -> SaidMap:
    assert isinstance(node.value, dict)
    found = SaidMap(shape.name, path, node.line)
    for key, entry in node.value.items():
        name = key if key in shape.fields else shape.aliases[key]
        if shape.fields[name].later or entry.node.value is None:
            continue
        # As the file has it, so that the place can be found there.
        found[name] = said(shape.fields[name].shape, entry.node, child(path, key))
        found.lines[name] = entry.line
    return found
