from collections.abc import Iterable
from typing import Any

from headgate_engine.context.request import RequestContext
from headgate_engine.expr.answers import AT_THE_END as AT_THE_END
from headgate_engine.expr.nodes import ExpressionNode
from headgate_engine.shared.counters import Counter

MAX_SHOWN: int

class Program:
    """A compiled expression.

    root: its node tree. slots: how many variables its macros bind. variables: dotted names it reads.
    """

    def __init__(self, text: str, root: ExpressionNode, slots: int, variables: Iterable[str] = ()) -> None: ...
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
    def needs_response_prefix(self) -> bool: ...
    @property
    def needs_usage(self) -> bool:
        """True if the expression reads a variable that has a value only at the end of a model's response."""
    @property
    def root_node(self) -> ExpressionNode: ...
    @property
    def slot_count(self) -> int: ...
    def __reduce__(self) -> tuple[type[Program], tuple[str, ExpressionNode, int, frozenset[str]]]: ...
    def evaluate(self, ctx: RequestContext) -> Any:
        """Return the value for a request. Raises EvaluationError."""
    def test(self, ctx: RequestContext) -> int:
        """Return 1 for true, 0 for false, -1 for an error or a value that is not a bool."""
    def header_value(self, ctx: RequestContext) -> bytes | None:
        """Return the value as a header field value, None after an error or if it cannot be one."""
    def misfit(self, ctx: RequestContext, why: str) -> None:
        """Report that the value does not fit where it is used, like a failure."""
    def evaluate_with(self, bindings: dict[str, Any]) -> Any:
        """Return the value for names bound to values, without a request. Raises EvaluationError."""

def without_literals(text: str) -> str:
    """Return the text of an expression with `...` for the content of strings, but for names of members (`a["b"]`).

    What a string holds may be a secret.
    """

def as_field(value: Any) -> bytes | None:
    """Return a string, number or bool as an RFC 9110 field value, None for other types and for control characters."""
