"""What of a file cannot be converted to resources: where it is, and why."""

from __future__ import annotations

from typing import Any, NamedTuple

from headgate.cluster.convert.fields import reason
from headgate.cluster.convert.said import SaidMap


class Loss(NamedTuple):
    """`path` and `line` in the file; line 0 where it is not known."""

    path: str
    line: int
    why: str

    def told(self, file: str) -> str:
        """Return the sentence for people."""
        place = f"{file}:{self.line}" if self.line else file
        return f"{self.path}: {self.why} ({place})" if self.path else f"{self.why} ({place})"


class Losses:
    """Collects losses; each place is told once, with the first reason."""

    def __init__(self) -> None:
        self._found: dict[str, Loss] = {}

    def add(self, of: SaidMap, name: str, why: str = "") -> None:
        """Note that a field is lost; "" as the reason means that of the table of fields."""
        path, line = of.at(name)
        self._found.setdefault(path, Loss(path, line, why or reason(of.shape, name)))

    def at(self, path: str, line: int, why: str) -> None:
        self._found.setdefault(path, Loss(path, line, why))

    def more(self, path: str, line: int, why: str) -> None:
        """Note a further reason at a place."""
        self._found.setdefault(f"{path}: {why}", Loss(path, line, why))

    def rest(self, of: Any, *known: str) -> None:
        """Note every field but those that are known."""
        for name in of if isinstance(of, SaidMap) else ():
            if name not in known:
                self.add(of, name)

    def covers(self, path: str) -> bool:
        """Tell whether a place, or something in it, or what it stands in, is lost."""
        found = {one.path for one in self._found.values()}
        return any(
            one == path or one.startswith((f"{path}.", f"{path}[")) or path.startswith((f"{one}.", f"{one}["))
            for one in found
        )

    def __len__(self) -> int:
        return len(self._found)

    def in_order(self) -> list[Loss]:
        """Return the losses in the order of the file."""
        return sorted(self._found.values(), key=lambda one: (one.line, one.path))
