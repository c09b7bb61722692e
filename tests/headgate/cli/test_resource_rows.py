"""The table of stored resources."""

from __future__ import annotations

from headgate.cli.resource_rows import resource_rows


def test_the_table_tells_who_owns_what() -> None:
    found = resource_rows([
        {"kind": "traffic.route", "id": "a", "value": {}},
        {"kind": "llm.model", "id": "m\x1b[31m", "value": {}, "revision": 12, "updatedAt": "2026-01-02T03:04:05.000000Z"},
    ])  # fmt: skip
    assert found == [
        ("traffic.route", "a", "file", "-", "-"),
        ("llm.model", "m\x1b[31m", "stored", "12", "2026-01-02T03:04:05.000000Z"),
    ]
