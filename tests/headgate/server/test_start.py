"""What a start needs of the machine."""

from __future__ import annotations

import os
import shutil
import tempfile

import pytest

from headgate.server import start


def test_a_root_that_is_read_only_leaves_shared_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    real = tempfile.mkdtemp

    def read_only(prefix: str, dir: str | None = None) -> str:
        if dir is None:
            raise FileNotFoundError(2, "No usable temporary directory found")
        return real(prefix=prefix, dir=dir)

    monkeypatch.setattr(tempfile, "mkdtemp", read_only)
    folder = start.private_folder()
    try:
        assert folder.startswith("/dev/shm/headgate-")
        assert os.stat(folder).st_mode & 0o777 == 0o700
    finally:
        shutil.rmtree(folder)
    monkeypatch.setattr(start, "SHARED_MEMORY", "/nowhere")
    with pytest.raises(FileNotFoundError, match="No usable temporary directory"):
        start.private_folder()
