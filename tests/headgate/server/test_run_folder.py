"""The folder of a running gateway: where it is, and who removes it."""

from __future__ import annotations

import errno
import fcntl
import os
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from headgate.server import run_folder
from headgate.server.run_folder import MAX_FOLDERS, RunFolder, remove_dead


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir="/tmp") as path:       # the path of a socket has 107 bytes
        monkeypatch.setenv("TMPDIR", path)
        yield Path(path)


def left_by_a_dead_gateway(place: Path, name: str = "headgate-run-0123456789abcdef") -> Path:
    path = place / name
    path.mkdir(mode=0o700)
    before = Path.cwd()
    os.chdir(path)      # the path of a socket has 107 bytes
    try:
        with socket.socket(socket.AF_UNIX) as sock:
            sock.bind("worker-0")
    finally:
        os.chdir(before)
    return path


def test_a_root_that_is_read_only_leaves_shared_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.mkdir

    def read_only(path: str, mode: int = 0o777) -> None:
        if not path.startswith("/dev/shm/"):
            raise OSError(errno.EROFS, "Read-only file system")
        real(path, mode)

    monkeypatch.setattr(os, "mkdir", read_only)
    folder = RunFolder.create()
    try:
        assert folder.path.startswith("/dev/shm/headgate-run-")
        assert os.stat(folder.path).st_mode & 0o777 == 0o700
    finally:
        folder.remove()
    assert not os.path.exists(folder.path)
    monkeypatch.setattr(run_folder, "SHARED_MEMORY", "/nowhere")
    with pytest.raises(OSError, match="Read-only file system"):
        RunFolder.create()


def test_the_folder_is_where_the_environment_says(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(place / "none"))
    monkeypatch.setenv("TEMP", str(place))
    first, second = RunFolder.create(), RunFolder.create()
    assert first.path != second.path
    assert Path(first.path).parent == Path(second.path).parent == place
    first.remove()
    first.remove()
    second.remove()
    assert list(place.iterdir()) == []


