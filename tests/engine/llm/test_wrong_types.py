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
import faulthandler, importlib, inspect, itertools, sys
faulthandler.enable()
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

module = importlib.import_module(sys.argv[1])
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
print("walked")
"""


@pytest.mark.parametrize("module", MODULES)
def test_wrong_types_are_refused_and_end_no_process(module: str) -> None:
    done = subprocess.run([sys.executable, "-c", WALK, module], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "walked" in done.stdout
