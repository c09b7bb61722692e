"""What a translation could not carry over."""

from __future__ import annotations

import re
from typing import Any, Final

Tree = dict[str, Any]

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NO_TARGET: Final = re.compile(r"[^a-z0-9.-]+")


class ImportNotes:
    """The notes of one translation, in order: each is a path of the source and a sentence."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def add(self, path: str, why: str) -> None:
        """Say of a place in the source why it is not in the result, or what to look at."""
        self.lines.append(f"{path}: {why}")

    def rest(self, path: str, given: Tree, known: frozenset[str] | set[str]) -> None:
        """Say of each field that is not `known` that nothing stands for it."""
        for name in given:
            if name not in known:
                self.add(f"{path}.{name}" if path else str(name), "has no counterpart")


def literal(text: str) -> str:
    """Return a text that the file reads as it stands: a dollar sign begins no variable."""
    return text.replace("$", "$$")


def variable(name: str, default: str | None = None) -> str:
    """Return the reference to a variable of the environment. Raises ValueError if it is no name."""
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name!r} is not a valid name of a variable")
    return f"${{{name}}}" if default is None else f"${{{name}:-{default}}}"


def target_name(text: str, taken: set[str]) -> str:
    """Return a name that an MCP target may have, made of a text, and add it to those that are `taken`."""
    base = _NO_TARGET.sub("-", text.lower()).strip("-.") or "server"
    name, number = base, 2
    while name in taken:
        name, number = f"{base}-{number}", number + 1
    taken.add(name)
    return name
