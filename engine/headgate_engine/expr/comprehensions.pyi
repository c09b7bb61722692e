from collections.abc import Iterable
from typing import Any

from headgate_engine.expr.nodes import Node

KINDS: dict[str, int]

class Comprehension(Node):
    """kind: a key of KINDS. predicate, result: None where the macro has none. first, second: slots, -1 for none."""

    def __init__(
        self,
        kind: str,
        source: Node,
        first: int,
        second: int = -1,
        predicate: Node | None = None,
        result: Node | None = None,
    ) -> None: ...

def pairs(holder: Any, two: bool) -> Iterable[tuple[Any, Any]]:
    """Return what one pass visits: members or keys, or with two variables (index, member) or (key, value)."""

class With(Node):
    """`x.with(v, expr)` and `cel.bind(v, x, expr)`."""

    def __init__(self, value: Node, slot: int, body: Node) -> None: ...

class OptionalMap(Node):
    """`o.optMap(v, expr)` and, with `flat`, `o.optFlatMap(v, expr)`."""

    def __init__(self, operand: Node, slot: int, body: Node, flat: bool) -> None: ...

class CustomCall(Node):
    """A function of the configuration: its parameters are slots, its body is part of this tree."""

    def __init__(self, slots: tuple[int, ...], arguments: tuple[Node, ...], body: Node) -> None: ...
