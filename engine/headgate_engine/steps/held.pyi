from collections.abc import Awaitable, Callable
from typing import NoReturn

from headgate_engine.context.request import Reply, RequestContext
from headgate_engine.plan.step import AsyncStep
from headgate_engine.steps.location import CredentialLocation

class HeldCredential:
    """A credential that runs out: `value` is the bytes of a token, or AwsKeys; None until keep() was called."""

    @property
    def value(self) -> object: ...
    @property
    def renew_ns(self) -> int: ...
    @property
    def expires_ns(self) -> int: ...
    @property
    def fresh(self) -> bool:
        """Nobody has to ask for a newer one."""
    @property
    def usable(self) -> bool:
        """It can be used, now."""
    def keep(self, value: object, renew_s: float, expires_s: float) -> None:
        """Holds another value: for `expires_s` seconds, of which the first `renew_s` without asking for a newer one."""
    def __reduce__(self) -> NoReturn: ...

class HeldStep(AsyncStep):
    """Puts what is held into the request as long as it is fresh; `function(ctx)` does what is to be done otherwise,
    and puts it there itself. location None: another step reads what is held. ValueError: a location that is an
    expression.
    """

    def __init__(
        self,
        function: Callable[[RequestContext], Reply | Awaitable[Reply | None] | None],
        held: HeldCredential,
        location: CredentialLocation | None = None,
    ) -> None: ...
