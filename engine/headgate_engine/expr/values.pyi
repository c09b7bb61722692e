from typing import Any

NS: int
INT_MIN: int
INT_MAX: int
UINT_MAX: int
MAX_LENGTH: int
DURATION_MAX: int
TIMESTAMP_MIN: int
TIMESTAMP_MAX: int
TYPE_NAMES: dict[type, str]

class EvaluationError(Exception):
    """The expression has no value for this request. The message is the reason."""

class NoSuchKey(EvaluationError):
    """A key or field does not exist."""

class Undeclared(EvaluationError):
    """A name is not declared in this place."""

def no_overload(what: str = "operator") -> EvaluationError:
    """Return the error for an operation that is not defined for the types of its operands."""

class Uint:
    """An unsigned 64-bit integer; equal to, and hashed like, the int of the same value."""

    def __init__(self, value: int) -> None: ...
    @property
    def value(self) -> int: ...
    def __hash__(self) -> int: ...

class Duration:
    """A span of time. ns: whole nanoseconds. Raises EvaluationError if they are out of range."""

    def __init__(self, ns: int) -> None: ...
    @property
    def ns(self) -> int: ...
    def __hash__(self) -> int: ...

class Timestamp:
    """A point in time. ns: nanoseconds since the epoch. Raises EvaluationError if they are out of range."""

    def __init__(self, ns: int) -> None: ...
    @property
    def ns(self) -> int: ...
    def __hash__(self) -> int: ...

class TypeValue:
    """The type of a value, as `type(x)` returns it."""

    def __init__(self, name: str) -> None: ...
    @property
    def name(self) -> str: ...
    def __hash__(self) -> int: ...

class OptionalValue:
    """`optional.of(x)` or `optional.none()`."""

    def __init__(self, present: bool, inner: Any = None) -> None: ...
    @property
    def present(self) -> bool: ...
    @property
    def inner(self) -> Any: ...

NONE: OptionalValue

class Redacted:
    """A credential in an expression: shown as `<redacted>` until unredacted() is called."""

    def __init__(self, text: bytes) -> None: ...
    def reveal(self) -> str:
        """Return the credential as a string. Bytes that are not UTF-8 become U+FFFD."""

def cel_type(value: Any) -> TypeValue:
    """Return the type of a value."""
