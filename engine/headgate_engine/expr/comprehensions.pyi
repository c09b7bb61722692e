from collections.abc import Iterable
from typing import Any

from headgate_engine.expr.nodes import Node

KINDS: dict[str, int]

class Comprehension(Node):
    """One macro over a list or map.

    kind: a key of KINDS. predicate, result: None if the macro has none. first, second: slots of its variables;
    second is -1 if it has one variable.
    """

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
    """Return the (first, second) variables of each visit.

    With one variable, first is a list's member or a map's key. With two, they are (index, member) or (key, value).
    Raises EvaluationError if `holder` is neither a list nor a map.
    """

class With(Node):
    """`x.with(v, expr)` and `cel.bind(v, x, expr)`."""

    def __init__(self, value: Node, slot: int, body: Node) -> None: ...

class OptionalMap(Node):
    """`o.optMap(v, expr)` and, with `flat`, `o.optFlatMap(v, expr)`."""

    def __init__(self, operand: Node, slot: int, body: Node, flat: bool) -> None: ...

class CustomCall(Node):
    """A call of a function that the configuration defines: its parameters are slots, its body is part of this tree."""

    def __init__(self, slots: tuple[int, ...], arguments: tuple[Node, ...], body: Node) -> None: ...
