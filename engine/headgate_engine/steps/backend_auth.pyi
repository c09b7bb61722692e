from collections.abc import Callable

from headgate_engine.plan.step import Step
from headgate_engine.steps.location import CredentialLocation

class LocatedCredentialStep(Step):
    """The same value for every request. ValueError, without the value, if it has control characters."""

    def __init__(self, location: CredentialLocation, value: bytes) -> None: ...

class PassthroughStep(Step):
    """The token that jwtAuth verified, which left the request there; without one nothing is done."""

    def __init__(self, location: CredentialLocation) -> None: ...

class MintedCredentialStep(Step):
    """A value of our own making: `mint()` gives it with the seconds for which it may be used again."""

    def __init__(self, location: CredentialLocation, mint: Callable[[], tuple[bytes, float]]) -> None: ...
