"""What only tests use is no part of the product: every function, method and class is named by product code.

What tests and benchmarks need of the engine in C is a package of its own (engine/headgate_drivers), which is not looked at.

Names are compared, not objects: a method is in use when something of its name is. In Python files a name counts where
the parsed code has it, and in strings (tables name functions); in Cython files where it stands outside of comments,
docstrings and imports. The lines of a definition itself do not count.

Names of methods are often common ones (`find`, `fields`). In the engine, whose objects are used by name or held in typed attributes
(HELD), only files that name the class of a method count, one that it derives from or one that derives from it, and files that name
a class of such files.
"""

from __future__ import annotations

import ast
import functools
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.house.parsing_rig import many_trees

__all__ = ["many_trees"]

ROOT = Path(__file__).resolve().parents[2]
PRODUCT = (ROOT / "pysrc", ROOT / "engine" / "headgate_engine")
WORD = re.compile(r"[A-Za-z_]\w*")
# A longer text is prose.
LONGEST_TEXT = 200
CYTHON_DEFINITION = re.compile(r"(\s*)(?:async def|def|class|cdef class|cdef|cpdef)\b([^=]*?)\b([A-Za-z_]\w*)\s*(?:\(|:\s*$)")
NO_DEFINITION = re.compile(r"\s*cdef (extern|enum|struct|union)\b")
IMPORT = re.compile(r"\s*(from\s+\S+\s+c?import|c?import)\b")
DOCSTRING = re.compile(r'(?s)("""|\'\'\').*?\1')
COMMENT = re.compile(r"#[^\n]*")

CALLED_BY_LIBRARIES = {
    # click: help and commands of gwctl.
    "pysrc/headgate/cli/gwctl.py": {"list_commands", "resolve_command"},
    "pysrc/headgate/cli/proxy_trace.py": {"collect_usage_pieces"},
    # Textual: events and keys by name.
    "pysrc/headgate/cli/profile.py": {"flame_page"},
    "pysrc/headgate/cli/top_ui.py": {
        "action_all", "action_filter", "action_pause", "action_sort", "action_view", "on_input_changed", "on_input_submitted", "on_mount",
        "on_data_table_row_highlighted", "on_resize",
    },
    "pysrc/headgate/cli/trace_ui.py": {
        "on_mount", "on_unmount", "on_data_table_row_highlighted", "action_mode", "action_form", "action_copy",
    },
    # PyYAML's dumper.
    "pysrc/headgate/document/write.py": {"ignore_aliases", "increase_indent"},
    # Rules of the grammar of CEL; expr/compile puts the underscore in front.
    "pysrc/headgate/expr/compile.py": {
        "_expr", "_conditionalor", "_conditionaland", "_relation", "_addition", "_multiplication", "_unary", "_dot_ident",
        "_paren_expr", "_list_lit", "_map_lit",
    },
    # asyncio.Transport and asyncio.Protocol.
    "engine/headgate_engine/link/secure.pyx": {
        "is_reading", "get_write_buffer_limits", "writelines",
    },
}  # fmt: skip
# Interfaces for what is not of this repository.
INTERFACES = {
    # A protocol with backends that is written in Python; engine/README.md.
    "engine/headgate_engine/link/python_upstream.pyx": {"go_away"},
}
ALLOWED = (CALLED_BY_LIBRARIES, INTERFACES)


