from typing import Any

class LatencyHistogram:
    """Durations in ns, told at most 1/128 too large; from 1 ns to 2.4 hours."""

    @property
    def count(self) -> int: ...
    @property
    def least(self) -> int:
        """The shortest duration in ns, exactly; 0 without one."""
    @property
    def most(self) -> int:
        """The longest duration in ns, exactly; 0 without one."""
    @property
    def mean(self) -> float:
        """Of the durations in ns, exactly; 0 without one."""
    @property
    def deviation(self) -> float:
        """The standard deviation in ns."""
    def merge(self, other: LatencyHistogram) -> None:
        """Add what another one has."""
    def percentile(self, percent: float) -> int:
        """Return the duration in ns that so many percent of the values do not exceed; 0 without a value."""
    def clear(self) -> None: ...
    def pairs(self) -> list[tuple[int, int]]:
        """Return (smallest value of the cell in ns, count) of the cells in use, in their order."""
    def state(self) -> dict[str, Any]:
        """Return all of it as JSON can hold it."""
    def restore(self, state: dict[str, Any]) -> None:
        """Become what state() returned. Raises ValueError, KeyError or TypeError for anything else."""
