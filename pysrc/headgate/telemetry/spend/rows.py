"""What the ledger holds, as values. Money is in picodollars (1e-12 USD), so that no sum is ever rounded."""

from __future__ import annotations

from typing import Final, NamedTuple, Protocol

# Columns that identify a row, and those that are summed up.
NAMES: Final = ("day", "key", "team", "model")
AMOUNTS: Final = ("requests", "calls", "input_tokens", "output_tokens", "cost_picos")
# What a row can have of anything in SQLite; 9.2 million dollars.
MOST_AMOUNT: Final = 2**63 - 1
# Days that the ledger keeps.
KEPT_DAYS: Final = 400
# Days for which the last batch of a writer is known that does not come back.
WRITER_DAYS: Final = 31
# Rows of one answer.
MOST_ROWS: Final = 10_000


class SpendRow(NamedTuple):
    """What a key has spent on a day (`2027-01-31`, UTC) with one model; its requests are in the row without a model."""

    day: str
    key: str
    team: str
    model: str
    requests: int
    calls: int
    input_tokens: int
    output_tokens: int
    cost_picos: int


class SpendTotal(NamedTuple):
    """What a key of a team has spent in a time: `tokens` of both directions."""

    key: str
    team: str
    requests: int
    tokens: int
    cost_picos: int


class Warned(NamedTuple):
    """A limit that has come to its warning: of a key or a team (`scope`). The window is between Unix seconds."""

    scope: str
    name: str
    window: str
    unit: str
    start_s: int
    end_s: int


class Batch(NamedTuple):
    """Rows that are added once: the name of who adds them, and a number that is higher than those before."""

    writer: str
    number: int


class LedgerStore(Protocol):
    """The ledger in a database. All methods raise LogFailure."""

    def identity(self) -> str:
        """Return what tells this store from others. Makes it, where it does not exist."""

    def add(self, rows: list[SpendRow], batch: Batch, oldest: str) -> None:
        """Add to what is there, all rows or none, unless this batch or a later one of its writer has been added. Delete
        rows before the day `oldest`.
        """

    def last_batch(self, writer: str) -> int:
        """Return the number of the last batch of a writer, 0: none is known."""

    def totals(self, first: str, last: str) -> list[SpendTotal]:
        """Return what was spent from the day `first` to the day `last`, by key and team."""

    def claim(self, warned: list[Warned]) -> list[Warned]:
        """Return those of limits that have warned that nobody has claimed before, of all gateways at this database."""

    def read(self, first: str, last: str, by: tuple[str, ...]) -> list[tuple[str | int, ...]]:
        """Return the sums from the day `first` to the day `last` by these columns: they, then AMOUNTS."""


ADD: Final = ", ".join(f"{name} = {{0}}.{name} + excluded.{name}" for name in AMOUNTS)


# Of limits that have warned: how long they are known behind the end of their window, in seconds.
WARNED_SECONDS: Final = 86400
