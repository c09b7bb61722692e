"""The table of backends."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from headgate.cli.backend_rows import COLUMNS, backend_rows
from headgate.cli.text_table import text_table

DUMP = json.loads((Path(__file__).parent / "data" / "dump.json").read_text())


def test_the_table_word_for_word() -> None:
    assert text_table(COLUMNS, [row.cells() for row in backend_rows(DUMP, unused=False)]) == (
        "TYPE     NAME    NAMESPACE  ENDPOINT  HEALTH        REQUESTS  LATENCY    ADDRESS\n"
        "Backend  models  default    backup    evicted       1         0.00ms\n"
        "Backend  models  default    openai    1.00          4         250.00ms\n"
        "Backend  plain   default    host      -             -         -          127.0.0.1:1\n"
        "Service  cart    shop       cart-1    0.97          12        1.23ms\n"
        "Service  cart    shop       cart-3    Evict (2.9s)  3         2500.00ms\n"
    )


def test_endpoints_without_requests_are_shown_when_asked_for() -> None:
    rows = {row.endpoint: row for row in backend_rows(DUMP, unused=True)}
    assert rows["other/cart-2"].cells()[4:7] == ("1.00", "0", "-")
    assert rows["other/cart-2"].document()["latencyMs"] is None


@pytest.mark.parametrize(
    "dump",
    [{}, {"services": None, "backends": {}}, {"services": [1, {"endpoints": [{"active": {"a": None}}]}]},
     {"backends": [{"backend": {"ai": {"target": {"providers": "none"}}}}]}],
)  # fmt: skip
def test_a_dump_of_another_shape_gives_the_header_only(dump: dict[str, Any]) -> None:
    assert backend_rows(dump, unused=True) == []


@pytest.mark.parametrize(
    ("until", "shown"),
    [("1m30.25s", "Evict (90.2s)"), ("500ms", "Evict (0.5s)"), ("soon", "evicted"), (7, "evicted"), (None, "evicted")],
)
def test_the_time_of_an_eviction(until: Any, shown: str) -> None:
    member = {"info": {"totalRequests": 1, "evictedUntil": until}}
    [row] = backend_rows({"services": [{"name": "a", "endpoints": [{"rejected": {"x": member}}]}]}, unused=False)
    assert row.health == shown