def test_a_place_with_a_path_that_no_socket_can_have_is_passed_over(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = place / ("d" * 100)
    deep.mkdir()
    monkeypatch.setenv("TMPDIR", str(deep))
    monkeypatch.setenv("TEMP", str(place))
    folder = RunFolder.create()
    assert Path(folder.path).parent == place
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(f"{folder.path}/{'n' * (run_folder.MAX_NAME - 1)}")
    folder.remove()
    assert (list(place.iterdir()), list(deep.iterdir())) == ([deep], [])


def test_a_start_removes_what_dead_gateways_have_left(place: Path) -> None:
    dead, living = left_by_a_dead_gateway(place), RunFolder.create()
    assert not dead.exists()
    another = left_by_a_dead_gateway(place)
    second = RunFolder.create()
    assert not another.exists()
    assert os.path.exists(living.path), "its lock is held"
    living.remove()
    second.remove()
    assert list(place.iterdir()) == []


def test_a_child_keeps_the_folder_of_its_parent(place: Path) -> None:
    """A lock ends with the last process that holds it, not with the first."""
    folder = RunFolder.create()
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(theirs)
        os.read(ours, 1)
        os._exit(0)
    os.close(ours)
    os.close(folder._lock)
    remove_dead(str(place))
    assert os.path.exists(folder.path)
    os.close(theirs)
    os.waitpid(child, 0)
    remove_dead(str(place))
    assert not os.path.exists(folder.path)


def test_what_is_not_ours_stays(place: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    elsewhere = left_by_a_dead_gateway(tmp_path_factory.mktemp("elsewhere"))
    (place / "headgate-run-00000000000000aa").symlink_to(elsewhere)
    (place / "headgate-run-00000000000000bb").write_text("a file")
    for name in ("headgate-run-0123456789abcdeg", "headgate-run-0123", "headgate-0123456789abcdef", "headgate-run-0123456789abcdef0"):
        left_by_a_dead_gateway(place, name)
    open_to_others = left_by_a_dead_gateway(place)
    open_to_others.chmod(0o755)
    with_a_file = left_by_a_dead_gateway(place, "headgate-run-00000000000000cc")
    (with_a_file / "notes").write_text("mine")
    (with_a_file / "folder").mkdir()
    before = {path.name for path in place.iterdir()}
    remove_dead(str(place))
    assert {path.name for path in place.iterdir()} == before
    assert (elsewhere / "worker-0").exists()
    assert (open_to_others / "worker-0").exists()
    assert {path.name for path in with_a_file.iterdir()} == {"notes", "folder"}


def test_folders_of_other_users_stay(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dead = left_by_a_dead_gateway(place)
    monkeypatch.setattr(os, "geteuid", lambda: dead.stat().st_uid + 1)
    remove_dead(str(place))
    assert (dead / "worker-0").exists()


def test_a_start_has_a_bound(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(MAX_FOLDERS + 3):
        left_by_a_dead_gateway(place, f"headgate-run-{number:016x}")
    remove_dead(str(place))
    assert len(list(place.iterdir())) == 3
    monkeypatch.setattr(run_folder, "MAX_ENTRIES", 1)
    remove_dead(str(place))
    assert len(list(place.iterdir())) == 2


def test_one_that_another_start_has_removed_meanwhile_is_made_again(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, made = os.mkdir, []

    def stolen(path: str, mode: int) -> None:
        real(path, mode)
        made.append(path)
        if len(made) == 1:
            remove_dead(str(place))

    monkeypatch.setattr(os, "mkdir", stolen)
    folder = RunFolder.create()
    assert made[0] != folder.path == made[1]
    folder.remove()


@pytest.mark.parametrize("when", ["locked", "gone"])
def test_one_that_another_start_has_opened_first_is_made_again(
    place: Path, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    real, calls = fcntl.flock, 0

    def late(lock: int, how: int) -> None:
        nonlocal calls
        calls += 1
        if calls == 1 and when == "locked":
            raise BlockingIOError
        if calls == 1:
            [path] = place.iterdir()
            path.rmdir()
        real(lock, how)

    monkeypatch.setattr(fcntl, "flock", late)
    folder = RunFolder.create()
    assert calls >= 2
    assert os.path.exists(folder.path)
    folder.remove()


def test_what_cannot_be_locked_is_removed_by_its_own_gateway_alone(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel may have no lock now (ENOLCK) and one for the next start, which must not take a living one for dead."""

    def refuse(lock: int, how: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    with monkeypatch.context() as patch:
        patch.setattr(fcntl, "flock", refuse)
        first = RunFolder.create()
        second = RunFolder.create()
        assert os.path.exists(first.path)
    third = RunFolder.create()
    for folder in (first, second, third):
        assert os.stat(folder.path).st_mode & 0o777 == 0o700
        folder.remove()
    assert list(place.iterdir()) == []


def test_one_that_is_gone_before_its_gateway_has_no_lock_is_made_again(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Path] = []

    def refuse(lock: int, how: int) -> None:
        [path] = place.iterdir()
        made.append(path)
        if len(made) == 1:
            path.rmdir()
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    folder = RunFolder.create()
    assert len(made) == 2
    assert folder.path == f"{made[1]}-unlocked"
    folder.remove()
    assert list(place.iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="gives folders to another user")
def test_folders_of_others_are_in_nobodys_way(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_folder, "MAX_FOLDERS", 1)
    for number in range(8):
        os.chown(left_by_a_dead_gateway(place, f"headgate-run-{number:016x}"), 65534, 65534)
    left_by_a_dead_gateway(place, "headgate-run-00000000000000ff")
    remove_dead(str(place))
    assert sorted(path.name[-2:] for path in place.iterdir()) == [f"0{number}" for number in range(8)]
