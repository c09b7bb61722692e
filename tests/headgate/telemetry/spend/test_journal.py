"""What a gateway that was killed had not written: the next one adds it, once, whatever was killed when."""

from __future__ import annotations

import contextlib
import errno
import os
import random
import signal
import sqlite3
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from headgate.ir.request_log import RequestLogStore
from headgate.ir.virtual_keys import KeyRecord, UsageLimit, VirtualKeys
from headgate.telemetry.requests.stores import LogFailure
from headgate.telemetry.spend import journal, ledger
from headgate.telemetry.spend.ledger import SpendLedger
from headgate.telemetry.spend.rows import Batch, SpendRow
from headgate.telemetry.spend.sqlite import SqliteLedger
from headgate_drivers.account import settle_at, spend, take_request_at
from headgate_engine.limit.account import SpendCell, UsageAccount, UsageLimits
from headgate_engine.shared.segment import Segment

NOON = datetime(2028, 2, 28, 12, 0, 30, tzinfo=UTC)
NOON_S = int(NOON.timestamp())
DAY = "2028-02-28"
PER_MINUTE = UsageLimit(unit="requests", window="minute", most=10)
KEYS = VirtualKeys(keys=(KeyRecord(name="a", digest=b"a", metadata="{}", limits=(PER_MINUTE,)),))


class Gateway:
    """What a gateway has of its spending: memory and ledger."""

    def __init__(self, place: Path, name: str = "keys.db") -> None:
        self.segment = Segment.create(state_bytes=1 << 20)
        journal.begin(str(place), 1, self.segment)
        self.ledger = SpendLedger(self.segment, RequestLogStore(path=str(place / name)), str(place), kept=True)
        self.ledger.watch(KEYS)
        self.account = UsageAccount(self.segment, "key", "a")
        self.cell = SpendCell(self.segment, ("a", "", "m", DAY))

    def kill(self) -> None:
        """End as a kill of all processes does: what is in the file stays, and nobody has it open."""
        assert self.segment.kept is not None
        path = Path(os.readlink(f"/proc/self/fd/{self.segment.kept.fd}"))
        data = path.read_bytes()
        for open_here in (self.segment.kept, self.segment, *self.ledger._leftovers):
            open_here.close()
        self.__dict__.clear()
        ledger._ENDED.clear()
        path.write_bytes(data)

    def use(self, picos: int = 7) -> None:
        """Use what a request does."""
        limits = UsageLimits(self.account, [])
        take_request_at(limits, NOON_S)
        settle_at(limits, (0, 0), (2, picos), NOON_S)
        spend(self.cell, 1, 1, picos)

    def spent(self) -> int:
        """What ledger and account have, which agree."""
        self.ledger.carry(NOON)
        found = self.ledger.read(DAY, DAY, ())
        written = int(found[0][-1]) if found else 0
        assert self.account.state(NOON_S)["day"]["dollars"] == written
        return written

    def minute(self) -> int:
        self.ledger.carry(NOON)
        return self.account.state(NOON_S)["minute"]["requests"]


def files(place: Path) -> list[str]:
    return sorted(one.name for one in place.iterdir() if one.name.startswith(journal.PREFIX))


def test_what_was_not_written_is_in_the_next_ledger_once(tmp_path: Path) -> None:
    gateway = Gateway(tmp_path)
    gateway.ledger.carry(NOON)
    gateway.use()
    assert gateway.spent() == 7
    gateway.use(5)
    assert [path.stat().st_mode & 0o777 for path in tmp_path.iterdir() if path.name in files(tmp_path)] == [0o600]
    gateway.kill()
    following = Gateway(tmp_path)
    assert [following.spent() for _ in range(3)] == [12, 12, 12]
    following.use(1)
    following.kill()
    assert Gateway(tmp_path).spent() == 13


def in_child(work: Callable[[], object]) -> int:
    """Do something in another process. Return the signal that has ended it."""
    pid = os.fork()
    if pid == 0:
        try:
            work()
        finally:
            os._exit(0)
    return os.WTERMSIG(os.waitpid(pid, 0)[1])


