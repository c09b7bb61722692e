"""Calls everything public in compiled modules with odd arguments; each walk has a process of its own, whose death is a result.

Usage: python entry_walk.py, with lines `MODULE JOURNAL [SKIPPED...]` on standard input. A process is forked for each line, and a line
is written when it has ended: its exit status, or the negative number of the signal that ended it. All modules of the engine are
imported before the first fork, which is most of the work otherwise.

Arguments: for each parameter a value of the type that the source names (objects both made as they should be and made with
`__new__` alone), and in its place None and values of other types; methods are also called on their class, with an odd self. What
is raised does not matter. The name of each call stands in the file JOURNAL, in front of a zero byte, while it is made: that of the one
that ended the process stays. Calls named as SKIPPED are not made.
"""

from __future__ import annotations

import asyncio
import builtins
import gc
import importlib
import inspect
import mmap
import os
import re
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

ENGINE = Path(__file__).resolve().parents[2] / "engine" / "headgate_engine"
_CLASS = re.compile(r"^(?:cdef )?class (\w+)", re.MULTILINE)
# A class, a function or a method with its parameters; defaults have no brackets but round ones, one deep.
_HEAD = re.compile(r"^(?:cdef )?class (\w+)|^( *)(?:async )?(?:cp)?def (?:[\w.\[\]]+ )*?(\w+)\(((?:[^()]|\([^()]*\))*)\)", re.MULTILINE)
# Numbers that are no process, no open descriptor and no size to speak of.
NUMBER = 777
ODD: tuple[object, ...] = (None, NUMBER, -1, "a", b"a", object(), (), [], {}, (None, None), ((b"a", b"b"),))
TYPED: dict[str, object] = {
    "str": "a", "bytes": b"a", "dict": {}, "list": [], "tuple": (), "set": set(), "frozenset": frozenset(), "bint": True,
    "object": object(), "double": 1.5, "float": 1.5, "bytearray": bytearray(b"a"), "callable": print,
}  # fmt: skip
# Methods every object has that say nothing of the class, and those that end or replace the process's own things.
PASSED_OVER = {"__class__", "__new__", "__init_subclass__", "__subclasshook__", "__getattribute__", "__setattr__", "__delattr__",
               "__dir__", "__pyx_vtable__", "__doc__", "__module__", "__test__"}  # fmt: skip
# Seconds for one module: what waits for something is a fault as well.
MAX_SECONDS = 120


def module_names() -> list[str]:
    """Return the dotted names of all compiled modules."""
    return [".".join(("headgate_engine", *path.relative_to(ENGINE).with_suffix("").parts)) for path in sorted(ENGINE.rglob("*.pyx"))]


@cache
def class_places() -> dict[str, str]:
    """Return the module of each class of the engine; of a name that two modules use, the first."""
    found: dict[str, str] = {}
    for path in sorted(ENGINE.rglob("*.pyx")):
        name = ".".join(("headgate_engine", *path.relative_to(ENGINE).with_suffix("").parts))
        for match in _CLASS.finditer(path.read_text()):
            found.setdefault(match[1], name)
    return found


class Walk:
    """Visits one module."""

    def __init__(self, journal: Path, skipped: set[str]) -> None:
        # Memory that outlives the process: two system calls for each of a million calls took half of the time.
        with journal.open("w+b") as file:
            file.truncate(mmap.PAGESIZE)
            self.journal = mmap.mmap(file.fileno(), mmap.PAGESIZE)
        self.skipped = skipped
        self.places = class_places()
        self.made: dict[str, list[object]] = {}

    # -- arguments -------------------------------------------------------------------------------------------------
    def instances(self, name: str) -> list[object]:
        """Objects of an engine class: as its constructor makes them, and bare."""
        if name not in self.made:
            self.made[name] = []
            with suppress(Exception):
                self.made[name] = self.make(getattr(importlib.import_module(self.places[name]), name))
        return self.made[name]

    def make(self, cls: Any) -> list[object]:
        found: list[object] = []
        if cls.__name__ == "RequestContext":
            found.append(importlib.import_module("headgate_engine.context.request").make_context())
        for arguments in self.cases(parameters(cls, "__init__")):
            with suppress(Exception):
                made = self.call(f"{cls.__name__}()", cls, arguments)
                if made is not None and len(found) < 3:
                    found.append(made)
        with suppress(Exception):
            found.append(cls.__new__(cls))
        return found

    def values(self, kind: str) -> list[object]:
        """Values of a parameter's type."""
        if kind in self.places:
            return self.instances(kind)
        return [TYPED[kind]] if kind in TYPED else [NUMBER]

    def cases(self, kinds: list[str]) -> Iterator[tuple[object, ...]]:
        """Tuples of arguments: all of their types, and each parameter in turn something else."""
        typed = [self.values(kind) or [None] for kind in kinds]
        usual = [values[0] for values in typed]
        bare = [values[-1] for values in typed]
        yield tuple(usual)
        yield tuple(bare)
        for at, kind in enumerate(kinds):
            for odd in (*typed[at], *ODD) if kind == "" or kind in TYPED else (*typed[at], None, "a", object()):
                for base in (usual, bare):
                    yield (*base[:at], odd, *base[at + 1 :])
        for odd in ODD:
            yield (odd,) * len(kinds)

    # -- calls -----------------------------------------------------------------------------------------------------
    def call(self, name: str, function: Callable[..., Any], arguments: tuple[object, ...]) -> object:
        """Call; exceptions are swallowed, and what can be run or read on is."""
        if name in self.skipped:
            return None
        data = name.encode() + b"\0"
        self.journal[: len(data)] = data
        try:
            found = function(*arguments)
            if inspect.iscoroutine(found):
                drive(found)
            elif inspect.isgenerator(found):
                for _ in range(3):
                    next(found)
        except Exception:
            return None
        return found

    def each_case(self, name: str, function: Callable[..., Any], kinds: list[str]) -> None:
        for arguments in self.cases(kinds):
            self.call(name, function, arguments)

    def module(self, module: ModuleType) -> None:
        for name, member in sorted(vars(module).items()):
            if name.startswith("__") or getattr(member, "__module__", None) != module.__name__:
                continue
            if isinstance(member, type):
                self.whole_class(member)
            elif callable(member):
                self.each_case(name, member, parameters(module, name) or counted(member))

    def whole_class(self, cls: type) -> None:
        for round_ in range(2):
            for one in self.make(cls):
                self.members(cls, one)
                if round_ == 1 and not issubclass(cls, BaseException):
                    self.emptied(cls, one)
                    self.members(cls, one)

    def members(self, cls: type, one: object) -> None:
        for holder in cls.__mro__:
            for name, member in sorted(vars(holder).items()):
                if holder is object or name in PASSED_OVER or (issubclass(holder, BaseException) and holder.__module__ == "builtins"):
                    continue
                full = f"{cls.__name__}.{name}"
                if not callable(member) and not hasattr(member, "__func__"):
                    self.call(full, getattr, (one, name))
                    continue
                bound = None
                with suppress(Exception):
                    bound = getattr(one, name)
                if bound is not None:
                    kinds = parameters(holder, name) or counted(bound)
                    self.each_case(full, bound, kinds)
                if type(member).__name__ == "method_descriptor":
                    for odd in ODD:
                        self.call(f"{full} of the class", member, (odd, *(self.values(kind)[0] for kind in parameters(holder, name))))

    def emptied(self, cls: type, one: object) -> None:
        """Set each attribute that takes it to None."""
        for name in dir(cls):
            if not name.startswith("__"):
                self.call(f"{cls.__name__}.{name}=", setattr, (one, name, None))


