from collections.abc import Callable
from typing import Any

FAILURES: tuple[type[Exception], ...]
COSTS: dict[str, int]
OPERATORS: dict[str, int]

class EvaluationFrame:
    """State of one evaluation. Only C code uses it."""

class ExpressionNode:
    """A part of a compiled expression. Only a Program evaluates it."""

class Const(ExpressionNode):
    def __init__(self, value: Any) -> None: ...
    @property
    def value(self) -> Any: ...

class Local(ExpressionNode):
    """A variable that a macro binds."""

    def __init__(self, slot: int) -> None: ...
    @property
    def slot(self) -> int: ...

class Binding(ExpressionNode):
    """A name whose value the caller of the evaluation passes."""

    def __init__(self, name: str) -> None: ...
    @property
    def name(self) -> str: ...

class Select(ExpressionNode):
    def __init__(self, operand: ExpressionNode, field: str) -> None: ...

class Has(ExpressionNode):
    """`has(a.b)`."""

    def __init__(self, operand: ExpressionNode, field: str) -> None: ...

class Present(ExpressionNode):
    """`has()` of a field of a variable: true if the field has a value."""

    def __init__(self, operand: ExpressionNode) -> None: ...

class OptionalSelect(ExpressionNode):
    """`a.?b`. lenient: the operand may be null because nothing has set it yet; null then has no fields."""

    def __init__(self, operand: ExpressionNode, field: str, lenient: bool = False) -> None: ...

class Index(ExpressionNode):
    def __init__(self, operand: ExpressionNode, key: ExpressionNode) -> None: ...

class OptionalIndex(ExpressionNode):
    """`a[?b]`."""

    def __init__(self, operand: ExpressionNode, key: ExpressionNode) -> None: ...

class And(ExpressionNode):
    def __init__(self, left: ExpressionNode, right: ExpressionNode) -> None: ...

class Or(ExpressionNode):
    def __init__(self, left: ExpressionNode, right: ExpressionNode) -> None: ...

class Not(ExpressionNode):
    def __init__(self, operand: ExpressionNode) -> None: ...

class Ternary(ExpressionNode):
    def __init__(self, condition: ExpressionNode, yes: ExpressionNode, no: ExpressionNode) -> None: ...

class Equal(ExpressionNode):
    def __init__(self, left: ExpressionNode, right: ExpressionNode, negated: bool = False) -> None: ...

class EqualText(ExpressionNode):
    """Equality with a string that is known at compile time."""

    def __init__(self, operand: ExpressionNode, text: str, negated: bool = False) -> None: ...

class In(ExpressionNode):
    def __init__(self, item: ExpressionNode, holder: ExpressionNode) -> None: ...

class InTexts(ExpressionNode):
    """Membership in a list of strings that is known at compile time."""

    def __init__(self, item: ExpressionNode, texts: frozenset[str]) -> None: ...

class Arithmetic(ExpressionNode):
    def __init__(self, operator: str, left: ExpressionNode, right: ExpressionNode) -> None: ...

class Negate(ExpressionNode):
    def __init__(self, operand: ExpressionNode) -> None: ...

class MakeList(ExpressionNode):
    """`[a, ?b]`. optional: positions that are left out if their value is absent."""

    def __init__(self, items: tuple[ExpressionNode, ...], optional: frozenset[int] = frozenset()) -> None: ...

class MakeMap(ExpressionNode):
    """`{a: b, ?c: d}`. optional: positions that are left out if their value is absent."""

    def __init__(
        self,
        keys: tuple[ExpressionNode, ...],
        values: tuple[ExpressionNode, ...],
        optional: frozenset[int] = frozenset(),
    ) -> None: ...

class CallNode(ExpressionNode):
    """A call of a built-in function or of one that the configuration defines. All arguments are evaluated first."""

    def __init__(self, name: str, function: Callable[..., Any], arguments: tuple[ExpressionNode, ...]) -> None: ...
    @property
    def name(self) -> str: ...

class StartsWith(ExpressionNode):
    """`s.startsWith("known")`."""

    def __init__(self, operand: ExpressionNode, prefix: str) -> None: ...

class Default(ExpressionNode):
    """`default(a, b)`: b if a is null, a missing key or an unknown name. Other errors of a are raised."""

    def __init__(self, operand: ExpressionNode, other: ExpressionNode) -> None: ...

class Coalesce(ExpressionNode):
    """`coalesce(a, ...)`: the first operand that is neither null nor an error.

    If there is none: null if an operand was null, else the last error.
    """

    def __init__(self, operands: tuple[ExpressionNode, ...]) -> None: ...

class OptionalOr(ExpressionNode):
    """`a.or(b)` and, with `value`, `a.orValue(b)`: b is evaluated only if a is absent."""

    def __init__(self, operand: ExpressionNode, other: ExpressionNode, value: bool) -> None: ...
