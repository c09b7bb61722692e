"""Test files side by side in forks of one process (tests/forked_run.py): what is told is what pytest tells without."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests import forked_run

ROOT = Path(__file__).resolve().parents[2]
FIXTURES = """
import os, pathlib, pytest
EVENTS = pathlib.Path(__file__).with_name("events")

def tell(text):
    with EVENTS.open("a") as file:
        file.write(f"{text} {os.getpid()}\\n")

@pytest.fixture(scope="session", autouse=True)
def process():
    tell("session")
    yield
    tell("session ended")

@pytest.fixture(scope="module", autouse=True)
def file(request, process):
    yield
    tell(f"{request.module.__name__} ended")
"""
MIXED = {
    "test_a.py": """
import os, warnings, pytest

def test_passes(tmp_path):
    (tmp_path / "mine").touch()

def test_fails():
    print("said before it failed")
    warnings.warn("take care")
    assert 1 + 1 == 3

@pytest.mark.skip(reason="not today")
def test_skips():
    raise AssertionError

@pytest.fixture
def broken():
    yield
    raise RuntimeError("the end is broken")

def test_ends_badly(broken):
    pass
""",
    "test_b.py": """
import os, signal

def test_before(): pass

def test_dies(): os.kill(os.getpid(), signal.SIGKILL)

def test_behind(): pass

def test_leaves(): os._exit(3)
""",
    "test_c.py": "def test_passes(tmp_path_factory): assert tmp_path_factory.getbasetemp().name.startswith('p')\n",
}
Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start(tmp_path: Path) -> Start:
    """`start(files, *words)` runs pytest over files in two processes."""

    def run(files: dict[str, str], *words: str) -> subprocess.Popen[str]:
        for name, text in {"conftest.py": FIXTURES, "pytest.ini": "[pytest]\n", **files}.items():
            (tmp_path / name).write_text(text)
        command = [sys.executable, "-m", "pytest", "-p", "tests.forked_run", "--processes", "2", "--rootdir", str(tmp_path)]
        command += ["-c", str(tmp_path / "pytest.ini"), "-p", "no:cacheprovider", "-p", "pytest_timeout", "--basetemp", str(tmp_path / "temporary")]
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
        environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"     # the others of this environment take a second to import
        # What a shell starts in the background ignores it, and so would what that starts.
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            return subprocess.Popen(
                [*command, *words, str(tmp_path)], cwd=ROOT, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
            )
        finally:
            signal.signal(signal.SIGINT, before)

    return run


def ended(process: subprocess.Popen[str], status: int) -> str:
    """What it printed until it ended with this status."""
    said, _ = process.communicate(timeout=120)
    assert process.returncode == status, said
    return said


def events(folder: Path) -> list[tuple[str, str]]:
    """What fixtures told, and the process in which they did."""
    found = (line.rpartition(" ") for line in (folder / "events").read_text().splitlines())
    return [(text, process) for text, _, process in found]


def test_what_fails_is_told_in_full_and_what_ends_is_replaced(start: Start, tmp_path: Path) -> None:
    said = ended(start(MIXED), 1)
    assert "3 failed, 5 passed, 1 skipped, 1 warning, 1 error" in said
    assert "said before it failed" in said
    assert "assert (1 + 1) == 3" in said
    assert "take care" in said
    assert "RuntimeError: the end is broken" in said
    assert "ended (signal SIGKILL) while it ran test_b.py::test_dies" in said
    assert "ended (exit status 3) while it ran test_b.py::test_leaves" in said
    told = events(tmp_path)
    # Two processes, one instead of the first that ended; nothing is left of test_b.py for another one.
    began, over = ([process for text, process in told if text == name] for name in ("session", "session ended"))
    assert len(began) == len(set(began)) in (3, 4)
    assert len(over) == len(began) - 2
    assert {text for text, _ in told} >= {"test_a ended", "test_c ended"}
    for process in over:
        assert [text for text, one in told if one == process][-1] == "session ended"


def test_files_end_before_the_session_does(start: Start, tmp_path: Path) -> None:
    files = {f"test_{letter}.py": "def test_one(): pass\ndef test_two(): pass\n" for letter in "abcd"}
    assert "8 passed" in ended(start(files), 0)
    told = [text for text, _ in events(tmp_path)]
    assert sorted(text for text in told if text.startswith("test_")) == [f"test_{letter} ended" for letter in "abcd"]
    assert told.count("session") == told.count("session ended") <= 2


def test_a_broken_end_of_a_session_is_told(start: Start) -> None:
    broken = FIXTURES.replace('tell("session ended")', 'raise RuntimeError("no end")')
    said = ended(start({"conftest.py": broken, "test_a.py": "def test_one(): pass\n"}), 1)
    assert "RuntimeError: no end" in said
    assert "1 passed, 1 error" in said


def test_enough_failures_end_the_run(start: Start, tmp_path: Path) -> None:
    waits = "import time\ndef test_waits():\n    print('waits')\n    time.sleep(3600)\n"
    fails = "def test_fails():\n    raise ValueError\ndef test_never_runs():\n    raise OSError\n"
    said = ended(start({"test_a.py": fails, "test_b.py": waits}, "--maxfail", "1"), 1)
    assert "stopping after 1 failures" in said
    assert "1 failed" in said
    told = [text for text, _ in events(tmp_path)]
    assert told.count("session") == told.count("session ended")


def test_a_module_that_cannot_be_imported_is_told(start: Start) -> None:
    said = ended(start({"test_a.py": "import no_such_module\n", "test_b.py": "def test_one(): pass\n"}), 2)
    assert "No module named 'no_such_module'" in said
    assert "passed" not in said


def test_threads_of_modules_are_refused(start: Start) -> None:
    text = "import threading, time\nthreading.Thread(target=time.sleep, args=(3,), name='ours', daemon=True).start()\ndef test_one(): pass\n"
    assert "test modules have started threads, which no fork has: ours" in ended(start({"test_a.py": text}), 4)


INTERRUPTED = """
import os, signal

