"""Runs test files side by side: `pytest --processes N` collects once, and forks N processes that take one file after the other.

With pytest-xdist (`-n`) each process imports and collects all test modules: twelve seconds and 900 MB for each of them. Here the
processes share what one has collected. Files are given out in the order of the collection. Fixtures of a session live as long as
a process, those of a module end with their file, and failures are told as without `--processes`. A process that ends is told as
a failure of the test that it ran; another one runs the rest of its file. One that hangs is killed: a test whose limit of pytest-timeout does
not end it, and the end of the fixtures of a session, have a limit here.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import itertools
import os
import pickle
import signal
import socket
import struct
import sys
import threading
import time
import traceback
import warnings
from collections import deque
from collections.abc import Iterator
from multiprocessing.connection import wait
from types import SimpleNamespace
from typing import Any

import pytest
from _pytest.runner import CallInfo

# How long processes may take to end their fixtures when a run is interrupted, in seconds.
PATIENCE = 30.0
# How long a process may take to end its session, in seconds; then the kernel ends it, whether its parent lives or not.
END_SECONDS = 300
# How much longer than its limit of pytest-timeout a test may take before its process is killed, in seconds. That limit is a signal, which
# code that never returns to the interpreter does not see.
GRACE = 60.0
# In front of each message: how many bytes it has.
LENGTH = struct.Struct("!Q")
# prctl(2): the signal that a process gets when its parent ends.
PR_SET_PDEATHSIG = 1


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--processes", metavar="N", type=int, help="collect once, and run files in N processes")


def pytest_configure(config: pytest.Config) -> None:
    count = config.getoption("--processes")
    if count is None:
        return
    if count < 1:
        raise pytest.UsageError("--processes is at least 1")
    if config.getoption("usepdb") or getattr(config.option, "numprocesses", None):
        raise pytest.UsageError("--processes goes with neither -n nor --pdb")
    config.pluginmanager.register(Run(config, count), "forked_run")


def files_of(items: list[pytest.Item]) -> list[list[int]]:
    """The positions of tests, by file, in their order."""
    found: dict[str, list[int]] = {}
    for number, item in enumerate(items):
        found.setdefault(item.nodeid.partition("::")[0], []).append(number)
    return list(found.values())


def packed(message: Any) -> bytes:
    """A message as it goes over a channel."""
    data = pickle.dumps(message)
    return LENGTH.pack(len(data)) + data


class Inbox:
    """Reads messages from a channel without waiting for the rest of one: its writer may have been killed in the middle, while
    a fork that a test has left behind keeps the channel open.
    """

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._kept = bytearray()
        self.over = False       # nothing more will come

    def read(self) -> Iterator[Any]:
        """The messages that have come in full."""
        while not self.over:
            try:
                data = self._channel.recv(1 << 16, socket.MSG_DONTWAIT)
            except BlockingIOError:
                break
            except OSError:
                data = b""
            self._kept += data
            self.over = not data
        while len(self._kept) >= LENGTH.size:
            end = LENGTH.size + LENGTH.unpack_from(self._kept)[0]
            if len(self._kept) < end:
                return
            message = pickle.loads(self._kept[LENGTH.size : end])      # of a fork of this process
            del self._kept[:end]
            yield message


def limit_of(item: pytest.Item) -> float | None:
    """After how many seconds pytest-timeout fails the test; None without a limit."""
    marker = item.get_closest_marker("timeout")
    found: Any = item.config.getoption("timeout", None)
    if found is None:
        found = os.environ.get("PYTEST_TIMEOUT")
    if found is None and any(map(item.config.pluginmanager.hasplugin, ("timeout", "pytest_timeout"))):
        found = item.config.getini("timeout")
    if marker is not None:
        found = marker.args[0] if marker.args else marker.kwargs.get("timeout", found)
    return float(found) if found and float(found) > 0 else None


# -- a process that runs tests ---------------------------------------------------------------------------------------------


class Runner:
    """Runs what the parent asks for, and tells it what comes of it."""

    def __init__(self, session: pytest.Session, channel: socket.socket, name: str) -> None:
        self._session, self._config, self._channel = session, session.config, channel
        self._name, self._pid = name, os.getpid()
        self._last: pytest.Item | None = None
        self._told: list[tuple[str, Any]] = []
        self._prepared = False      # earlier warnings are told once more to who comes later

    def main(self, parent: int) -> None:
        """Run until the parent has nothing more; never returns."""
        try:
            self._prepare(parent)
            self._serve()
        except pytest.exit.Exception as error:
            self._session.shouldstop = error.msg
        except (KeyboardInterrupt, EOFError, ConnectionError):      # the parent ends the run, or has ended
            pass
        except BaseException:
            self._told.append(("fault", traceback.format_exc()))
        finally:
            # A fork that a test has left behind is no runner.
            os._exit(self._finish() if os.getpid() == self._pid else 1)

    def _prepare(self, parent: int) -> None:
        # What a shell starts in the background ignores it.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGINT)
        if os.getppid() != parent:
            raise EOFError
        atexit._clear()     # what the parent will do at its end
        plugins = self._config.pluginmanager
        # Others ask for its writer.
        terminal = plugins.unregister(name="terminalreporter")
        plugins.register(SimpleNamespace(_tw=terminal._tw), "terminalreporter")     # type: ignore[union-attr]
        plugins.register(self, "forked_runner")
        self._prepared = True
        capture = plugins.get_plugin("capturemanager")
        capture.start_global_capturing()
        capture.suspend_global_capture()
        folders = self._config._tmp_path_factory    # type: ignore[attr-defined]
        folders._basetemp = folders.getbasetemp() / self._name
        folders._basetemp.mkdir(mode=0o700)

    def _serve(self) -> None:
        items = self._session.items
        while (numbers := self._receive()) is not None:
            for number, following in itertools.pairwise([*numbers, None]):
                item = items[number]
                self._last = item
                self._tell("begun", number)
                # Behind the last test of a file only the session goes on.
                behind: Any = self._session if following is None else items[following]
                self._config.hook.pytest_runtest_protocol(item=item, nextitem=behind)
                self._told.append(("done", None))
                if self._session.shouldfail or self._session.shouldstop:
                    return
            self._tell("file", None)

    def _receive(self) -> list[int] | None:
        """Wait for the next file. Raises EOFError when the parent has ended."""
        [length] = LENGTH.unpack(self._exactly(LENGTH.size))
        numbers: list[int] | None = pickle.loads(self._exactly(length))     # of the process that this is a fork of
        return numbers

    def _exactly(self, length: int) -> bytes:
        data = bytearray()
        while len(data) < length:
            piece = self._channel.recv(length - len(data))
            if not piece:
                raise EOFError
            data += piece
        return bytes(data)

    def _tell(self, kind: str, value: Any) -> None:
        """Send this with what has been kept for it. Raises ConnectionError when the parent has ended."""
        told, self._told = [*self._told, (kind, value)], []
        # An interrupt in the middle of a message would leave the parent with half of it.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            self._channel.sendall(packed(("all", told)))
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def _finish(self) -> int:
        """End the fixtures of the session and what was to be done at the end of the process; its exit status."""
        # Whoever ends the run waits for this, for a while: a terminal interrupts all processes, and the parent does once more.
        signal.signal(signal.SIGINT, lambda *_: None)
        # Of the kernel, so that it holds for code that never returns to the interpreter, and without a parent.
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGALRM})
        signal.alarm(END_SECONDS)
        try:
            self._end_session()
            atexit._run_exitfuncs()
            costs = self._config.pluginmanager.get_plugin("costs")
            self._told.append(("costs", None if costs is None else costs.measured()))
            with contextlib.suppress(ConnectionError):
                self._tell("end", (self._session.shouldfail, self._session.shouldstop))
            for stream in (sys.stdout, sys.stderr):
                stream.flush()
            return 0
        except BaseException:
            traceback.print_exc(file=sys.__stderr__)
            return 1

    def _end_session(self) -> None:
        ended = CallInfo.from_call(lambda: self._session._setupstate.teardown_exact(None), "teardown")
        if ended.excinfo is None:
            return
        if self._last is None:
            self._told.append(("fault", str(ended.excinfo.getrepr())))
            return
        self.pytest_runtest_logreport(pytest.TestReport.from_item_and_call(self._last, ended))

    def pytest_runtest_logstart(self, nodeid: str, location: tuple[str, int | None, str]) -> None:
        self._told.append(("start", (nodeid, location)))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._told.append(("report", self._config.hook.pytest_report_to_serializable(config=self._config, report=report)))

    def pytest_runtest_logfinish(self, nodeid: str, location: tuple[str, int | None, str]) -> None:
        self._told.append(("finish", (nodeid, location)))

    def pytest_warning_recorded(
        self, warning_message: warnings.WarningMessage, when: str, nodeid: str, location: tuple[str, int, str] | None
    ) -> None:
        if not self._prepared:
            return
        kind = getattr(warning_message.category, "__name__", "Warning")
        words = (str(warning_message.message), kind, warning_message.filename, warning_message.lineno)
        self._told.append(("warning", (words, {"when": when, "nodeid": nodeid, "location": location})))


# -- the process that has collected them -------------------------------------------------------------------------------------


class Process:
    """A runner as its parent sees it."""

    def __init__(self, pid: int, channel: socket.socket, name: str) -> None:
        self.pid, self.channel = pid, channel
        self.inbox = Inbox(channel)
        self.deadline: float | None = None  # of the test that it runs, by time.monotonic()
        self.ended = os.pidfd_open(pid)
        self.left: list[int] = []           # of its file
        self.begun: int | None = None       # the test that it runs, or ran last
        self.running = False
        self.finished = False
        # What pytest shows of a report that has a node: those of pytest-xdist have one.
        self.gateway = SimpleNamespace(id=name)
        self._workerinfocache = f"[{name}]"

    def begin(self, number: int, item: pytest.Item) -> None:
        """Note that it runs this test of its file."""
        self.begun, self.running = number, True
        self.left.remove(number)
        limit = limit_of(item)
        self.deadline = None if limit is None else time.monotonic() + limit + GRACE

    def kill(self) -> None:
        """End it; that it has ended is seen later."""
        signal.pidfd_send_signal(self.ended, signal.SIGKILL)
        self.deadline = None

    def close(self) -> int:
        """Wait for its end; its exit status, negative for a signal."""
        _, status = os.waitpid(self.pid, 0)
        os.close(self.ended)
        self.channel.close()
        return os.waitstatus_to_exitcode(status)


class Run:
    """The run of a session in several processes."""

    def __init__(self, config: pytest.Config, count: int) -> None:
        self._config, self._count = config, count
        self._files: deque[list[int]] = deque()
        self._processes: list[Process] = []
        self._names = (f"p{number}" for number in itertools.count())
        self._session: Any = None

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        if self._config.getoption("collectonly") or (
            session.testsfailed and not self._config.getoption("continue_on_collection_errors")
        ):
            return None     # pytest tells of it
        self._session = session
        self._files.extend(files_of(session.items))
        with self._ready_to_fork():
            try:
                for _ in range(min(self._count, len(self._files))):
                    self._start()
                while self._processes and not self._stopping():
                    self._step()
            finally:
                self._stop()
        if session.shouldfail:
            raise session.Failed(session.shouldfail)
        if session.shouldstop:
            raise session.Interrupted(session.shouldstop)
        return True

    def _stopping(self) -> bool:
        return bool(self._session.shouldfail or self._session.shouldstop)

    @contextlib.contextmanager
    def _ready_to_fork(self) -> Iterator[None]:
        """Files that capture output are not shared by processes, and no thread may hold a lock in a fork."""
        others = [thread.name for thread in threading.enumerate() if thread is not threading.main_thread()]
        if others:
            raise pytest.UsageError(f"test modules have started threads, which no fork has: {', '.join(others)}")
        self._config._tmp_path_factory.getbasetemp()    # type: ignore[attr-defined]
        terminal = self._config.pluginmanager.get_plugin("terminalreporter")
        terminal.showfspath = False     # of the file that a process begins
        capture = self._config.pluginmanager.get_plugin("capturemanager")
        capture.stop_global_capturing()
        try:
            yield
        finally:
            capture.start_global_capturing()
            capture.suspend_global_capture()

    def _start(self) -> None:
        """Fork a process, and give it a file."""
        self._config.get_terminal_writer().flush()
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        name, parent = next(self._names), os.getpid()
        ours, theirs = socket.socketpair()
        pid = os.fork()
        if pid == 0:
            ours.close()
            for other in self._processes:
                other.channel.close()
                os.close(other.ended)
            self._config.pluginmanager.unregister(self)
            Runner(self._session, theirs, name).main(parent)
        theirs.close()
        self._processes.append(Process(pid, ours, name))
        self._give(self._processes[-1])

    def _give(self, process: Process) -> None:
        """Give it the next file, or let it end."""
        numbers = None if self._stopping() or not self._files else self._files.popleft()
        process.left = list(numbers or ())
        with contextlib.suppress(OSError):      # its end is seen later
            process.channel.sendall(packed(numbers))

    def _step(self) -> None:
        """Hear what one or several processes tell."""
        by_source: dict[Any, Process] = {}
        for process in self._processes:
            by_source[process.ended] = process
            if not process.inbox.over:
                by_source[process.channel] = process
        deadlines = [process.deadline for process in self._processes if process.deadline is not None]
        found = wait(list(by_source), max(0.0, min(deadlines) - time.monotonic()) if deadlines else None)
        for process in dict.fromkeys(by_source[source] for source in found):
            self._listen(process)
            if process.ended in found:
                self._bury(process)
        now = time.monotonic()
        for process in self._processes:
            if process.deadline is not None and process.deadline <= now:
                process.kill()

    def _listen(self, process: Process) -> None:
        for message in process.inbox.read():
            self._hear(process, *message)

    def _hear(self, process: Process, kind: str, value: Any) -> None:
        hook = self._config.hook
        match kind:
            case "all":
                for one in value:
                    self._hear(process, *one)
            case "begun":
                process.begin(value, self._session.items[value])
            case "done":
                process.running, process.deadline = False, None
            case "start":
                hook.pytest_runtest_logstart(nodeid=value[0], location=value[1])
            case "report":
                report = hook.pytest_report_from_serializable(config=self._config, data=value)
                report.node = process
                hook.pytest_runtest_logreport(report=report)
            case "finish":
                hook.pytest_runtest_logfinish(nodeid=value[0], location=value[1])
            case "warning":
                self._warn(*value)
            case "file":
                self._give(process)
            case "costs":
                if value is not None:
                    self._config.pluginmanager.get_plugin("costs").add(*value)
            case "end":
                process.finished = True
                self._session.shouldfail = self._session.shouldfail or value[0]
                self._session.shouldstop = self._session.shouldstop or value[1]
            case "fault":
                raise RuntimeError(f"process {process.gateway.id}: {value}")

    def _warn(self, words: tuple[str, str, str, int], more: dict[str, Any]) -> None:
        text, kind, file, line = words
        # Classes of tests need not be importable here; the name is what is shown.
        category = type(kind, (Warning,), {})
        message = warnings.WarningMessage(text, category, file, line)
        self._config.hook.pytest_warning_recorded.call_historic(kwargs={"warning_message": message, **more})

    def _bury(self, process: Process) -> None:
        """Tell of the end of a process; another one runs what it has left, unless it was asked to end."""
        self._processes.remove(process)
        status = process.close()
        # One that an interrupt of its own has ended tells its end as well: what it ran and what it has left say so.
        if process.finished and (self._stopping() or not (process.running or process.left)):
            return
        how = f"signal {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"
        if process.begun is None:
            raise RuntimeError(f"process {process.gateway.id} ended before its first test: {how}")
        when = "while it ran" if process.running else "behind"
        item = self._session.items[process.begun]
        report = pytest.TestReport(
            item.nodeid, item.location, {}, "failed", f"process {process.gateway.id} ended ({how}) {when} {item.nodeid}", "call"
        )
        report.node = process       # type: ignore[attr-defined]
        self._config.hook.pytest_runtest_logreport(report=report)
        if process.left:
            self._files.appendleft(process.left)
        if self._files and not self._stopping():
            self._start()

    def _stop(self) -> None:
        """End those that still run, of a run that is interrupted or has failed often enough."""
        for process in self._processes:
            signal.pidfd_send_signal(process.ended, signal.SIGINT)
            process.channel.close()
        deadline = time.monotonic() + PATIENCE
        left = list(self._processes)
        while left and (seconds := deadline - time.monotonic()) > 0:
            found = wait([process.ended for process in left], seconds)
            left = [process for process in left if process.ended not in found]
        for process in left:
            process.kill()
        while self._processes:
            self._processes.pop().close()
