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

from headgate.telemetry.requests import writer
from headgate.telemetry.requests.database import Database
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
        found = Gatherer(str(path), counts.write, counts.drop)
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

    class Small(Database):
        def _prepare(self) -> None:
            super()._prepare()
            if not room.is_set():
                self._connection.execute("PRAGMA max_page_count=12")

    monkeypatch.setattr(writer, "Database", Small)
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
