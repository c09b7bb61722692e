"""Which stores are the same database."""

from __future__ import annotations

from headgate.document.secret import Secret
from headgate.ir.request_log import RequestLogStore


def postgres(user: str, shown: str, query: str = "", **how: int) -> RequestLogStore:
    scheme, place = shown.split("//")
    return RequestLogStore(url=Secret(f"{scheme}//{user}@{place}{query}"), shown=shown, **how)


def test_a_database_is_the_same_however_it_is_used() -> None:
    one = postgres("ada:first", "postgres://db:5432/keys")
    same = postgres("bob:second", "postgres://db:5432/keys", "?sslmode=require", max_connections=9)
    assert one.database == same.database
    assert "second" not in repr(same.database)
    others = [
        postgres("ada:first", "postgres://db:5432/other"),
        postgres("ada:first", "postgres://db:5432/keys", "?host=elsewhere"),
        RequestLogStore(path="/keys.db", shown="/keys.db"),
    ]
    assert len({one.database, *(store.database for store in others)}) == 4
    assert RequestLogStore(path="/keys.db", max_records=1).database == others[2].database
