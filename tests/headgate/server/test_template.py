"""Processes forked from a template: whose children they are, and that none repeats the random numbers of another."""

from __future__ import annotations

import os
import random
import secrets
import signal
import ssl
import subprocess
import sys
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

from headgate.backend.mcp.session import SessionIds
from headgate.server.child import ChildProcess
from headgate.server.parent_death import adopting
from headgate.server.template import fork_for
from headgate_drivers.requests import draw_below
from headgate_engine.shared import lock

PATIENCE = 60.0


def grandchild(work: Callable[[], str]) -> tuple[ChildProcess, str]:
    """Return the process that a child of this one has forked for it, as its own child, and what it wrote."""
    reading, writing = os.pipe()
    told, tell = os.pipe()
    parent = os.getpid()
    with adopting():
        between = os.fork()
        if between == 0:
            try:
                if fork_for(parent, lambda pid: os.write(tell, str(pid).encode())):
                    os.write(writing, work().encode())
            finally:
                os._exit(0)
        os.close(writing)
        os.close(tell)
        os.waitpid(between, 0)
    pid = int(os.read(told, 32))
    with os.fdopen(reading) as file:
        text = file.read()
    os.close(told)
    return ChildProcess(pid), text


def test_the_process_is_a_child_of_the_supervisor() -> None:
    child, text = grandchild(lambda: f"{os.getpid()} {os.getppid()}")
    assert text == f"{child.pid} {os.getpid()}"
    assert child.wait(PATIENCE) == 0
    assert child.poll() == 0


@pytest.mark.parametrize(
    "draw",
    [
        lambda: str(random.getrandbits(64)),
        lambda: secrets.token_hex(8),
        lambda: ssl.RAND_bytes(8).hex(),
        lambda: str(uuid.uuid4()),
        lambda: " ".join(str(draw_below(1 << 31)) for _ in range(4)),
        lambda: SessionIds(bytes(32)).new(0),
        lambda: str(lock.holder_of(os.getpid())),
    ],
    ids=["random", "secrets", "ssl", "uuid", "weights", "session id", "lock word"],
)
def test_no_process_draws_what_another_does(draw: Callable[[], str]) -> None:
    draw()
    texts = [grandchild(draw)[1] for _ in range(3)]
    assert len({*texts, draw()}) == 4
    assert all(texts)


def test_a_process_that_is_killed_tells_by_what() -> None:
    child, _ = grandchild(lambda: "")
    assert child.wait(PATIENCE) == 0
    pid = os.fork()
    if pid == 0:
        signal.pause()
    child = ChildProcess(pid)
    assert child.poll() is None
    child.kill()
    assert child.returncode == -signal.SIGKILL


def test_a_process_whose_template_ends_too_early_ends_too() -> None:
    """The supervisor has not heard of it: nobody else would end it."""
    reading, writing = os.pipe()
    with adopting():
        between = os.fork()
        if between == 0:
            try:
                if fork_for(os.getppid(), lambda _pid: os._exit(0)):
                    os.write(writing, b"it goes on")
            finally:
                os._exit(0)
        os.close(writing)
        os.waitpid(between, 0)
    with os.fdopen(reading) as file:
        assert file.read() == ""


def test_a_title_is_what_ps_shows(tmp_path: Path) -> None:
    code = (
        "import sys; from headgate.server.process_title import set_title; set_title('short', 'a title'); "
        "print('set', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, "x" * 40], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "set\n"
        assert Path(f"/proc/{process.pid}/comm").read_text() == "short\n"
        assert Path(f"/proc/{process.pid}/cmdline").read_bytes().rstrip(b"\0") == b"a title"
        process.communicate()


def test_descriptors_of_the_supervisor_are_not_in_the_template(tmp_path: Path) -> None:
    code = """
import os, socket, sys
from headgate.server.template import run_template
from headgate_engine.shared.segment import Segment
ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
reading, writing = os.pipe()
if os.fork() == 0:
    run_template(theirs, Segment.create(), "", os.getppid())
os.close(writing)
print(os.read(reading, 1) == b"")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE, check=True)
    assert done.stdout == "True\n"