def test_before(): pass

def test_interrupts(): raise KeyboardInterrupt

def test_behind(): assert "this is told" == ""

def test_is_interrupted(): os.kill(os.getpid(), signal.SIGINT)

def test_last(): pass
"""


def test_an_interrupt_of_one_process_hides_nothing(start: Start, tmp_path: Path) -> None:
    said = ended(start({"test_a.py": INTERRUPTED, "test_b.py": "def test_one(): pass\n"}), 1)
    assert "3 failed, 3 passed" in said
    assert "ended (exit status 0) while it ran test_a.py::test_interrupts" in said
    assert "ended (exit status 0) while it ran test_a.py::test_is_interrupted" in said
    assert "this is told" in said
    told = [text for text, _ in events(tmp_path)]
    assert told.count("session") == told.count("session ended")


WAITS = """
import pathlib, time

def test_waits(tmp_path):
    pathlib.Path(r"{fifo}").write_text("waiting")
    time.sleep(3600)
"""


def test_an_interrupt_ends_all_processes_with_their_fixtures(start: Start, tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    process = start({"test_a.py": WAITS.format(fifo=fifo)})
    assert fifo.read_text() == "waiting"
    process.send_signal(signal.SIGINT)
    assert "KeyboardInterrupt" in ended(process, 2)
    assert [text for text, _ in events(tmp_path)] == ["session", "test_a ended", "session ended"]


def test_processes_end_with_their_parent(start: Start, tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    process = start({"test_a.py": WAITS.format(fifo=fifo)})
    assert fifo.read_text() == "waiting"
    process.kill()
    # The end of the output is the end of the last process that holds it.
    ended(process, -signal.SIGKILL)
    assert [text for text, _ in events(tmp_path)][-1] == "session ended"


def test_a_limit_of_time_fails_the_test(start: Start) -> None:
    slow = "import pytest, time\n@pytest.mark.timeout(0.1)\ndef test_slow():\n    time.sleep(3600)\ndef test_behind(): pass\n"
    said = ended(start({"test_a.py": slow}), 1)
    assert "Timeout (>0.1s)" in said
    assert "1 failed, 1 passed" in said


HALF = """
import os, signal

