from collections.abc import Iterable
from typing import Any

from headgate_engine.expr.nodes import ExpressionNode

KINDS: dict[str, int]

class Comprehension(ExpressionNode):
    """One macro over a list or map.

    kind: a key of KINDS. predicate, result: None if the macro has none. first, second: slots of its variables;
    second is -1 if it has one variable.
    """

    def __init__(
        self,
        kind: str,
        source: ExpressionNode,
        first: int,
        second: int = -1,
        predicate: ExpressionNode | None = None,
        result: ExpressionNode | None = None,
    ) -> None: ...

def pairs(holder: Any, two: bool) -> Iterable[tuple[Any, Any]]:
    """Return the (first, second) variables of each visit.

    With one variable, first is a list's member or a map's key. With two, they are (index, member) or (key, value).
    Raises EvaluationError if `holder` is neither a list nor a map.
    """

class Hoisted(ExpressionNode):
    """A part of a macro's body that does not depend on the macro's variables: it is evaluated at most once.

    slot: holds its value during the evaluation of the macro. A failure is not kept.
    """

    def __init__(self, slot: int, node: ExpressionNode) -> None: ...

class HoistScope(ExpressionNode):
    """An outermost macro with hoisted parts. slots: their slots, which are unset before each evaluation."""

    def __init__(self, slots: tuple[int, ...], body: ExpressionNode) -> None: ...

class With(ExpressionNode):
    """`x.with(v, expr)` and `cel.bind(v, x, expr)`."""

    def __init__(self, value: ExpressionNode, slot: int, body: ExpressionNode) -> None: ...

class OptionalMap(ExpressionNode):
    """`o.optMap(v, expr)` and, with `flat`, `o.optFlatMap(v, expr)`."""

    def __init__(self, operand: ExpressionNode, slot: int, body: ExpressionNode, flat: bool) -> None: ...

class CustomCall(ExpressionNode):
    """A call of a function that the configuration defines: its parameters are slots, its body is part of this tree."""

    def __init__(self, slots: tuple[int, ...], arguments: tuple[ExpressionNode, ...], body: ExpressionNode) -> None: ...
