"""Lock words: a live process is known by its word, a dead one or a stranger with its id is not."""

from __future__ import annotations

import os
import subprocess
import sys

from headgate_engine.shared.lock import holder_of


def test_a_live_process_has_a_word_that_holds_its_id() -> None:
    word = holder_of(os.getpid())
    assert word >> 32 == os.getpid()
    assert word & 0xFFFFFFFF
    assert word == holder_of(os.getpid())


def test_a_zombie_and_a_reaped_process_have_none() -> None:
    child = subprocess.Popen(["sleep", "60"])
    assert holder_of(child.pid)
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert holder_of(child.pid) == 0
    child.wait()
    assert holder_of(child.pid) == 0


def test_a_program_name_with_blanks_and_parentheses_is_no_riddle(tmp_path: object) -> None:
    odd = f"{tmp_path}/a) Z 1 2"
    os.symlink(sys.executable, odd)
    child = subprocess.Popen([odd, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)
    try:
        word = holder_of(child.pid)
        with open(f"/proc/{child.pid}/stat", "rb") as file:
            start = int(file.read().rpartition(b") ")[2].split()[19])
        assert word == child.pid << 32 | start & 0xFFFFFFFF
    finally:
        child.kill()
        child.communicate()
