"""What answers of models tell their clients of their cost."""

from __future__ import annotations

from headgate.document.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageHeaders:
    """Which fields answers have: what they cost, their tokens, the time of the gateway, and that of the provider."""

    cost: bool = True
    tokens: bool = True
    overhead: bool = True
    generation: bool = True
