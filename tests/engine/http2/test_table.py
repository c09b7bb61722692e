"""The tables of HPACK against a plain list, and their memory."""

from __future__ import annotations

import random

import pytest
from hpack.table import HeaderTable
from hypothesis import given
from hypothesis import strategies as st

from headgate_drivers.hpack import add_entry, entries_of, find_entry, memory_of
from headgate_drivers.http2 import find_static, resize
from headgate_engine.http2.table import STATIC, DynamicTable


def test_the_static_table_is_that_of_the_standard() -> None:
    assert tuple(STATIC) == tuple(HeaderTable.STATIC_TABLE)


@pytest.mark.parametrize("index", range(1, 62))
def test_static_fields_are_found(index: int) -> None:
    name, value = STATIC[index - 1]
    assert find_static(name, value) == (index, True)
    first = 1 + [known for known, _ in STATIC].index(name)
    assert find_static(name, b"no such value") == (first, False)


@pytest.mark.parametrize("name", [b"", b"x", b":metho", b"x-unknown", b"content-typf", b"a" * 1000])
def test_unknown_names_are_not_found(name: bytes) -> None:
    assert find_static(name, b"") == (0, False)


class Naive:
    """The table as the standard tells it."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.fields: list[tuple[bytes, bytes]] = []

    def size(self) -> int:
        return sum(len(name) + len(value) + 32 for name, value in self.fields)

    def resize(self, limit: int) -> None:
        self.limit = limit
        while self.size() > limit:
            self.fields.pop()

    def add(self, name: bytes, value: bytes) -> None:
        self.fields.insert(0, (name, value))
        while self.fields and self.size() > self.limit:
            self.fields.pop()


NAMES = st.sampled_from([b"a", b"bb", b"cookie", b"x-some-name", b"x-some-mame", b"long" * 30])
STEPS = st.one_of(
    st.tuples(st.just("add"), NAMES, st.binary(max_size=150)),
    st.tuples(st.just("resize"), st.integers(0, 900), st.just(b"")),
)


@given(st.lists(STEPS, max_size=60))
def test_it_is_the_list_of_the_standard(steps: list[tuple[str, bytes, bytes]]) -> None:
    table, naive = DynamicTable(600, searched=True), Naive(600)
    for kind, one, other in steps:
        if kind == "add":
            add_entry(table, one, other)
            naive.add(one, other)
        else:
            resize(table, one)  # type: ignore[arg-type]
            naive.resize(one)  # type: ignore[arg-type]
        assert entries_of(table) == naive.fields
        assert (len(table), table.size) == (len(naive.fields), naive.size())
        names = [name for name, _ in naive.fields]
        for name, value in naive.fields:
            assert find_entry(table, name, value) == (62 + naive.fields.index((name, value)), True)
            assert find_entry(table, name, b"no such value") == (62 + names.index(name), False)
        assert find_entry(table, b"a", b"another") == ((62 + names.index(b"a"), False) if b"a" in names else (0, False))


def test_memory_is_bounded_however_much_passes() -> None:
    table, source = DynamicTable(4096, searched=True), random.Random(7)
    assert memory_of(table) == 0
    most = 0
    for number in range(20000):
        add_entry(table, b"n%d" % number, b"v" * source.choice((0, 3, 40, 400, 3000)))
        assert table.size <= 4096
        most = max(most, memory_of(table))
    assert most <= 12288
    for _ in range(20000):
        add_entry(table, b"", b"")
    assert len(table) == 128
    assert memory_of(table) <= 12288


def test_a_table_that_nobody_searches_has_no_index() -> None:
    table = DynamicTable(4096)
    add_entry(table, b"a", b"b")
    assert find_entry(table, b"a", b"b") == (0, False)
    assert memory_of(table) < 1024
    resize(table, 0)
    assert memory_of(table) == 0
    assert len(table) == 0
