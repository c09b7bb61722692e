"""How processes end, and what keeps them from it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PATIENCE = 60
PROGRAM = """
import asyncio, contextlib, logging, pathlib, sys, threading
from headgate.server.ending import bound_end
from headgate.telemetry.levels import Directives
from headgate.telemetry import logs

async def stubborn():
    while True:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()

async def main():
    {work}
    await asyncio.sleep(0)
    bound_end(3, pathlib.Path(sys.argv[1]).unlink, {seconds})

logs.set_up(Directives("info"), "text")
asyncio.run(main())
"""


def run(tmp_path: Path, work: str, seconds: float) -> tuple[int, str, bool]:
    """Return the exit status of a process, what it said, and whether what it has to clean is still there."""
    path = tmp_path / "left"
    path.touch()
    words = [sys.executable, "-c", PROGRAM.format(work=work, seconds=seconds), str(path)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE, check=False)
    return done.returncode, done.stdout + done.stderr, path.exists()


@pytest.mark.parametrize(
    ("work", "named"),
    [
        ("task = asyncio.get_running_loop().create_task(stubborn(), name='stubborn one')", 'tasks="stubborn one"'),
        ("asyncio.get_running_loop().run_in_executor(None, threading.Event().wait)", "asyncio_0: wait < wait < run"),
        ("threading.Thread(target=threading.Event().wait, name='some reader').start()", 'threads="some reader: wait < wait'),
    ],
)
def test_what_does_not_end_is_named_and_left(tmp_path: Path, work: str, named: str) -> None:
    status, said, left = run(tmp_path, work, 0.3)
    assert status == 3
    assert "shutdown takes too long" in said
    assert named in said
    assert not left


def test_an_end_in_time_is_left_alone(tmp_path: Path) -> None:
    assert run(tmp_path, "pass", PATIENCE * 2) == (0, "", True)


LEAVING = """
import atexit, sys, threading
from headgate.server.ending import leave

class Left:
    def __del__(self):
        print("taken apart")

left = Left()
go = threading.Event()
atexit.register(print, "at exit")
threading.Thread(target=lambda: (go.wait(), print("thread"))).start()
threading.Thread(target=threading.Event().wait, daemon=True).start()
sys.stderr.write("error")
go.set()
{before}
leave(5)
"""


@pytest.mark.parametrize(("before", "said"), [("", "thread\nat exit\n"), ("sys.stdout.close()", "")])
def test_a_process_that_leaves_ends_all_but_its_objects(before: str, said: str) -> None:
    words = [sys.executable, "-c", LEAVING.format(before=before)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert (done.returncode, done.stdout) == (5, said)
    assert done.stderr.startswith("error")
