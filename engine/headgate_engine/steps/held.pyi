from collections.abc import Awaitable, Callable
from typing import NoReturn

from headgate_engine.context.request import Reply, RequestContext
from headgate_engine.plan.step import AsyncStep
from headgate_engine.steps.location import CredentialLocation

class HeldCredential:
    """A credential that expires. `value`: the bytes of a token, or AwsKeys; None before keep() is called."""

    @property
    def value(self) -> object: ...
    @property
    def renew_ns(self) -> int: ...
    @property
    def expires_ns(self) -> int: ...
    @property
    def fresh(self) -> bool:
        """True if it need not be renewed yet."""
    @property
    def usable(self) -> bool:
        """True if it has not expired."""
    def keep(self, value: object, renew_s: float, expires_s: float) -> None:
        """Store a value for `expires_s` seconds. For the first `renew_s` seconds it is fresh."""
    def __reduce__(self) -> NoReturn: ...

class HeldStep(AsyncStep):
    """Sets the held credential as long as it is fresh; otherwise `function(ctx)` must renew it and set it.

    location: None if another step reads the credential. Raises ValueError if it is an expression.
    """

    def __init__(
        self,
        function: Callable[[RequestContext], Reply | Awaitable[Reply | None] | None],
        held: HeldCredential,
        location: CredentialLocation | None = None,
    ) -> None: ...
