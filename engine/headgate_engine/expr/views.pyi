from collections.abc import Callable
from typing import Any

from headgate_engine.context.headers import MessageHead
from headgate_engine.context.request import RequestContext
from headgate_engine.expr.nodes import ExpressionNode

BACKEND_TYPES: dict[str, str]
FUNCTIONS: dict[tuple[str, bool], tuple[Callable[..., Any], int, int]]
LLM_READERS: dict[str, Callable[[RequestContext], Any]]
ORIGIN: tuple[str, ...]
READERS: dict[str, Callable[[RequestContext], Any]]

class HeaderFields:
    """Header fields by name, in any case. The value of a field is a string for one line and a list for several lines.

    The methods join(), raw() and split() change the form of the values.
    """

    def __init__(self, head: MessageHead, form: int = 0) -> None: ...
    def cel_size(self) -> int:
        """Return how many bytes the names and values have."""
    def cel_find(self, name: Any) -> Any:
        """Return the value of a field, or ABSENT."""
    def cel_index(self, name: Any) -> Any:
        """Return the value of a field. Raises NoSuchKey if there is none."""
    def cel_contains(self, name: Any) -> bool: ...
    def cel_items(self) -> list[tuple[str, Any]]: ...
    def cel_json(self) -> dict[str, Any]: ...
    def cel_join(self, *separator: Any) -> HeaderFields: ...
    def __len__(self) -> int: ...
    def formed(self, form: int) -> HeaderFields:
        """Return the same fields with values of another form. form: bits of Form."""
    def cookie(self, name: Any) -> str:
        """Return the value of the first cookie with that name (RFC 6265 section 4.2).

        Raises NoSuchKey if there is none.
        """

class UriText(str):
    """A request target or URI: a string with methods for its query."""

    TYPE_NAME: str

def split_headers(value: Any) -> HeaderFields:
    """Return split() of a header view. Strings have the split() of the strings extension instead."""

class HeaderField(ExpressionNode):
    """`request.headers["name"]` with a name known at compile time. response: read the response headers instead."""

    def __init__(self, name: str, response: bool = False) -> None: ...

class VariableReader(ExpressionNode):
    """A variable: `read(ctx)` returns its value, or ABSENT if it has none."""

    def __init__(self, name: str, read: Callable[[RequestContext], Any]) -> None: ...
    @property
    def name(self) -> str: ...

class NullableReader(VariableReader):
    """A field of a variable that is null while the variable has a value and the field has none."""

class Gathered(ExpressionNode):
    """A variable as a whole: a map of its fields that have a value."""

    def __init__(self, fields: dict[str, ExpressionNode]) -> None: ...

class RequestPath(ExpressionNode):
    """`request.path`, the field that expressions read most."""

class RequestMethod(ExpressionNode):
    """`request.method`."""

class ClaimsVariable(ExpressionNode):
    """`jwt`: the verified claims, null until a token has been verified."""

def origin_of(ctx: RequestContext) -> dict[str, object]:
    """Return what a worker to which the request is relayed has to know for expressions: its `origin`."""

def dynamic(name: str) -> Callable[[RequestContext], Any]:
    """Return a reader of the attributes that an external service has returned."""

def field_of_variable(variable: str, field: str) -> Callable[[RequestContext], Any]:
    """Return a reader of one field of a variable that a policy or backend sets as a whole (`ctx.dynamic[variable]`)."""
