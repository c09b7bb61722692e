import asyncio
from collections.abc import Callable, Iterable
from typing import Protocol

from headgate_engine.context.request import Reply, RequestContext
from headgate_engine.limit.account import UNITS as UNITS
from headgate_engine.limit.account import WINDOWS as WINDOWS
from headgate_engine.limit.account import LeaseState, UsageLimits
from headgate_engine.llm.pattern import ModelPattern
from headgate_engine.shared.segment import Segment
from headgate_engine.steps.identity import ApiKeyStep
from headgate_engine.steps.location import CredentialLocation

FREE: frozenset[str]

_Measured = tuple[int, int, int, int, int, tuple[int, int, int, int, bool]]

class VirtualKey:
    """A key with what it may use.

    names: its own and its team's. metadata: what expressions see as `apiKey`. limits: of the key and of its team.
    allowed: models, and routes by namespace and name, None for all. ends: Unix seconds, 0 for never, and whether it was
    revoked.
    """

    def __init__(
        self,
        segment: Segment,
        names: tuple[str, str],
        metadata: dict[str, object],
        limits: Iterable[UsageLimits],
        allowed: tuple[Iterable[ModelPattern] | None, Iterable[tuple[str, str]] | None] = (None, None),
        ends: tuple[int, bool] = (0, False),
    ) -> None: ...
    @property
    def name(self) -> str: ...
    @property
    def team(self) -> str: ...

class _LeaseAsker(Protocol):
    """Asks for leases (headgate.policy.leases.LeaseDesk)."""

    async def asked(self, limits: tuple[UsageLimits, ...], wanted: tuple[int, int, int]) -> None:
        """Return when the store was asked for so many requests, tokens and picodollars of each limit, or is away."""
    def ahead(
        self, limits: tuple[UsageLimits, ...], wanted: tuple[int, int, int]
    ) -> asyncio.Future[None] | None:
        """Request that many more while the caller continues. Return a future, or None if it is there."""

class KeyTable:
    """The virtual keys of a worker. Steps hold the table, and a configuration that comes into force turns it."""

    def __init__(self, *args: object, **kwargs: object) -> None: ...
    def turn(
        self, keys: dict[bytes, VirtualKey], assumed: tuple[int, int, int], state: LeaseState | None = None,
        desk: _LeaseAsker | None = None, *, stops: bool = False, converse: Callable[..., object] | None = None,
    ) -> None:  # fmt: skip
        """Put other keys in force, by the SHA-256 digests of what clients present.

        assumed: tokens of an answer whose length the request does not bound, of a picture, and of what a request names
        and does not carry. desk: asks for leases of the store of `state`; None: no store is shared. stops: a stream
        ends where limits have no more for it. converse(tunnel, ctx, guarded): what holds limits in a realtime
        conversation. Raises TypeError for other values.
        """
    def __len__(self) -> int: ...
    @property
    def assumed(self) -> int: ...
    @property
    def stops(self) -> bool: ...

class KeyUse:
    """What a request with a virtual key has taken."""

    def __init__(self, key: VirtualKey) -> None: ...
    @property
    def key(self) -> VirtualKey: ...
    @property
    def measured(self) -> _Measured | None: ...
    def narrowed(
        self, value: tuple[dict[str, object], tuple[ModelPattern, ...] | None]
    ) -> tuple[dict[str, object], tuple[ModelPattern, ...] | None]:
        """Return the metadata and models of another key of the same request, with what this key may use at most."""
    def knows(self, body: bytes) -> bool:
        """Tell whether it is known what this very body may come to."""
    def note(self, body: bytes, measured: _Measured) -> None:
        """Note what a body may come to, as llm.bounds tells it."""
    def kept_out(self, ctx: RequestContext) -> Reply | None:
        """Return the reply to a request whose route has been chosen now and is not for the key, None where it is."""
    def settle(self, ctx: RequestContext) -> None:
        """The request is over: what it used takes the place of what was reserved."""

class VirtualKeyStep(ApiKeyStep):
    """apiKey with virtual keys: those of `table`, beside the policy's own `keys`.

    replies: to a request without a key, with an unknown one, with one that has expired, that was revoked, and that is
    not for the route, and without the store of leases.
    """

    def __init__(
        self,
        location: CredentialLocation,
        mode: str,
        keys: dict[bytes, tuple[dict[str, object], tuple[ModelPattern, ...] | None]],
        table: KeyTable,
        replies: tuple[Reply, Reply, Reply, Reply, Reply, Reply],
    ) -> None: ...

async def admitted(step: VirtualKeyStep, ctx: RequestContext, key: VirtualKey, credential: bytes) -> int:
    """Ask for leases until a request is counted or refused. Return the verdict."""
