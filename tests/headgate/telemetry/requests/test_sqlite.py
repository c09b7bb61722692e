"""The request log's file."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from headgate.ir.request_log import RequestLogStore
from headgate.telemetry.requests.records import COLUMNS, Row
from headgate.telemetry.requests.sqlite import SqliteLog, open_to_read, open_to_write, version_of
from headgate.telemetry.requests.stores import LogFailure, RefusedRecord, Unusable


def some(count: int, text: str = "{}") -> list[Row]:
    values = {"completed_us": 1, "started_us": 0, "status": 200, "attributes": text}
    return [tuple(values.get(name) for name in COLUMNS)] * count


def opened(path: Path, **limits: int) -> SqliteLog:
    return SqliteLog(RequestLogStore(path=str(path), **limits))


def count(path: Path) -> int:
    connection = open_to_read(str(path))
    try:
        return int(connection.execute("SELECT count(*) FROM requests").fetchone()[0])
    finally:
        connection.close()


def test_rows_are_there_for_readers_at_once_and_only_for_the_owner(tmp_path: Path) -> None:
    path = tmp_path / "new" / "data.db"
    database = opened(path)
    database.add(some(3))
    assert count(path) == 3
    assert path.stat().st_mode & 0o077 == 0
    database.close()
    again = opened(path)
    again.add(some(1))
    again.close()
    assert count(path) == 4


# Another process that reads the file, and is the last one to close it as far as locks tell.
READER = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); print(c.execute('SELECT count(*) FROM requests').fetchone()[0]); c.close()"


def seen_outside(path: Path) -> int:
    return int(subprocess.run([sys.executable, "-c", READER, str(path)], capture_output=True, text=True, check=True).stdout)


def test_another_process_that_reads_the_file_takes_nothing_from_who_writes_it(tmp_path: Path) -> None:
    path = tmp_path / "data.db"
    database = opened(path)
    database.add(some(1))
    # The ledger opens the file as well, once a second.
    open_to_write(str(path)).close()
    assert seen_outside(path) == 1
    assert Path(f"{path}-wal").exists()
    database.add(some(1))
    assert seen_outside(path) == 2
    database.close()


def test_a_link_to_a_file_that_is_missing_makes_it_for_its_owner(tmp_path: Path) -> None:
    path = tmp_path / "data.db"
    path.symlink_to(tmp_path / "there.db")
    opened(path).close()
    assert (tmp_path / "there.db").stat().st_mode & 0o077 == 0


def test_the_oldest_go_when_there_are_too_many(tmp_path: Path) -> None:
    database = opened(tmp_path / "data.db", max_records=50)
    database.add(some(70))
    assert database.trim() == 20
    connection = open_to_read(database.path)
    assert connection.execute("SELECT min(id), max(id) FROM requests").fetchone() == (21, 70)
    connection.close()
    database.close()


def test_what_is_too_old_goes(tmp_path: Path) -> None:
    database = opened(tmp_path / "data.db", max_age_ms=3_600_000)
    young = list(some(1)[0])
    young[COLUMNS.index("completed_us")] = time.time_ns() // 1000
    database.add([*some(4), tuple(young), *some(2)])
    assert database.trim() == 6
    assert database.trim() == 0
    assert count(tmp_path / "data.db") == 1
    database.close()


def test_the_file_does_not_grow_beyond_its_bound(tmp_path: Path) -> None:
    database = opened(tmp_path / "data.db", max_bytes=2_000_000)
    sizes = []
    for _ in range(12):
        database.add(some(1000, '{"k":"' + "x" * 500 + '"}'))
        while database.trim():
            pass
        sizes.append(os.path.getsize(database.path))
    assert max(sizes) < 3_500_000
    assert 0 < count(tmp_path / "data.db") < 12_000
    database.close()


def test_a_batch_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    database = opened(tmp_path / "data.db")
    with pytest.raises(RefusedRecord):
        database.add([*some(2), (None,) * len(COLUMNS)])
    assert count(tmp_path / "data.db") == 0
    database.add(some(1))
    database.close()


def test_a_file_that_is_no_database_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "data.db"
    path.write_bytes(b"this is somebody's letter" * 100)
    with pytest.raises(LogFailure, match="not a database"):
        opened(path)
    assert path.read_bytes().startswith(b"this is somebody's letter")


def test_tables_of_a_newer_version_are_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "data.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE requests (id)")
        connection.execute("PRAGMA user_version=7")
    with pytest.raises(Unusable, match="version 7"):
        opened(path)


def test_the_table_of_batches_has_no_version(tmp_path: Path) -> None:
    """So a gateway that does not know of it still takes the file: in an upgrade, and after a rollback."""
    path = tmp_path / "data.db"
    opened(path).close()
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (4,)
        connection.execute("DROP TABLE writers")
    opened(path).close()
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT count(*) FROM writers").fetchone() == (0,)
        # As development builds have left it.
        connection.execute("PRAGMA user_version=5")
        assert version_of(connection) == 4
    opened(path).close()
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (4,)
        connection.execute("ALTER TABLE writers ADD COLUMN other")
        connection.execute("PRAGMA user_version=5")
    with pytest.raises(Unusable, match="version 5"):
        opened(path)


def test_a_file_that_was_removed_is_noticed(tmp_path: Path) -> None:
    database = opened(tmp_path / "data.db")
    (tmp_path / "data.db").unlink()
    with pytest.raises(LogFailure, match="No such file"):
        database.add(some(1))
    (tmp_path / "data.db").write_bytes(b"")
    with pytest.raises(Unusable, match="replaced"):
        database.add(some(1))
    database.close()


def test_readers_do_not_make_a_file_and_cannot_write(tmp_path: Path) -> None:
    with pytest.raises(sqlite3.OperationalError, match="no such file"):
        open_to_read(str(tmp_path / "none.db"))
    assert list(tmp_path.iterdir()) == []
    opened(tmp_path / "data.db").close()
    connection = open_to_read(str(tmp_path / "data.db"))
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        connection.execute("DELETE FROM requests")
    connection.close()
