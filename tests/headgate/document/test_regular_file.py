"""Files that a configuration names."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from headgate.document.regular_file import open_regular, read_regular


def test_regular_files_and_links_to_them_are_read(tmp_path: Path) -> None:
    real, link = tmp_path / "a", tmp_path / "b"
    real.write_bytes(b"content")
    link.symlink_to(real)
    assert read_regular(str(link)) == read_regular(real) == b"content"
    assert read_regular(real, 3) == b"con"
    with open_regular(real) as file:
        assert file.read() == b"content"


def test_what_is_no_regular_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    before = len(os.listdir("/proc/self/fd"))
    for path, why in ((tmp_path / "fifo", "not a regular file"), (Path("/dev/zero"), "not a regular file"), (tmp_path, "directory")):
        with pytest.raises(OSError, match=re.escape(why)) as failed:
            read_regular(path)
        assert failed.value.filename == str(path)
    with pytest.raises(FileNotFoundError):
        read_regular(tmp_path / "none")
    assert len(os.listdir("/proc/self/fd")) == before