ENGINE = ROOT / "engine" / "headgate_engine"
HELD = tuple(sorted({path.parent for path in ENGINE.glob("*/*.pyx")}))
# Methods of connections and transports: the loop, its TLS and our own transports call them by their names in asyncio.
LOOP_METHODS = {
    "get_protocol", "pause_reading", "resume_reading", "is_reading", "set_write_buffer_limits", "get_write_buffer_limits", "writelines",
    "pause_writing",
}  # fmt: skip
# Called on objects without a declared type: the file that calls them. It is looked at.
UNTYPED_CALLS = {
    **dict.fromkeys(("cel_size", "cel_contains", "cel_json"), "engine/headgate_engine/expr/functions.pyx"),
    "cel_index": "engine/headgate_engine/expr/values.pyx",
    "cel_join": "engine/headgate_engine/expr/texts.pyx",
    # Connections of all protocols.
    **dict.fromkeys(("bind_key", "close_if_idle", "abort_now", "is_idle"), "engine/headgate_engine/link/worker.pyx"),
    "on_timer": "engine/headgate_engine/link/wire.pyx",
    "negotiated": "engine/headgate_engine/link/handshake.pyx",
    "shed_idle": "engine/headgate_engine/link/budget.pyx",
    # The request of a context, and what a backend keeps of a request.
    **dict.fromkeys(("wait_for", "task_failed"), "engine/headgate_engine/plan/step.pyx"),
    **dict.fromkeys(("client_gone", "client_writable"), "engine/headgate_engine/link/backend.pyx"),
    "route_labels": "engine/headgate_engine/mcp/telemetry.pyx",
    "kept_out": "engine/headgate_engine/link/phases.pyx",
    "waited_s": "pysrc/headgate/backend/mcp/federation/answering.py",
    "is_in": "pysrc/headgate/backend/llm/long_bodies.py",
    "own_request_id": "pysrc/headgate/backend/mcp/relay.py",
}  # fmt: skip
PYTHON_PROTOCOL = {("engine/headgate_engine/link/python_upstream.pyx", name) for name in ("allow", "go_away", "payload")}
METHOD = re.compile(r"\s+(async )?def\b")
CLASS = re.compile(r"\s*(cdef )?class\b")
DERIVED = re.compile(r"\s*(?:cdef )?class (\w+)\(([^)]*)\)\s*:")
ATTRIBUTE = re.compile(r"\.\s*([A-Za-z_]\w*)")
QUOTED = re.compile(r"\"([^\"\n]{1,200})\"|'([^'\n]{1,200})'")


class Definition(NamedTuple):
    """`first` and `last` are its lines."""

    name: str
    path: Path
    first: int
    last: int


Use = tuple[str, int]


@functools.cache
def python_names(text: str) -> tuple[list[tuple[str, int, int]], list[Use]]:
    """Return the definitions of a Python file with their lines, and the names that it uses."""
    defined: list[tuple[str, int, int]] = []
    used: list[Use] = []
    docstrings = set()
    # A docstring is seen later than what it belongs to.
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.body:
            first = node.body[0]
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                docstrings.add(first.value)
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                defined.append((node.name, node.lineno, node.end_lineno or node.lineno))
            case ast.Name():
                used.append((node.id, node.lineno))
            case ast.Attribute():
                used.append((node.attr, node.lineno))
            case ast.keyword(arg=str(name)):
                used.append((name, node.value.lineno))
            case ast.Constant(value=str(value)) if node not in docstrings and len(value) < LONGEST_TEXT:
                used += [(word, node.lineno) for word in WORD.findall(value)]
    return defined, used


@functools.cache
def cython_names(text: str) -> tuple[list[tuple[str, int, int]], list[Use]]:
    """Return the same of a Cython file."""
    lines = plain(text).split("\n")
    defined: list[tuple[str, int, int]] = []
    used: list[Use] = []
    importing = False
    for number, line in enumerate(lines, 1):
        if importing or IMPORT.match(line):
            importing = ")" not in line and (importing or "(" in line)
            continue
        found = None if NO_DEFINITION.match(line) else CYTHON_DEFINITION.match(line)
        if found is not None:
            defined.append((found[3], number, last_line(lines, number, len(found[1]))))
            line = line[: found.start(3)] + line[found.end(3) :]
        used += [(word, number) for word in WORD.findall(line)]
    return defined, used


def last_line(lines: list[str], number: int, indent: int) -> int:
    """Return the last line of the block that line `number` begins."""
    last = number
    for below, text in enumerate(lines[number:], number + 1):
        line = text.strip()
        if line and not line.startswith(")") and len(text) - len(text.lstrip()) <= indent:
            break
        last = below if line else last
    return last


