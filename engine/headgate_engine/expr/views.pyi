from collections.abc import Callable
from typing import Any

from headgate_engine.context.headers import MessageHead
from headgate_engine.context.request import RequestContext
from headgate_engine.expr.nodes import Node

BACKEND_TYPES: dict[str, str]
FUNCTIONS: dict[tuple[str, bool], tuple[Callable[..., Any], int, int]]
LLM_READERS: dict[str, Callable[[RequestContext], Any]]
READERS: dict[str, Callable[[RequestContext], Any]]

class HeaderView:
    """Fields by name in any case: one line is a text, several are a list; join(), raw() and split() change that."""

    def __init__(self, head: MessageHead, form: int = 0) -> None: ...
    def cel_find(self, name: Any) -> Any: ...
    def cel_index(self, name: Any) -> Any: ...
    def cel_contains(self, name: Any) -> bool: ...
    def cel_items(self) -> list[tuple[str, Any]]: ...
    def cel_json(self) -> dict[str, Any]: ...
    def cel_join(self, *separator: Any) -> HeaderView: ...
    def __len__(self) -> int: ...
    def formed(self, form: int) -> HeaderView:
        """Return the same fields with other values: Form bits."""
    def cookie(self, name: Any) -> str:
        """Return the first cookie of that name (RFC 6265 section 4.2)."""

class UriText(str):
    """A target or URI: a text with accessors for its query."""

    TYPE_NAME: str

def split_headers(value: Any) -> HeaderView:
    """Return split() of a header view."""

class HeaderField(Node):
    """`request.headers["name"]` with a name known at compile time; response: of the answer instead."""

    def __init__(self, name: str, response: bool = False) -> None: ...

class Reader(Node):
    """A variable: `read(ctx)` gives its value, NoSuchKey where it has none."""

    def __init__(self, name: str, read: Callable[[RequestContext], Any]) -> None: ...
    @property
    def name(self) -> str: ...

class Gathered(Node):
    """A variable as a whole: a map of those of its fields that have a value."""

    def __init__(self, fields: dict[str, Node]) -> None: ...

class RequestPath(Node):
    """`request.path`, the field that most expressions read."""

class RequestMethod(Node):
    """`request.method`."""

class Claims(Node):
    """`jwt`: the verified claims, null before there are any."""

def dynamic(name: str) -> Callable[[RequestContext], Any]:
    """Return a reader of what an external service said."""

def told(variable: str, field: str) -> Callable[[RequestContext], Any]:
    """Return a reader of one field of a variable that a policy or backend fills (`ctx.dynamic[variable]`)."""
