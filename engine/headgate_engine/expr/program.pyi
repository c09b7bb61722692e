from collections.abc import Iterable
from typing import Any

from headgate_engine.context.request import RequestContext
from headgate_engine.expr.answers import AT_THE_END as AT_THE_END
from headgate_engine.expr.nodes import Node
from headgate_engine.shared.counters import Counter

class Program:
    """root: the node tree. slots: how many variables its macros bind. variables: dotted names it reads."""

    def __init__(self, text: str, root: Node, slots: int, variables: Iterable[str] = ()) -> None: ...
    failures: Counter | None
    @property
    def text(self) -> str: ...
    @property
    def variables(self) -> frozenset[str]: ...
    @property
    def needs_request_body(self) -> bool: ...
    @property
    def needs_response_body(self) -> bool: ...
    @property
    def needs_usage(self) -> bool:
        """Whether it reads what is known of a model's answer only at its end."""
    @property
    def root_node(self) -> Node: ...
    @property
    def slot_count(self) -> int: ...
    def __reduce__(self) -> tuple[type[Program], tuple[str, Node, int, frozenset[str]]]: ...
    def evaluate(self, ctx: RequestContext) -> Any:
        """Return the value for a request; EvaluationError."""
    def test(self, ctx: RequestContext) -> int:
        """Return 1 for true, 0 for false, -1 for an error or a value that is no bool."""
    def header_value(self, ctx: RequestContext) -> bytes | None:
        """Return the value as a header field value, None where there is none or it cannot stand in a field."""
    def evaluate_with(self, bindings: dict[str, Any]) -> Any:
        """Return the value with names bound to values and no request; EvaluationError."""
    def bench(self, ctx: RequestContext, times: int) -> int:
        """Evaluate so many times in C; for bench/micro."""

def as_field(value: Any) -> bytes | None:
    """Return texts, numbers and bools as RFC 9110 field values, None for all else and for control characters."""
