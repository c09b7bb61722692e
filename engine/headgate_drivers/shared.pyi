from decimal import Decimal

from headgate_engine.shared.histogram import Histogram
from headgate_engine.shared.money import Money

def pay(money: Money, picos: int) -> None:
    """Add picodollars, as the end of a request does. Raises ValueError below 0."""

def paid(money: Money) -> Decimal:
    """Return the sum in US dollars."""

def mark(histogram: Histogram, value: float, trace_id: str, span_id: str) -> None:
    """Make an observed value, in units of the bounds, the exemplar of its bucket.

    Ids: 32 and 16 hexadecimal digits, otherwise ValueError.
    """