@cache
def declared(module: str) -> dict[tuple[str, str], str]:
    """Return the parameters of a module's functions by class (or "") and name, as the source has them."""
    path = ENGINE.parent / Path(*module.split(".")).with_suffix(".pyx")
    found: dict[tuple[str, str], str] = {}
    cls = ""
    for match in _HEAD.finditer(path.read_text() if path.exists() else ""):
        if match[1]:
            cls = match[1]
            continue
        cls = cls if match[2] else ""
        name = "__init__" if match[3] == "__cinit__" else match[3]
        found.setdefault((cls, name), match[4])
    return found


def parameters(holder: Any, name: str) -> list[str]:
    """Return the types of the parameters of a function of a module or class; "" for any object."""
    if isinstance(holder, ModuleType):
        text = declared(holder.__name__).get(("", name), "")
    else:
        text = next((found for cls in holder.__mro__ if (found := declared(cls.__module__).get((cls.__name__, name)))), "")
    kinds = []
    for part in re.split(r",\s*(?![^()\[\]]*[)\]])", text):
        words = part.partition("=")[0].replace(" not None", "").replace("*", " ").split()
        if not words or words[0] in ("self", "cls", "/"):
            continue
        kinds.append(words[0] if len(words) > 1 else "")
    return kinds


def counted(function: Callable[..., Any]) -> list[str]:
    """Return a parameter of any type for each one that is known of; slots of types take at most two."""
    try:
        return [""] * len(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return [""]


def drive(coroutine: Any) -> None:
    """Run a coroutine to where it waits."""
    with suppress(StopIteration):
        coroutine.send(None)
    with suppress(RuntimeError):
        coroutine.close()


def told(journal: Path) -> str:
    """Return the call that a walk made last; "" where it made none."""
    return journal.read_bytes().partition(b"\0")[0].decode(errors="replace") if journal.exists() else ""


def standard() -> list[tuple[int, int]]:
    """Return what the standard descriptors are open on."""
    return [(found.st_dev, found.st_ino) for found in map(os.fstat, range(3))]


def walk(name: str, journal: str, *skipped: str) -> None:
    """Walk one module, and end the process."""
    warnings.simplefilter("ignore")
    builtins.print = lambda *_, **__: None  # type: ignore[assignment]
    signal.alarm(MAX_SECONDS)
    sys.unraisablehook = lambda _: None
    module = importlib.import_module(name)

    async def inside() -> None:
        Walk(Path(journal), set(skipped)).module(module)

    before = standard()
    asyncio.run(inside())
    gc.collect()
    # An object that nobody has set up owns no descriptor: 0 is the one of C's zeros.
    assert standard() == before, "the walk has closed a standard descriptor"
    # Objects that a walk leaves behind may end while the interpreter does; that is not what this is about.
    os._exit(0)


def main() -> None:
    # What every walk needs is read once: all modules, and their sources.
    for name in module_names():
        importlib.import_module(name)
        declared(name)
    class_places()
    gc.collect()
    gc.freeze()
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            try:
                walk(*line.split())
            finally:
                traceback.print_exc()
                os._exit(1)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)


if __name__ == "__main__":
    main()
