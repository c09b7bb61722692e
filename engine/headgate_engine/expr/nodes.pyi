from collections.abc import Callable
from typing import Any

FAILURES: tuple[type[Exception], ...]
OPERATORS: dict[str, int]

class Frame:
    """State of one evaluation. Only C code uses it."""

class Node:
    """A part of a compiled expression. Only a Program evaluates it."""

class Const(Node):
    def __init__(self, value: Any) -> None: ...
    @property
    def value(self) -> Any: ...

class Local(Node):
    """A variable that a macro binds."""

    def __init__(self, slot: int) -> None: ...
    @property
    def slot(self) -> int: ...

class Binding(Node):
    """A name whose value the caller of the evaluation passes."""

    def __init__(self, name: str) -> None: ...
    @property
    def name(self) -> str: ...

class Select(Node):
    def __init__(self, operand: Node, field: str) -> None: ...

class Has(Node):
    """`has(a.b)`."""

    def __init__(self, operand: Node, field: str) -> None: ...

class Present(Node):
    """`has()` of a field of a variable: true if the field has a value."""

    def __init__(self, operand: Node) -> None: ...

class OptionalSelect(Node):
    """`a.?b`. lenient: the operand may be null because nothing has set it yet; null then has no fields."""

    def __init__(self, operand: Node, field: str, lenient: bool = False) -> None: ...

class Index(Node):
    def __init__(self, operand: Node, key: Node) -> None: ...

class OptionalIndex(Node):
    """`a[?b]`."""

    def __init__(self, operand: Node, key: Node) -> None: ...

class And(Node):
    def __init__(self, left: Node, right: Node) -> None: ...

class Or(Node):
    def __init__(self, left: Node, right: Node) -> None: ...

class Not(Node):
    def __init__(self, operand: Node) -> None: ...

class Ternary(Node):
    def __init__(self, condition: Node, yes: Node, no: Node) -> None: ...

class Equal(Node):
    def __init__(self, left: Node, right: Node, negated: bool = False) -> None: ...

class EqualText(Node):
    """Equality with a string that is known at compile time."""

    def __init__(self, operand: Node, text: str, negated: bool = False) -> None: ...

class In(Node):
    def __init__(self, item: Node, holder: Node) -> None: ...

class InTexts(Node):
    """Membership in a list of strings that is known at compile time."""

    def __init__(self, item: Node, texts: frozenset[str]) -> None: ...

class Arithmetic(Node):
    def __init__(self, operator: str, left: Node, right: Node) -> None: ...

class Negate(Node):
    def __init__(self, operand: Node) -> None: ...

class MakeList(Node):
    """`[a, ?b]`. optional: positions that are left out if their value is absent."""

    def __init__(self, items: tuple[Node, ...], optional: frozenset[int] = frozenset()) -> None: ...

class MakeMap(Node):
    """`{a: b, ?c: d}`. optional: positions that are left out if their value is absent."""

    def __init__(
        self, keys: tuple[Node, ...], values: tuple[Node, ...], optional: frozenset[int] = frozenset()
    ) -> None: ...

class Call(Node):
    """A call of a built-in function or of one that the configuration defines. All arguments are evaluated first."""

    def __init__(self, name: str, function: Callable[..., Any], arguments: tuple[Node, ...]) -> None: ...
    @property
    def name(self) -> str: ...

class StartsWith(Node):
    """`s.startsWith("known")`."""

    def __init__(self, operand: Node, prefix: str) -> None: ...

class Default(Node):
    """`default(a, b)`: b if a is null, a missing key or an unknown name. Other errors of a are raised."""

    def __init__(self, operand: Node, other: Node) -> None: ...

class Coalesce(Node):
    """`coalesce(a, ...)`: the first operand that is neither null nor an error.

    If there is none: null if an operand was null, else the last error.
    """

    def __init__(self, operands: tuple[Node, ...]) -> None: ...

class OptionalOr(Node):
    """`a.or(b)` and, with `value`, `a.orValue(b)`: b is evaluated only if a is absent."""

    def __init__(self, operand: Node, other: Node, value: bool) -> None: ...
