"""The node tree of a document: every value knows its line and column."""

from __future__ import annotations

from dataclasses import field
from typing import Any, Final

from headgate.document.lazy_dataclass import dataclass
from headgate.errors import ConfigError, Problem

Scalar = str | int | float | bool | None
Value = Scalar | list["Node"] | dict[str, "Entry"]

KINDS: Final = {
    str: "a string",
    bool: "true or false",
    int: "an integer",
    float: "a number",
    list: "a list",
    dict: "a map",
    type(None): "null",
}


class Node:
    """One value. `line` and `column` count from 1.

    `loose` marks a text that is one whole `${VAR}`: it may become a number or a bool where the field wants
    one. `expanded` marks a text in which a variable was replaced: it may be a secret and is never quoted in
    an error. Nodes reached through an alias are the same object in several places, so a node does not know
    its path.
    """

    __slots__ = ("column", "expanded", "line", "loose", "value")

    def __init__(self, value: Value, line: int, column: int) -> None:
        self.value = value
        self.line = line
        self.column = column
        self.loose = False
        self.expanded = False

    @property
    def kind(self) -> str:
        """What the value is, in words for an error message."""
        return KINDS[type(self.value)]


@dataclass(slots=True)
class Entry:
    """One entry of a map: the place of its key, and its value."""

    line: int
    column: int
    node: Node


def plain(node: Node) -> Any:
    """Return the JSON form of a node."""
    value = node.value
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {key: plain(entry.node) for key, entry in value.items()}
    return value


def child(path: str, key: str) -> str:
    """Return the path of entry `key`: `routes.a`, or `routes["a.b"]` where the key is no plain word."""
    if not key.isidentifier() and (not key or not all(char.isalnum() or char in "_-" for char in key)):
        return f"{path}[{key!r}]"
    return f"{path}.{key}" if path else key


@dataclass(slots=True)
class Report:
    """Collects the faults of one document, so that all are told at once; `limit` bounds them."""

    file: str
    errors: list[ConfigError] = field(default_factory=list)
    limit: int = 200

    def add(self, problem: Problem, path: str, message: str, at: Node | Entry | None = None) -> None:
        """Note a fault at the place of `at`; faults beyond `limit` are dropped."""
        if len(self.errors) < self.limit:
            line, column = (at.line, at.column) if at is not None else (0, 0)
            self.errors.append(ConfigError(problem, path, message, self.file, line, column))

    @property
    def broken(self) -> bool:
        """Whether there is a fault other than "not supported yet"."""
        return any(error.problem is not Problem.UNSUPPORTED for error in self.errors)

    def in_order(self) -> tuple[ConfigError, ...]:
        """Return the faults in the order of the document, each once."""
        unique = dict.fromkeys(self.errors)
        return tuple(sorted(unique, key=lambda error: (error.line, error.column)))
