"""The thread that writes records."""

from __future__ import annotations

import json
import logging
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from headgate.ir.request_log import RequestLogStore
from headgate.telemetry.requests import sqlite, writer
from headgate.telemetry.requests.records import Row
from headgate.telemetry.requests.sqlite import SqliteLog
from headgate.telemetry.requests.stores import LogFailure, RefusedRecord
from headgate.telemetry.requests.writer import MAX_HELD, Gatherer


def record(number: int) -> bytes:
    return json.dumps([number, 0, 200, None, None, None, -1, -1, -1, None, None, None, None, {"n": number}]).encode() + b"\n"


class Counts:
    def __init__(self) -> None:
        self.written = self.dropped = 0
        self._lock = threading.Lock()

    def write(self, count: int) -> None:
        with self._lock:
            self.written += count

    def drop(self, count: int) -> None:
        with self._lock:
            self.dropped += count


@pytest.fixture
def counts() -> Counts:
    return Counts()


@pytest.fixture
def start(tmp_path: Path, counts: Counts) -> Iterator[Callable[..., tuple[Gatherer, list[int]]]]:
    started: list[Gatherer] = []

    def run(pipes: int = 1, path: Path = tmp_path / "data.db") -> tuple[Gatherer, list[int]]:
        found = Gatherer(RequestLogStore(path=str(path), shown=str(path)), counts.write, counts.drop)
        ends = []
        for _ in range(pipes):
            reading, writing = os.pipe()
            found.add_pipe(reading)
            ends.append(writing)
        found.start()
        started.append(found)
        return found, ends

    yield run
    for one in started:
        one.stop()


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def numbers(path: Path) -> list[int]:
    with sqlite3.connect(path) as connection:
        return [one for (one,) in connection.execute("SELECT completed_us FROM requests ORDER BY 1")]


def test_records_of_all_pipes_are_written(start: Callable[..., tuple[Gatherer, list[int]]], counts: Counts, tmp_path: Path) -> None:
    _, (one, other) = start(2)
    for number in range(0, 2000, 2):
        os.write(one, record(number))
        os.write(other, record(number + 1))
    until(lambda: counts.written == 2000)
    assert numbers(tmp_path / "data.db") == list(range(2000))


def test_records_that_come_in_pieces_are_whole(start: Callable[..., tuple[Gatherer, list[int]]], counts: Counts) -> None:
    _, [pipe] = start()
    for byte in record(1) + b"nonsense\n" + record(2):
        os.write(pipe, bytes([byte]))
    until(lambda: counts.written == 2)
    assert counts.dropped == 1


def test_what_pipes_hold_at_the_end_is_written(start: Callable[..., tuple[Gatherer, list[int]]], counts: Counts, tmp_path: Path) -> None:
    gatherer, [pipe] = start()
    os.write(pipe, b"".join(record(number) for number in range(700)) + b'[half of a rec')
    os.close(pipe)
    gatherer.stop()
    assert len(numbers(tmp_path / "data.db")) == counts.written == 700