def unused(files: dict[Path, str]) -> Iterator[Definition]:
    """Yield the definitions that nothing names but themselves."""
    defined: list[Definition] = []
    used: dict[str, list[tuple[Path, int]]] = defaultdict(list)
    for path, text in files.items():
        names, uses = (python_names if path.suffix == ".py" else cython_names)(text)
        if path.suffix != ".pxd":
            defined += [Definition(name, path, *lines) for name, *lines in names]
        for name, line in uses:
            used[name].append((path, line))
    for one in defined:
        special = one.name.startswith("__") and one.name.endswith("__")
        own = range(one.first, one.last + 1)
        if not special and all(path == one.path and line in own for path, line in used[one.name]):
            yield one


def unused_methods(files: dict[Path, str], folders: tuple[Path, ...]) -> Iterator[Definition]:
    """Yield the methods that Python can call, of Cython classes in `folders`, which no file near their class uses."""
    named: dict[str, set[Path]] = defaultdict(set)
    classes: dict[Path, set[str]] = defaultdict(set)
    uses: dict[str, list[tuple[Path, int]]] = defaultdict(list)
    bases: dict[str, set[str]] = defaultdict(set)
    for path, text in files.items():
        module, code = path.with_suffix(""), text if path.suffix == ".py" else plain(text)
        lines = code.split("\n")
        for word in set(WORD.findall(code)):
            named[word].add(module)
        for number, line in enumerate(lines, 1):
            if (derived := DERIVED.match(line)) is not None:
                bases[derived[1]].update(WORD.findall(derived[2]))
            quoted = " ".join(one or other for one, other in QUOTED.findall(line))
            for name in (*ATTRIBUTE.findall(line), *WORD.findall(quoted)):
                uses[name].append((path, number))
        classes[module] |= {name for name, first, _ in definitions(path, text) if CLASS.match(lines[first - 1])}
    for path, text in files.items():
        if path.suffix != ".pyx" or not any(folder in path.parents for folder in folders):
            continue
        lines, inside = text.split("\n"), definitions(path, text)
        owners = [one for one in inside if CLASS.match(lines[one[1] - 1])]
        for name, first, last in inside:
            around = [one for one in owners if one[1] < first and last <= one[2]]
            if name.startswith("__") or not around or not METHOD.match(lines[first - 1]):
                continue
            near = {file for kind in family(around[-1][0], bases) for file in named[kind]}
            near |= {other for one in tuple(near) for kind in classes[one] for other in named[kind]}
            if not any(use.with_suffix("") in near and not (use == path and first <= line <= last) for use, line in uses[name]):
                yield Definition(name, path, first, last)


def family(kind: str, bases: dict[str, set[str]]) -> set[str]:
    """Return a class of the product, what it derives from and what derives from it: an interface is called by its name."""
    below = {kind}
    while more := {one for one, above in bases.items() if above & below} - below:
        below |= more
    above = {kind}
    while more := {one for name in above for one in bases.get(name, ())} - above:
        above |= more
    return above | below


def definitions(path: Path, text: str) -> list[tuple[str, int, int]]:
    if path.suffix == ".pxd":
        return []
    return (python_names if path.suffix == ".py" else cython_names)(text)[0]


@functools.cache
def plain(text: str) -> str:
    """Return a Cython file without its docstrings and comments, line by line."""
    return COMMENT.sub("", DOCSTRING.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text))


@functools.cache
def sources() -> dict[Path, str]:
    paths = (path for folder in PRODUCT for path in sorted(folder.rglob("*")) if path.suffix in (".py", ".pyx", ".pxd"))
    return {path: path.read_text() for path in paths}


