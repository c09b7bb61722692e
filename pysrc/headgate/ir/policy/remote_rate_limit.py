"""`remoteRateLimit`: a service counts requests or tokens for all replicas."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from headgate.document.lazy_dataclass import dataclass

if TYPE_CHECKING:  # it has policies of its own
    from headgate.ir.remote_service import RemoteService

DEFAULT_TIMEOUT_MS: Final = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitDescriptor:
    """What the service counts by: `entries` are (key, expression) pairs.

    `tokens`: tokens of models are counted, not requests. `cost` and `limit` are expressions: how much a request counts,
    and `{unit, requestsPerUnit}` in place of the service's own limit.
    """

    entries: tuple[tuple[str, str], ...]
    tokens: bool = False
    cost: str | None = None
    limit: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteRateLimit:
    """The limits of a domain of one service. `fail_open`: requests pass where the service fails.

    `condition` is the expression under which this entry applies, if the policy has conditional entries.
    """

    service: RemoteService
    domain: str
    descriptors: tuple[LimitDescriptor, ...]
    fail_open: bool = False
    timeout_ms: int = DEFAULT_TIMEOUT_MS
    condition: str | None = None
