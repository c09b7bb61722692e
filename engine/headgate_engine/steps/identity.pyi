from collections.abc import Awaitable, Callable

from headgate_engine.context.request import Reply, RequestContext
from headgate_engine.llm.pattern import ModelPattern
from headgate_engine.plan.step import AsyncStep
from headgate_engine.steps.location import CredentialLocation
from headgate_engine.steps.verified import VerifiedTokens

DIGEST_KEY: bytes
MODES: dict[str, int]

class Remembered:
    """C face only."""

    def __init__(self, value: object, until_ns: int) -> None: ...

class IdentityStep(AsyncStep):
    """One credential. `verify(ctx, credential)` judges one that is not remembered: it calls admit() or gives a Reply,
    at once or awaited. missing, invalid: the answers when there is none, or a bad one.
    """

    def __init__(
        self,
        name: str,
        location: CredentialLocation,
        mode: str,
        verify: Callable[[RequestContext, bytes], Awaitable[Reply | None] | Reply | None] | None,
        missing: Reply,
        invalid: Reply,
    ) -> None: ...
    @property
    def location(self) -> CredentialLocation: ...
    @property
    def mode(self) -> int: ...
    @property
    def bad(self) -> Reply: ...
    def judge(self, ctx: RequestContext, credential: bytes) -> int:
        """Have an unknown credential verified; returns a verdict."""
    def verdict_of(self, ctx: RequestContext, found: object) -> int:
        """Return the verdict of what an awaited verify() came to."""
    def admit(self, ctx: RequestContext, credential: bytes, value: object, seconds: float = 0.0) -> None:
        """Accept a verified credential, and remember it for so long."""

class JwtStep(IdentityStep):
    """jwtAuth: the claims go to ctx.jwt, the token leaves the request. verify() remembers what it finds good in the
    tables that trust() names.
    """

    def trust(self, trusted: tuple[tuple[VerifiedTokens, object], ...]) -> None:
        """Take the tokens that each key set has verified, with the checks that their claims must pass here."""

class ChallengeStep(JwtStep):
    """JWT whose refusal says where the client finds its way: challenge(ctx) gives the Reply to every bad or missing
    token.
    """

    def __init__(
        self,
        name: str,
        location: CredentialLocation,
        mode: str,
        verify: Callable[[RequestContext, bytes], Awaitable[Reply | None] | Reply | None],
        challenge: Callable[[RequestContext], Reply],
    ) -> None: ...

class ApiKeyStep(IdentityStep):
    """apiKey: keys maps SHA-256 digests to metadata and the models that the key may use (None: all), so that no
    comparison tells how much of a guess was right.
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
    """basicAuth: the name goes to ctx.basic_user, the credential leaves the request. Passwords are not kept: what was
    verified is remembered by a digest that only this process can make.
    """