@pytest.mark.parametrize("written", [False, True])
def test_a_kill_in_the_middle_of_a_batch_counts_it_once(
    written: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add = SqliteLedger.add

    def dies(store: SqliteLedger, rows: list[SpendRow], batch: Batch, oldest: str) -> None:
        if written:
            add(store, rows, batch, oldest)
        os.kill(os.getpid(), signal.SIGKILL)

    def lives() -> None:
        gateway = Gateway(tmp_path)
        gateway.use()
        assert gateway.spent() == 7
        gateway.use(5)
        monkeypatch.setattr(SqliteLedger, "add", dies)
        gateway.spent()

    def follows() -> None:
        monkeypatch.setattr(SqliteLedger, "add", dies)
        Gateway(tmp_path).spent()

    # The second dies in the middle of adding what the first had left, if there is anything.
    assert in_child(lives) == signal.SIGKILL
    assert in_child(follows) == (0 if written else signal.SIGKILL)
    assert Gateway(tmp_path).spent() == 12


def test_a_gateway_that_lives_is_left_alone_until_it_ends(tmp_path: Path) -> None:
    """As in an upgrade: both run, and each counts its own."""
    old = Gateway(tmp_path)
    old.use()
    assert old.spent() == 7
    new = Gateway(tmp_path)
    assert (new.spent(), new.minute()) == (7, 1)
    old.use(5)
    new.use(1)
    assert (new.spent(), new.minute()) == (8, 3)
    # What the old one writes meanwhile is known to the new one.
    old.ledger.carry(NOON)
    assert new.spent() == 13
    old.use(2)
    old.kill()
    assert (new.spent(), new.minute()) == (15, 4)


def test_a_minute_goes_on_over_a_kill_and_a_planned_restart(tmp_path: Path) -> None:
    gateway = Gateway(tmp_path)
    for _ in range(3):
        gateway.use()
    assert gateway.minute() == 3
    gateway.kill()
    following = Gateway(tmp_path)
    assert following.minute() == 3
    following.use()
    assert following.minute() == 4
    following.ledger.end(NOON)
    following.kill()
    last = Gateway(tmp_path)
    assert (last.minute(), len(files(tmp_path))) == (4, 3)
    # The minute is over, and with it what is left of these.
    last.ledger.carry(NOON.replace(minute=1))
    assert len(files(tmp_path)) == 1
    last.ledger.end(NOON.replace(minute=2))
    assert files(tmp_path) == []


def test_spending_for_another_ledger_waits_for_that(tmp_path: Path) -> None:
    other = Gateway(tmp_path, "other.db")
    other.ledger.carry(NOON)
    other.use(3)
    other.kill()
    found = Gateway(tmp_path)
    assert found.spent() == 0
    found.kill()
    other = Gateway(tmp_path, "other.db")
    assert other.spent() == 3
    other.use(1)
    other.kill()
    # Nobody waits for that of a database that is gone.
    (tmp_path / "other.db").unlink()
    assert (Gateway(tmp_path).spent(), len(files(tmp_path))) == (0, 1)


def test_what_is_of_another_boot_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The kernel may have written a part of the file only."""
    before = Gateway(tmp_path)
    before.ledger.carry(NOON)
    before.use(5)
    before.kill()
    monkeypatch.setattr(ledger, "boot", lambda: "another")
    after = Gateway(tmp_path)
    assert (after.spent(), after.minute(), len(files(tmp_path))) == (0, 0, 1)
    assert caplog.text.count(ledger.OTHER_BOOT) == 1


def test_a_ledger_that_was_set_back_is_not_charged_twice(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    gateway = Gateway(tmp_path)
    for _ in range(3):
        gateway.use()
        gateway.ledger.carry(NOON)
    gateway.use(1)
    with sqlite3.connect(tmp_path / "keys.db") as connection:
        connection.execute("UPDATE writers SET batch = 1")
    connection.close()
    gateway.kill()
    assert Gateway(tmp_path).spent() == 21
    assert "restored to an older state" in caplog.text


def test_a_store_that_takes_its_place_does_not_get_its_spending(tmp_path: Path) -> None:
    gateway = Gateway(tmp_path)
    gateway.ledger.carry(NOON)
    gateway.ledger.leave()
    gateway.use()
    gateway.kill()
    assert Gateway(tmp_path).spent() == 0


def test_files_of_others_are_not_opened(tmp_path: Path) -> None:
    (tmp_path / f"{journal.PREFIX}link").symlink_to("/etc/passwd")
    os.mkfifo(tmp_path / f"{journal.PREFIX}pipe", 0o600)
    (tmp_path / f"{journal.PREFIX}wide").write_bytes(b"x" * 1000)
    (tmp_path / f"{journal.PREFIX}odd").write_bytes(b"x" * 200_000)
    (tmp_path / f"{journal.PREFIX}odd").chmod(0o600)
    assert Gateway(tmp_path).spent() == 0
    # What nobody can read is removed, what is not ours stays.
    assert files(tmp_path)[-3:] == [f"{journal.PREFIX}{name}" for name in ("link", "pipe", "wide")]


def test_files_without_a_ledger_are_removed_and_not_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """However many other files are in the folder."""
    for number in range(5):
        (tmp_path / f"other{number}").touch()
    unclaimed = [Gateway(tmp_path) for _ in range(3)]
    unclaimed[0].use()
    claimed = Gateway(tmp_path)
    claimed.ledger.carry(NOON)
    claimed.use(5)
    for one in (*unclaimed, claimed):
        one.kill()
    monkeypatch.setattr(journal, "MAX_FILES", 2)
    monkeypatch.setattr(journal, "MAX_ENTRIES", 5)
    assert Gateway(tmp_path).spent() == 5
    # That of the claimed one, whose minute goes on, and of the new one.
    assert len(files(tmp_path)) == 2
    assert caplog.text.count(journal.UNCLAIMED) == 1


def test_a_group_may_have_rights_for_the_file(tmp_path: Path) -> None:
    """Kubernetes gives them to the group of a volume."""
    gateway = Gateway(tmp_path)
    gateway.ledger.carry(NOON)
    gateway.use()
    gateway.kill()
    [name] = files(tmp_path)
    (tmp_path / name).chmod(0o660)
    assert Gateway(tmp_path).spent() == 7
    assert (tmp_path / name).stat().st_mode & 0o777 == 0o600


def test_a_file_that_cannot_be_read_now_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    gateway = Gateway(tmp_path)
    gateway.ledger.carry(NOON)
    gateway.use()
    gateway.kill()

    class NoMemory:
        @staticmethod
        def attach(_: int) -> Segment:
            raise OSError(errno.ENOMEM, "no memory")

    with monkeypatch.context() as patch:
        patch.setattr(journal, "Segment", NoMemory)
        found = Gateway(tmp_path)
        assert found.spent() == 0
        found.kill()
    assert journal.UNREADABLE in caplog.text
    assert Gateway(tmp_path).spent() == 7


def test_a_database_that_is_locked_at_the_start_gets_what_was_spent(tmp_path: Path) -> None:
    Gateway(tmp_path).spent()
    with contextlib.closing(sqlite3.connect(tmp_path / "keys.db", isolation_level=None)) as connection:
        connection.execute("PRAGMA locking_mode=EXCLUSIVE")
        connection.execute("BEGIN EXCLUSIVE")
        gateway = Gateway(tmp_path)
        with pytest.raises(LogFailure):
            gateway.ledger.carry(NOON)
        gateway.use()
        gateway.kill()
    assert Gateway(tmp_path).spent() == 7


def test_no_room_is_told(tmp_path: Path) -> None:
    with pytest.raises(OSError):
        journal.begin(str(tmp_path / "nowhere"), 1, Segment.create(state_bytes=1 << 20))
    with pytest.raises(OSError):
        journal.begin(str(tmp_path), 1 << 44, Segment.create(state_bytes=1 << 20))
    assert list(tmp_path.iterdir()) == []


def generation(place: Path, told: int) -> None:
    """Spend without an end, and tell of each request when it is counted."""
    gateway = Gateway(place)
    while True:
        gateway.ledger.carry(NOON)
        for _ in range(random.randrange(20)):
            gateway.use(1)
            os.write(told, b".")


@pytest.mark.parametrize("seed", range(3))
def test_processes_that_are_killed_at_any_moment_lose_nothing(seed: int, tmp_path: Path) -> None:
    """What all of them have told is in the ledger, and at most the request that was under way at each kill beside it."""
    draw, killed, told = random.Random(seed), 12, 0
    for _ in range(killed):
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                generation(tmp_path, writing)
            finally:
                os._exit(1)
        os.close(writing)
        for _ in range(draw.randrange(1, 60)):
            told += len(os.read(reading, 1))
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        while found := os.read(reading, 65536):
            told += len(found)
        os.close(reading)
    last = Gateway(tmp_path)
    assert told <= last.spent() <= told + killed
    assert told <= last.minute() <= told + killed
