"""Programs that are forked are what executed ones would have been."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from tests import forked_rig

PROGRAM = """
import json, os, sys
print(json.dumps({"name": __name__, "arguments": sys.argv[1:], "path": sys.path[0], "folder": os.getcwd(), "tests": "pytest" in sys.modules}))
sys.stdout.flush()
print("told", file=sys.stderr)
sys.exit(int(sys.argv[1]))
"""


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module in the folder in which tests run now."""
    (tmp_path / "program_of_a_test.py").write_text(PROGRAM)
    monkeypatch.chdir(tmp_path)
    return "program_of_a_test"


def test_a_fork_is_what_the_program_would_be(program: str, tmp_path: Path) -> None:
    words = ["3", "a b", "\N{EURO SIGN}"]
    with (tmp_path / "errors").open("wb") as errors:
        forked = forked_rig.start(program, words, subprocess.PIPE, errors)
    assert isinstance(forked, forked_rig.Forked)
    assert forked.stdout is not None
    with forked.stdout:
        found = json.loads(forked.stdout.read())
    assert forked.wait(60) == 3 == forked.poll() == forked.returncode
    executed = subprocess.run([sys.executable, "-m", program, *words], capture_output=True, text=True, check=False)
    assert found == json.loads(executed.stdout)
    assert (tmp_path / "errors").read_text() == executed.stderr == "told\n"


def test_what_is_run_to_its_end_is_what_an_executed_program_says(program: str) -> None:
    found = forked_rig.run(program, "4", "x")
    executed = subprocess.run([sys.executable, "-m", program, "4", "x"], capture_output=True, text=True, check=False)
    assert (found.returncode, found.stdout, found.stderr) == (4, executed.stdout, "told\n")


def test_signals_end_it_as_they_end_others() -> None:
    with open(os.devnull, "wb") as nothing:
        forked = forked_rig.start("headgate.sample.http_service", [], subprocess.PIPE, nothing)
    assert forked.stdout is not None
    with forked.stdout:
        assert forked.stdout.readline()
        assert forked.poll() is None
        with pytest.raises(subprocess.TimeoutExpired):
            forked.wait(0)
        forked.send_signal(signal.SIGKILL)
        assert forked.wait(60) == -signal.SIGKILL
        forked.send_signal(signal.SIGKILL)      # to nobody


def test_another_environment_is_executed(program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONOFATEST", "1")
    found = forked_rig.start(program, ["0"], subprocess.PIPE)
    assert isinstance(found, subprocess.Popen)
    assert found.communicate()[0]
    assert found.returncode == 0


def test_what_only_the_package_reads_is_given_to_forks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "program_of_a_test.py").write_text("import os; print(*(os.environ.get(f'HEADGATE_{name}') for name in 'ABC'), flush=True)")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(forked_rig, "FIRST", {**forked_rig.FIRST, "HEADGATE_A": "old", "HEADGATE_C": "gone"})
    monkeypatch.setenv("HEADGATE_A", "new")
    for value, said in (("one", "new one None\n"), ("two", "new two None\n")):
        given = {**os.environ, "HEADGATE_B": value, "NAMED": "x"}
        found = forked_rig.start("program_of_a_test", [], subprocess.PIPE, environment=given, imports=(), read_late=["NAMED"])
        assert isinstance(found, forked_rig.Forked)
        assert found.stdout is not None
        with found.stdout:
            assert found.stdout.read() == said
        assert found.wait(60) == 0


def test_what_test_modules_have_set_is_in_the_environment_of_forks(program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forked_rig, "FIRST", forked_rig.FIRST)
    monkeypatch.setenv("OF_A_TEST_MODULE", "x")
    assert isinstance(forked_rig.start(program, ["0"], subprocess.DEVNULL), subprocess.Popen)
    forked_rig.collected()
    found = forked_rig.start(program, ["0"], subprocess.PIPE, imports=("json.tool",))
    assert isinstance(found, forked_rig.Forked)
    assert found.stdout is not None
    with found.stdout:
        assert found.stdout.read()
    assert found.wait(60) == 0


def test_a_fork_that_is_left_behind_keeps_no_starter() -> None:
    starter = forked_rig.Starter(())
    waits, go = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(go)
        os.read(waits, 1)
        os._exit(0)
    os.close(waits)
    closing = threading.Thread(target=starter.close, daemon=True)
    try:
        closing.start()
        closing.join(60)
        assert not closing.is_alive()
    finally:
        os.close(go)
        os.waitpid(child, 0)
    assert starter._process.returncode == 0


def test_a_fork_does_not_end_the_starter_of_its_parent(program: str, tmp_path: Path) -> None:
    starter = forked_rig.Starter(())
    try:
        child = os.fork()
        if child == 0:
            starter.close()
            os._exit(0)
        os.waitpid(child, 0)
        with open(os.devnull, "wb") as nothing:
            assert starter.status(starter.fork([program, "3"], tmp_path, nothing.fileno(), nothing.fileno())) == 3
    finally:
        starter.close()