def test_everything_is_named_by_product_code() -> None:
    allowed = {(path, name) for table in ALLOWED for path, names in table.items() for name in names}
    found = {(str(one.path.relative_to(ROOT)), one.name): one for one in unused(sources())}
    assert [f"{path}:{found[path, name].first} {name}" for path, name in sorted(found.keys() - allowed)] == []
    assert sorted(allowed - found.keys()) == [], "in use, or gone: no exceptions are needed"


def test_methods_with_common_names_are_called_by_product_code() -> None:
    found = {(str(one.path.relative_to(ROOT)), one.name): one for one in unused_methods(sources(), HELD)}
    open_ones = {(path, name) for path, name in found if name not in LOOP_METHODS and name not in UNTYPED_CALLS}
    assert [f"{path}:{found[path, name].first} {name}" for path, name in sorted(open_ones - PYTHON_PROTOCOL)] == []
    names = {name for _, name in found}
    assert sorted(PYTHON_PROTOCOL - found.keys()) == [], "in use, or gone: no exceptions are needed"
    assert sorted((LOOP_METHODS | UNTYPED_CALLS.keys()) - names) == [], "in use, or gone: no exceptions are needed"


@pytest.mark.parametrize(("name", "path"), UNTYPED_CALLS.items())
def test_what_is_called_without_a_type_is_called(name: str, path: str) -> None:
    calls = [line for line in plain((ROOT / path).read_text()).split("\n") if not METHOD.match(line)]
    assert any(name in ATTRIBUTE.findall(line) for line in calls) or f'"{name}"' in "\n".join(calls)


def test_a_method_with_a_common_name_is_found() -> None:
    files = {
        Path("a/table.pyx"): "cdef class Table:\n    def find(self, key):\n        return self.find(0)\n\n    def size(self):\n        return 1\n",
        Path("a/holder.pxd"): "cdef class Holder:\n    cdef Table table\n",
        Path("a/holder.pyx"): "cdef class Holder:\n    def asked(self):\n        return self.table.size()\n",
        Path("b/user.py"): "from holder import Holder\n'one'.find('o')\nHolder().asked()\n",
        Path("b/far.py"): "'one'.find('o')\n",
    }
    assert [(one.name, one.first) for one in unused_methods(files, (Path("a"),))] == []
    files[Path("b/user.py")] = "from holder import Holder\nHolder()\n"
    assert [(one.name, one.first) for one in unused_methods(files, (Path("a"),))] == [("find", 2), ("asked", 2)]


def test_a_method_is_called_by_the_name_of_its_interface() -> None:
    files = {
        Path("a/face.pyx"): "cdef class Face:\n    def find(self):\n        return 1\n",
        Path("a/own.pyx"): "cdef class Own(Face):\n    def find(self):\n        return 2\n\n    def size(self):\n        return 3\n",
        Path("b/user.py"): "from face import Face\nFace().find()\n",
        Path("b/far.py"): "'one'.size()\n",
    }
    assert [(one.name, str(one.path)) for one in unused_methods(files, (Path("a"),))] == [("size", "a/own.pyx")]


def test_what_nothing_names_is_found() -> None:
    files = {
        Path("a.py"): 'def called(): """lost() and gone()."""\ndef lost():\n    lost()\nclass Kind:\n    def gone(self): ...\nTABLE = ("called",)\n',
        Path("b.py"): "from a import Kind, lost\nKind\n",
        Path("c.pyx"): "cdef int inner(int a):  # lone() is not here\n    return a\n\ndef lone(a):\n    return inner(a)\n\n"
        "cdef class Thing:\n    cpdef int size(self):\n        return Thing.__name__\n",
        Path("c.pxd"): "cdef class Thing:\n    cpdef int size(self)\n",
        Path("d.pyx"): "from c cimport (\n    Thing, lone)\n\ncdef Thing made\n",
    }
    assert [(one.name, str(one.path), one.first, one.last) for one in unused(files)] == [
        ("lost", "a.py", 2, 3), ("gone", "a.py", 5, 5), ("lone", "c.pyx", 4, 5), ("size", "c.pyx", 8, 9),
    ]  # fmt: skip
