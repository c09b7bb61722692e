"""Entry points of the engine's LLM modules refuse what they cannot take; none of it ends the process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import headgate_engine

ENGINE = Path(headgate_engine.__file__).parent
MODULES = sorted(
    ".".join(path.relative_to(ENGINE.parent).with_suffix("").parts)
    for folder in ("guard", "llm", "sse", "peek", "websocket")
    for path in (ENGINE / folder).rglob("*.pyx")
)
# Calls whatever a module shows with each of these values in each place, one to three places at a time, on objects that
# were made properly and on those that __init__ has not seen.
WALK = """
import faulthandler, gc, importlib, inspect, itertools, os, sys, traceback
VALUES = (None, 1, -1, "text", b"bytes", (), [None], {})

def attempts(call):
    for count in range(4):
        values = VALUES if count < 3 else VALUES[:5]
        for given in itertools.product(values, repeat=count):
            try:
                call(*given)
            except Exception:
                pass

def walk(holder):
    for name in dir(holder):
        if name.startswith("_") and name not in ("__len__", "__call__", "__iter__", "__next__", "__str__", "__repr__"):
            continue
        try:
            found = getattr(holder, name)
        except Exception:
            continue
        if callable(found) and not inspect.isclass(found):
            print(holder, name, file=sys.stderr, flush=True)
            attempts(found)

def walk_module(module):
    for name, found in sorted(vars(module).items()):
        if name.startswith("_") or getattr(found, "__module__", module.__name__) != module.__name__:
            continue
        if inspect.isclass(found):
            print(name, file=sys.stderr, flush=True)
            try:
                walk(found.__new__(found))
            except TypeError:
                pass
            made = []
            attempts(lambda *given: made.append(found(*given)))
            for one in made[:8]:
                walk(one)
        elif callable(found):
            print(name, file=sys.stderr, flush=True)
            attempts(found)

folder, *names = sys.argv[1:]
modules = [importlib.import_module(name) for name in names]
gc.freeze()
for name, module in zip(names, modules):
    pid = os.fork()
    if pid == 0:
        try:
            os.dup2(os.open(os.path.join(folder, name), os.O_WRONLY | os.O_CREAT, 0o600), 2)
            faulthandler.enable()
            walk_module(module)
            os._exit(0)
        finally:
            traceback.print_exc()
            os._exit(1)
    print(name, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
"""


@pytest.fixture(scope="module")
def walked(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[int, str]]:
    """By module: the exit status of a fork that walked it, and what it was doing last."""
    folder = tmp_path_factory.mktemp("walks")
    words = [sys.executable, "-c", WALK, str(folder), *MODULES]
    done = subprocess.run(words, capture_output=True, text=True, timeout=600, check=True)
    lines = (line.split() for line in done.stdout.splitlines())
    return {name: (int(status), (folder / name).read_text()[-2000:]) for name, status in lines}


@pytest.mark.parametrize("module", MODULES)
def test_wrong_types_are_refused_and_end_no_process(module: str, walked: dict[str, tuple[int, str]]) -> None:
    status, told = walked[module]
    assert status == 0, told
