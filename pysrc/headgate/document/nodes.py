"""The node tree of a document. Each node has the line and column of its value."""

from __future__ import annotations

from dataclasses import field
from typing import Any, Final

from headgate.document.lazy_dataclass import dataclass
from headgate.errors import ConfigError, Problem

Scalar = str | int | float | bool | None
Value = Scalar | list["DocumentNode"] | dict[str, "MapEntry"]

KINDS: Final = {
    str: "a string",
    bool: "true or false",
    int: "an integer",
    float: "a number",
    list: "a list",
    dict: "a map",
    type(None): "null",
}


class DocumentNode:
    """One value. `line` and `column` count from 1.

    `loose` is True for a text that was exactly one `${VAR}`: it is converted to a number or a bool if the field
    requires one. `expanded` is True for a text in which a variable was replaced: it may be a secret, so errors never
    quote it. An aliased node appears in several places of the tree, so a node has no path.
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
        """The type of the value in words, for error messages."""
        return KINDS[type(self.value)]


@dataclass(slots=True)
class MapEntry:
    """One entry of a map: the position of its key, and the node of its value."""

    line: int
    column: int
    node: DocumentNode


def plain(node: DocumentNode) -> Any:
    """Return the value of a node as plain JSON types."""
    value = node.value
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {key: plain(entry.node) for key, entry in value.items()}
    return value


def child(path: str, key: str) -> str:
    """Return the path of the entry `key`: `routes.a`, or `routes['a.b']` if the key is not a plain word."""
    if not key.isidentifier() and not _is_plain(key):
        return f"{path}[{key!r}]"
    return f"{path}.{key}" if path else key


def _is_plain(key: str) -> bool:
    return bool(key) and all(char.isalnum() or char in "_-" for char in key)


@dataclass(slots=True)
class Report:
    """Collects the faults of one document, up to `limit` of them, so that all of them are reported together.

    `first`: paths whose faults others may come of. `unset`: texts with a variable that is not set, which are not what
    the user means: nothing else is told of them. `count`: of all faults, those that are not told among them.
    """

    file: str
    errors: list[ConfigError] = field(default_factory=list)
    limit: int = 200
    first: set[str] = field(default_factory=set)
    unset: list[DocumentNode] = field(default_factory=list)
    count: int = 0

    def add(self, problem: Problem, path: str, message: str, at: DocumentNode | MapEntry | None = None) -> None:
        """Add a fault at the position of `at`. Faults beyond `limit` are dropped."""
        self.count += 1
        node = at.node if isinstance(at, MapEntry) else at
        if any(one is node for one in self.unset):
            return
        if len(self.errors) < self.limit:
            if "/" in message and ("?" in message or "@" in message):
                from headgate.document.credentials import shown_message  # faults are rare

                message = shown_message(message)
            line, column = (at.line, at.column) if at is not None else (0, 0)
            self.errors.append(ConfigError(problem, path, message, self.file, line, column))

    @property
    def broken(self) -> bool:
        """True if there is a fault other than "not supported yet"."""
        return any(error.problem is not Problem.UNSUPPORTED for error in self.errors)

    def in_order(self) -> tuple[ConfigError, ...]:
        """Return the faults without duplicates, in the order of the document, those of which others may come first."""
        unique = dict.fromkeys(self.errors)
        return tuple(sorted(unique, key=lambda error: (error.path not in self.first, error.line, error.column)))
