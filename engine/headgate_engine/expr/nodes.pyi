from collections.abc import Callable
from typing import Any

FAILURES: tuple[type[Exception], ...]
OPERATORS: dict[str, int]

class Frame:
    """C face only."""

class Node:
    """A part of a compiled expression; evaluated through Program."""

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
    """A name whose value is given with the evaluation."""

    def __init__(self, name: str) -> None: ...
    @property
    def name(self) -> str: ...

class Select(Node):
    def __init__(self, operand: Node, field: str) -> None: ...

class Has(Node):
    """`has(a.b)`."""

    def __init__(self, operand: Node, field: str) -> None: ...

class Present(Node):
    """`has()` of a field of a variable: whether reading it finds something."""

    def __init__(self, operand: Node) -> None: ...

class OptionalSelect(Node):
    """`a.?b`; lenient: a variable that is null because nothing has set it yet has no fields."""

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
    """Equality with a text that is known at compile time."""

    def __init__(self, operand: Node, text: str, negated: bool = False) -> None: ...

class In(Node):
    def __init__(self, item: Node, holder: Node) -> None: ...

class InTexts(Node):
    """Membership in a list of texts that is known at compile time."""

    def __init__(self, item: Node, texts: frozenset[str]) -> None: ...

class Arithmetic(Node):
    def __init__(self, operator: str, left: Node, right: Node) -> None: ...

class Negate(Node):
    def __init__(self, operand: Node) -> None: ...

class MakeList(Node):
    """`[a, ?b]`; optional: the positions whose value is left out when it is absent."""

    def __init__(self, items: tuple[Node, ...], optional: frozenset[int] = frozenset()) -> None: ...

class MakeMap(Node):
    """`{a: b, ?c: d}`; optional: as for lists."""

    def __init__(
        self, keys: tuple[Node, ...], values: tuple[Node, ...], optional: frozenset[int] = frozenset()
    ) -> None: ...

class Call(Node):
    """A function of functions.pyx or of the configuration: all arguments are evaluated first."""

    def __init__(self, name: str, function: Callable[..., Any], arguments: tuple[Node, ...]) -> None: ...
    @property
    def name(self) -> str: ...

class StartsWith(Node):
    """`s.startsWith("known")`."""

    def __init__(self, operand: Node, prefix: str) -> None: ...

class Default(Node):
    """`default(a, b)`: b where a is null, a missing key or an unknown name; other errors stay."""

    def __init__(self, operand: Node, other: Node) -> None: ...

class Coalesce(Node):
    """`coalesce(a, ...)`: the first that is neither null nor an error; null if one was null, else the last error."""

    def __init__(self, operands: tuple[Node, ...]) -> None: ...

class OptionalOr(Node):
    """`a.or(b)` and, with `value`, `a.orValue(b)`: b is evaluated only when a is absent."""

    def __init__(self, operand: Node, other: Node, value: bool) -> None: ...
