from collections.abc import Callable

from headgate_engine.plan.step import Step
from headgate_engine.steps.location import CredentialLocation

class LocatedCredentialStep(Step):
    """Sets the same value for every request. Raises ValueError, without the value, for control characters."""

    def __init__(self, location: CredentialLocation, value: bytes) -> None: ...

class PassthroughStep(Step):
    """Sets the token that jwtAuth verified and removed from the request. Without a token it does nothing."""

    def __init__(self, location: CredentialLocation) -> None: ...

class MintedCredentialStep(Step):
    """Sets a value of `mint()`, which returns it with the seconds for which it may be reused."""

    def __init__(self, location: CredentialLocation, mint: Callable[[], tuple[bytes, float]]) -> None: ...