def test_half(request):
    channel = request.config.pluginmanager.get_plugin("forked_runner")._channel
    waits = os.open(r"{fifo}", os.O_RDONLY)
    if os.fork() == 0:
        for name in os.listdir("/proc/self/fd"):
            if int(name) not in (channel.fileno(), waits) and os.path.exists(f"/proc/self/fd/{{name}}"):
                os.close(int(name))
        os.read(waits, 1)       # until the run is over
        os._exit(0)
    channel.sendall(bytes(7) + b"\\x64" + b"half of a hundred bytes")
    os.kill(os.getpid(), signal.SIGKILL)

def test_behind(): pass
"""


def test_half_a_message_of_a_process_that_was_killed_is_not_waited_for(start: Start, tmp_path: Path) -> None:
    """A fork that the test has left behind keeps the channel open."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    held = os.open(fifo, os.O_RDWR)
    try:
        said = ended(start({"test_a.py": HALF.format(fifo=fifo)}), 1)
    finally:
        os.close(held)
    assert "ended (signal SIGKILL) while it ran test_a.py::test_half" in said
    assert "1 failed, 1 passed" in said


def test_a_test_that_its_limit_does_not_end_is_killed(start: Start) -> None:
    # The signal is blocked before the time of the test begins, however short that is.
    deaf = """
import pytest, signal, time

def test_in_front():
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})

@pytest.mark.timeout(0.1)
def test_deaf():
    time.sleep(3600)

def test_behind(): pass
"""
    impatient = FIXTURES + "\nfrom tests import forked_run\nforked_run.GRACE = 0.1\n"
    said = ended(start({"conftest.py": impatient, "test_a.py": deaf}), 1)
    assert "ended (signal SIGKILL) while it ran test_a.py::test_deaf" in said
    assert "1 failed, 2 passed" in said


def test_the_end_of_a_session_has_a_limit(start: Start) -> None:
    hangs = FIXTURES.replace('tell("session ended")', "import time; time.sleep(3600)")
    hangs += "\nfrom tests import forked_run\nforked_run.END_SECONDS = 1\n"
    said = ended(start({"conftest.py": hangs, "test_a.py": "def test_one(): pass\n"}), 1)
    assert "ended (signal SIGALRM) behind test_a.py::test_one" in said


def test_limits_are_those_of_pytest_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    def limit(marker: Any, option: Any, file: str | None) -> float | None:
        config = SimpleNamespace(
            pluginmanager=SimpleNamespace(hasplugin=lambda name: name == "timeout"), getini=lambda _: file, getoption=lambda _, default: option
        )
        item: Any = SimpleNamespace(config=config, get_closest_marker=lambda _: marker)
        return forked_run.limit_of(item)

    monkeypatch.delenv("PYTEST_TIMEOUT", raising=False)
    assert limit(None, None, None) is None
    assert limit(None, None, "300") == 300
    assert limit(None, 1800, "300") == 1800
    assert limit(None, 0, "300") is None
    assert limit(pytest.mark.timeout(20).mark, 1800, "300") == 20
    assert limit(pytest.mark.timeout(timeout=20).mark, None, None) == 20
    assert limit(pytest.mark.timeout(method="thread").mark, None, "300") == 300
    monkeypatch.setenv("PYTEST_TIMEOUT", "3600")
    assert limit(None, None, "300") == 3600
    assert limit(None, 20, "300") == 20


@pytest.mark.parametrize("options", [{"--processes": 0}, {"usepdb": True}, {"numprocesses": 2}], ids=str)
def test_what_does_not_go_together_is_refused(options: dict[str, Any]) -> None:
    given = {"--processes": 2, "usepdb": False, "numprocesses": None, **options}
    config: Any = SimpleNamespace(getoption=given.__getitem__, option=SimpleNamespace(numprocesses=given["numprocesses"]))
    with pytest.raises(pytest.UsageError, match="--processes"):
        forked_run.pytest_configure(config)
