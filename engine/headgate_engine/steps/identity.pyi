from collections.abc import Awaitable, Callable

from headgate_engine.context.request import Reply, RequestContext
from headgate_engine.llm.pattern import ModelPattern
from headgate_engine.plan.step import AsyncStep
from headgate_engine.steps.location import CredentialLocation
from headgate_engine.steps.verified import VerifiedTokens

DIGEST_KEY: bytes
MODES: dict[str, int]

class Remembered:
    """A cached result. Only C code uses it."""

    def __init__(self, value: object, until_ns: int) -> None: ...

class IdentityStep(AsyncStep):
    """Authentication by one credential.

    `verify(step, ctx, credential)` is called for a credential that is not in the cache. It calls step.admit(), or
    returns a Reply or an awaitable of one. It is given the step so that it need not hold it: plans must be free of
    cycles. missing, invalid: the replies to requests without a credential, or with a bad one.
    """

    def __init__(
        self,
        name: str,
        location: CredentialLocation,
        mode: str,
        verify: Callable[[IdentityStep, RequestContext, bytes], Awaitable[Reply | None] | Reply | None] | None,
        missing: Reply,
        invalid: Reply,
    ) -> None: ...
    @property
    def location(self) -> CredentialLocation: ...
    @property
    def mode(self) -> int: ...
    def judge(self, ctx: RequestContext, credential: bytes) -> int:
        """Verify a credential that is not in the cache. Return a verdict."""
    def verdict_of(self, ctx: RequestContext, found: object) -> int:
        """Return the verdict for the result of an awaited verify()."""
    def admit(self, ctx: RequestContext, credential: bytes, value: object, seconds: float = 0.0) -> None:
        """Accept a verified credential, and cache it for `seconds`."""

class JwtStep(IdentityStep):
    """jwtAuth: sets ctx.jwt to the claims and removes the token from the request.

    verify() records verified tokens in the tables that trust() sets.
    """

    def trust(self, trusted: tuple[tuple[VerifiedTokens, object], ...]) -> None:
        """Set the verified tokens of each key set, with the checks that their claims must pass in this step."""

class ChallengeStep(JwtStep):
    """JWT with a challenge: challenge(ctx, "") returns the Reply to a request without a token.

    What verify() returns is made by it, too.
    """

    def __init__(
        self,
        name: str,
        location: CredentialLocation,
        mode: str,
        verify: Callable[[IdentityStep, RequestContext, bytes], Awaitable[Reply | None] | Reply | None],
        challenge: Callable[[RequestContext, str], Reply],
    ) -> None: ...

class ApiKeyStep(IdentityStep):
    """apiKey: keys maps SHA-256 digests to metadata and the models that the key may use (None: all).

    Look-ups by digest reveal nothing about a key by their duration.
    """

    def __init__(
        self,
        name: str,
        location: CredentialLocation,
        mode: str,
        keys: dict[bytes, tuple[dict[str, object], tuple[ModelPattern, ...] | None]],
        missing: Reply,
        invalid: Reply,
    ) -> None: ...

class BasicStep(IdentityStep):
    """basicAuth: sets ctx.basic_user to the name and removes the credential from the request.

    Passwords are not stored: the cache's key is a digest that only this process can compute.
    """