def test_a_database_that_cannot_be_written_is_tried_again_and_nothing_is_lost(
    start: Callable[..., tuple[Gatherer, list[int]]], counts: Counts, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    monkeypatch.setattr(writer, "FIRST_RETRY", 0.01)
    path = tmp_path / "data.db"
    path.write_bytes(b"no database" * 100)
    gatherer, [pipe] = start()
    gatherer._delay = 0.01
    os.write(pipe, record(1))
    until(lambda: "request log cannot be written" in caplog.text)
    path.unlink()
    until(lambda: counts.written == 1)
    assert caplog.text.count("request log cannot be written") == 1
    assert numbers(path) == [1]


def test_a_full_disk_holds_records_until_there_is_room(
    start: Callable[..., tuple[Gatherer, list[int]]], counts: Counts, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    caplog.set_level(logging.INFO)
    room = threading.Event()

    class Small(SqliteLog):
        def __init__(self, store: RequestLogStore) -> None:
            super().__init__(store)
            if not room.is_set():
                self._connection.execute("PRAGMA max_page_count=16")

    monkeypatch.setattr(sqlite, "SqliteLog", Small)
    monkeypatch.setattr(writer, "FIRST_RETRY", 0.01)
    monkeypatch.setattr(writer, "LAST_RETRY", 0.02)
    _, [pipe] = start()
    for number in range(2000):
        os.write(pipe, record(number))
    until(lambda: [getattr(one, "error", "") for one in caplog.records] == ["database or disk is full"])
    assert counts.written < 2000
    room.set()
    until(lambda: counts.written == 2000)
    until(lambda: "request log is written again" in caplog.text)
    assert caplog.text.count("request log cannot be written") == 1
    assert numbers(tmp_path / "data.db") == list(range(2000))
    assert counts.dropped == 0


def test_it_holds_a_bounded_number_and_then_leaves_the_pipes_alone(
    start: Callable[..., tuple[Gatherer, list[int]]], counts: Counts, tmp_path: Path
) -> None:
    path = tmp_path / "data.db"
    path.mkdir()
    gatherer, [pipe] = start()
    os.set_blocking(pipe, False)
    data, sent = record(7) * 100, 0
    deadline = time.monotonic() + 60
    full = 0
    # The pipe may also be full because its reader has had no turn yet.
    while (full < 20 or len(gatherer._held) < MAX_HELD) and time.monotonic() < deadline:
        try:
            sent += os.write(pipe, data)
            full = 0
        except BlockingIOError:
            full += 1
            time.sleep(0.005)
    assert full >= 20, "it reads on and on"
    assert MAX_HELD <= len(gatherer._held) < MAX_HELD + 300_000 // len(record(7))
    assert counts.dropped == 0


def test_a_file_that_is_removed_is_made_anew(start: Callable[..., tuple[Gatherer, list[int]]], counts: Counts, tmp_path: Path) -> None:
    _, [pipe] = start()
    os.write(pipe, record(1))
    until(lambda: counts.written == 1)
    for one in tmp_path.glob("data.db*"):
        one.unlink()
    os.write(pipe, record(2))
    until(lambda: counts.written == 2)
    assert numbers(tmp_path / "data.db") == [2]


class Scripted:
    """A database that refuses the record 666, and fails as often as it is told."""

    def __init__(self) -> None:
        self.batches: list[tuple[int, list[int]]] = []
        self.failures = 0

    def add(self, rows: list[Row], batch: int) -> None:
        found = [one[0] for one in rows]
        self.batches.append((batch, found))
        if self.failures:
            self.failures -= 1
            raise LogFailure("nobody knows what became of it")
        if 666 in found:
            raise RefusedRecord("not this one")

    def trim(self) -> int:
        return 0

    def close(self) -> None:
        """Nothing is open."""


def test_a_record_that_is_refused_takes_no_other_with_it(
    start: Callable[..., tuple[Gatherer, list[int]]], counts: Counts, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    database = Scripted()
    monkeypatch.setattr(writer, "open_to_write", lambda store, name: database)
    _, [pipe] = start()
    os.write(pipe, b"".join(record(number) for number in [*range(40), 666, *range(41, 80)]))
    until(lambda: counts.written == 79)
    assert counts.dropped == 1
    assert caplog.text.count("the database refused a record") == 1
    written = [one for _, rows in database.batches if 666 not in rows for one in rows]
    assert written == [*range(40), *range(41, 80)]
    # A number is never used for two different batches.
    assert len({batch for batch, _ in database.batches}) == len(database.batches)


def test_a_batch_that_failed_is_tried_again_as_it_was(
    start: Callable[..., tuple[Gatherer, list[int]]], counts: Counts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "FIRST_RETRY", 0.01)
    database = Scripted()
    database.failures = 3
    monkeypatch.setattr(writer, "open_to_write", lambda store, name: database)
    gatherer, [pipe] = start()
    gatherer._delay = 0.01
    os.write(pipe, record(1) + record(2))
    until(lambda: len(database.batches) >= 1)
    os.write(pipe, record(3))
    until(lambda: counts.written == 3)
    assert database.batches[:4] == [(1, database.batches[0][1])] * 4
    assert [one for _, rows in database.batches[3:] for one in rows] == [1, 2, 3]
