"""The log of a gateway on this machine."""

from __future__ import annotations

import os
from pathlib import Path

from headgate.cluster.deploy.local_process import LOG, OLDER_LOG, bound_log, last_line


def test_a_log_that_is_too_long_is_set_aside(tmp_path: Path) -> None:
    bound_log(tmp_path, 100)
    file, older = tmp_path / LOG, tmp_path / OLDER_LOG
    with open(file, "ab", buffering=0) as log:
        log.write(b"a" * 100)
        bound_log(tmp_path, 100)
        assert not older.exists()
        log.write(b"b" * 50)
        bound_log(tmp_path, 100)
        assert file.read_bytes() == b""
        # Of the longest part the newest end is kept.
        assert older.read_bytes() == b"a" * 50 + b"b" * 50
        assert older.stat().st_mode & 0o077 == 0
        # Who writes goes on at the end of the file, which is at its beginning now.
        log.write(b"c" * 10)
        assert file.read_bytes() == b"c" * 10
        assert os.stat(file).st_size == 10
        log.write(b"d" * 200)
        bound_log(tmp_path, 100)
        assert older.read_bytes() == b"d" * 100


def test_the_last_line_of_a_log_is_told_in_part(tmp_path: Path) -> None:
    assert last_line(tmp_path) == ""
    (tmp_path / LOG).write_bytes(b"first\nlast \xff\n\n  \n")
    assert last_line(tmp_path) == "last \ufffd"
    (tmp_path / LOG).write_text("x" * 100_000 + "\nlong " + "y" * 5000 + "\n")
    assert last_line(tmp_path) == "long " + "y" * 495
    (tmp_path / LOG).write_text("")
    assert last_line(tmp_path) == ""
