from collections.abc import Iterable, Mapping

from headgate_engine.shared.counters import Counter

PARTS: tuple[str, ...]
PICOS_PER_DOLLAR: int
MAX_RATE: int
STATUSES: tuple[str, ...]

class Rates:
    """Picodollars (1e-12 USD) per token by the names of PARTS; `under` shows where these say nothing.

    ValueError for rates outside of 0..MAX_RATE and for other names.
    """

    def __init__(self, rates: Mapping[str, int], under: Rates | None = None) -> None: ...
    def per_million(self) -> dict[str, float | None]:
        """Return dollars per million tokens, None where nothing is per_million."""

class PricedModel:
    """`tiers`: (context tokens above which it counts, Rates), rising; a tier prices the whole request."""

    def __init__(self, base: Rates, tiers: Iterable[tuple[int, Rates]] = ()) -> None: ...

class Cost:
    """What one attempt, or all of a request, cost."""

    @property
    def total(self) -> int:
        """Picodollars."""
    @property
    def rates(self) -> Rates: ...
    def picos(self) -> dict[str, int]:
        """Return picodollars by part, the total among them."""
    def dollars(self) -> dict[str, float]:
        """Return US dollars by part, the total among them, as the nearest floats."""

class PriceList:
    """Prices by provider and model; `providers` None: no catalog could be read. `counters`: look-ups by STATUSES."""

    def __init__(
        self,
        providers: Mapping[str, Mapping[str, PricedModel]] | None,
        version: str = "",
        counters: Mapping[str, Counter | None] | None = None,
    ) -> None: ...
    @property
    def version(self) -> str: ...
