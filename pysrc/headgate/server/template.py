"""The template process, which workers are forked from: it has imported all that they need, and its heap is frozen.

A worker shares the memory of its template for as long as neither writes to it, and starts without importing anything.
The template has no thread and no event loop; it waits for one order at a time. Its workers are children of the
supervisor: they outlive the template and end with the supervisor.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import signal
import socket
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from headgate.server import activation, handover, service_manager
from headgate.server.parent_death import die_with_parent
from headgate.server.process_title import set_title
from headgate.telemetry import logs
from headgate_engine.shared.segment import Segment

MAX_ORDER: Final = 65536
STANDARD_STREAMS: Final = 3
# Who waits for the end of a descriptor must not wait for workers, and nobody else may speak to the service manager.
OF_THE_SUPERVISOR: Final = ("READY_FD", handover.VARIABLE, *service_manager.VARIABLES, *activation.VARIABLES)
IGNORED: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR2)


class ForkOrder(NamedTuple):
    """Fork worker `worker` (from 0) with this log format and these log directives. `modules` are imported first."""

    worker: int
    form: str
    levels: str
    modules: tuple[str, ...] = ()


class WorkerStart(NamedTuple):
    """The start parameters of a forked worker. `channel` leads to the supervisor, `folder` to the sockets of the other
    workers.

    `wake_fds` are eventfds, one for each worker. With several workers, a worker writes to them to wake others for
    accept().
    """

    order: ForkOrder
    channel: socket.socket
    segment: Segment
    folder: str
    wake_fds: tuple[int, ...]


def threads() -> int:
    """Return the number of threads of this process, including those of libraries."""
    return len(list(Path("/proc/self/task").iterdir()))


def run_template(
    channel: socket.socket, segment: Segment, folder: str, supervisor: int, wake_fds: tuple[int, ...] = ()
) -> WorkerStart:
    """Make a template of this process, a child of the supervisor. Returns in its workers only."""
    die_with_parent(supervisor)
    set_title("headgate-templ", "headgate: template")
    # Signals go to the supervisor, which tells the workers what to do.
    for number in IGNORED:
        signal.signal(number, signal.SIG_IGN)
    for name in OF_THE_SUPERVISOR:
        os.environ.pop(name, None)
    logs.output.cache_clear()
    _close_all_but(channel.fileno(), *segment.descriptors, *wake_fds)
    channel.setblocking(True)
    gc.freeze()
    while True:
        order, descriptors = _next_order(channel)
        import_all(order.modules)
        if fork_for(supervisor, partial(_answer, channel)):
            channel.close()
            set_title("headgate-worker", f"headgate: worker {order.worker}")
            return WorkerStart(order, socket.socket(fileno=descriptors[0]), segment, folder, wake_fds)
        for descriptor in descriptors:
            os.close(descriptor)


def _answer(channel: socket.socket, pid: int) -> None:
    channel.send(json.dumps({"pid": pid} if pid > 0 else {"errno": -pid}).encode())


def fork_for(parent: int, tell: Callable[[int], None]) -> bool:
    """Fork a process that becomes a child of `parent`, which adopts orphans; return True in that process.

    The process in between ends at once: its child is an orphan, which the kernel gives to `parent`. `tell` gets the id
    of the child, or minus the error number. Only then does the child go on: whatever ends this process before ends it.
    """
    from_child, to_parent = os.pipe()
    from_parent, to_child = os.pipe()
    try:
        between = os.fork()
    except OSError as error:
        between, failed = -1, error.errno or 1
    if between == 0:
        return _fork_again(parent, to_parent, from_parent, (from_child, to_child))
    os.close(to_parent)
    os.close(from_parent)
    if between > 0:
        told = os.read(from_child, 32)
        os.waitpid(between, 0)
        tell(int(told or b"-1"))
        os.write(to_child, b".")
    else:
        tell(-failed)
    os.close(from_child)
    os.close(to_child)
    return False


def _fork_again(parent: int, to_parent: int, from_parent: int, others: tuple[int, int]) -> bool:
    """Fork the worker in the process in between, which ends here."""
    try:
        pid = os.fork()
    except OSError as error:
        pid = -(error.errno or 1)
    if pid:
        os.write(to_parent, str(pid).encode())
        os._exit(0)
    for descriptor in (*others, to_parent):
        os.close(descriptor)
    if not os.read(from_parent, 1):
        os._exit(1)
    os.close(from_parent)
    die_with_parent(parent)
    return True


def run_from_arguments() -> WorkerStart:
    """Run the template as a separate program. Arguments: CHANNEL_FD SEGMENT_FD KEPT_FD SUPERVISOR FOLDER WAKE_FD..."""
    channel_fd, segment_fd, kept_fd, supervisor = (int(word) for word in sys.argv[1:5])
    wake_fds = tuple(int(word) for word in sys.argv[6:])
    channel, segment = socket.socket(fileno=channel_fd), Segment.attach(segment_fd, kept=kept_fd)
    return run_template(channel, segment, sys.argv[5], supervisor, wake_fds)


def _next_order(channel: socket.socket) -> tuple[ForkOrder, list[int]]:
    data, descriptors, _flags, _address = socket.recv_fds(channel, MAX_ORDER, 1)
    if not data:
        os._exit(0)
    worker, form, levels, modules = json.loads(data)
    return ForkOrder(worker, form, levels, tuple(modules)), descriptors


def import_all(modules: tuple[str, ...]) -> None:
    """Import the modules that workers use. Ignores failures: the import fails again in the worker, which reports it."""
    for name in modules:
        if name not in sys.modules:
            with contextlib.suppress(ImportError):
                importlib.import_module(name)
    gc.freeze()


def _close_all_but(*kept: int) -> None:
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    for path in list(Path("/proc/self/fd").iterdir()):
        number = int(path.name)
        if number >= STANDARD_STREAMS and number not in kept:
            with contextlib.suppress(OSError):
                os.close(number)
