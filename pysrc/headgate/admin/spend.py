"""`/api/spend`: what virtual keys have spent, from the ledger, as JSON or CSV."""

from __future__ import annotations

import csv
import io
from datetime import UTC, date, datetime
from typing import Any, Final

from headgate.admin.answers import NO_STORE, as_json
from headgate.admin.running import RunningGateway
from headgate.admin.web import AdminRequest, AdminResponse, AdminRoute

PATH: Final = "/api/spend"
COLUMNS: Final = ("day", "key", "team", "model")
AMOUNTS: Final = ("requests", "calls", "inputTokens", "outputTokens", "costPicos")
MOST_ROWS: Final = 10_000
# A cell that a spreadsheet would take for a formula.
FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")
PICOS_PER_DOLLAR: Final = 10**12


def spend_rows(running: RunningGateway) -> tuple[AdminRoute, ...]:
    """Return the row of the admin server's table."""

    async def spend(request: AdminRequest) -> AdminResponse:
        from headgate.telemetry.requests.stores import LogFailure

        today = datetime.now(UTC).date()
        try:
            first = _day(request.query.get("from"), today.replace(day=1))
            last = _day(request.query.get("to"), today)
            by = _columns(request.query.get("by", "day,key,team,model"))
        except ValueError as error:
            return as_json(400, str(error))
        try:
            found = await running.process.records.spend.sums(first, last, by)
        except LogFailure as error:
            return as_json(500, f"the ledger: {error}")
        rows = [_row(by, row) for row in found[:MOST_ROWS]]
        if request.query.get("format") == "csv":
            return AdminResponse(200, _csv(by, rows), "text/csv; charset=utf-8", NO_STORE)
        return as_json(200, {"from": first, "to": last, "rows": rows, "more": len(found) > MOST_ROWS})

    return (AdminRoute("GET", PATH, spend, own=True),)


def _day(text: str | None, otherwise: date) -> str:
    """Return a day as the ledger has it. Raises ValueError."""
    if not text:
        return otherwise.isoformat()
    try:
        return date.fromisoformat(text).isoformat()
    except ValueError:
        raise ValueError("from and to must be days such as 2027-01-31") from None


def _columns(text: str) -> tuple[str, ...]:
    """Return the columns that a query names, in their order. Raises ValueError."""
    wanted = [name for name in text.split(",") if name]
    if not set(wanted) <= set(COLUMNS):
        raise ValueError(f"by must be a list of {', '.join(COLUMNS)}")
    return tuple(name for name in COLUMNS if name in wanted)


def dollars(picos: int) -> str:
    """Return picodollars as an exact decimal number of dollars."""
    whole, rest = divmod(picos, PICOS_PER_DOLLAR)
    return f"{whole}.{rest:012d}"


def _row(by: tuple[str, ...], row: tuple[str | int, ...]) -> dict[str, Any]:
    found: dict[str, Any] = dict(zip((*by, *AMOUNTS), row, strict=True))
    return found | {"cost": dollars(found["costPicos"])}


def _csv(by: tuple[str, ...], rows: list[dict[str, Any]]) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    heads = (*by, *AMOUNTS, "cost")
    writer.writerow(heads)
    for row in rows:
        writer.writerow([_cell(row[name]) for name in heads])
    return text.getvalue().encode()


def _cell(value: Any) -> Any:
    """Return a cell that no spreadsheet takes for a formula: models have names that clients choose."""
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value
