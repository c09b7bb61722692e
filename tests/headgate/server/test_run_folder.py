"""What a start needs of the machine."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

import pytest

from headgate.server import start


def test_a_root_that_is_read_only_leaves_shared_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.mkdir

    def read_only(path: str, mode: int = 0o777) -> None:
        if not path.startswith("/dev/shm/"):
            raise OSError(errno.EROFS, "Read-only file system")
        real(path, mode)

    monkeypatch.setattr(os, "mkdir", read_only)
    folder = start.private_folder()
    try:
        assert folder.startswith("/dev/shm/headgate-")
        assert os.stat(folder).st_mode & 0o777 == 0o700
    finally:
        shutil.rmtree(folder)
    monkeypatch.setattr(start, "SHARED_MEMORY", "/nowhere")
    with pytest.raises(OSError, match="Read-only file system"):
        start.private_folder()


def test_the_folder_is_where_the_environment_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path / "none"))
    monkeypatch.setenv("TEMP", str(tmp_path))
    first, second = start.private_folder(), start.private_folder()
    assert first != second
    assert Path(first).parent == Path(second).parent == tmp_path
