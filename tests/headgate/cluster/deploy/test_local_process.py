"""The log of a gateway on this machine."""

from __future__ import annotations

import os
from pathlib import Path

from headgate.cluster.deploy.local_process import LOG, OLDER_LOG, bound_log


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
