from collections.abc import Awaitable, Callable

from headgate_engine.context.request import RequestContext
from headgate_engine.plan.step import Step

class ConnectionCheck(Step):
    """What is asked about each connection: the `rules`, and then, while the connection waits, a service.

    question: returns an awaitable of why a connection is refused, None if it is not.
    """

    def __init__(self, rules: Step | None, question: Callable[[RequestContext], Awaitable[str | None]]) -> None: ...
    @property
    def question(self) -> Callable[[RequestContext], Awaitable[str | None]]: ...
