"""What only tests use is no part of the product: every function, method and class is named by product code.

What tests and benchmarks need of the engine in C is a package of its own (engine/headgate_drivers), which is not looked at.

Names are compared, not objects: a method is in use when something of its name is. In Python files a name counts where
the parsed code has it, and in strings (tables name functions); in Cython files where it stands outside of comments,
docstrings and imports. The lines of a definition itself do not count.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

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


class Definition(NamedTuple):
    """`first` and `last` are its lines."""

    name: str
    path: Path
    first: int
    last: int


Use = tuple[str, int]


def python_names(text: str) -> tuple[list[tuple[str, int, int]], list[Use]]:
    """Return the definitions of a Python file with their lines, and the names that it uses."""
    defined: list[tuple[str, int, int]] = []
    used: list[Use] = []
    tree = ast.parse(text)
    docstrings = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.body:
            first = node.body[0]
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                docstrings.add(id(first.value))
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                defined.append((node.name, node.lineno, node.end_lineno or node.lineno))
            case ast.Name():
                used.append((node.id, node.lineno))
            case ast.Attribute():
                used.append((node.attr, node.lineno))
            case ast.keyword(arg=str(name)):
                used.append((name, node.value.lineno))
            case ast.Constant(value=str(value)) if id(node) not in docstrings and len(value) < LONGEST_TEXT:
                used += [(word, node.lineno) for word in WORD.findall(value)]
    return defined, used


def cython_names(text: str) -> tuple[list[tuple[str, int, int]], list[Use]]:
    """Return the same of a Cython file."""
    blank = DOCSTRING.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)
    lines = COMMENT.sub("", blank).split("\n")
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


def sources() -> dict[Path, str]:
    paths = (path for folder in PRODUCT for path in sorted(folder.rglob("*")) if path.suffix in (".py", ".pyx", ".pxd"))
    return {path: path.read_text() for path in paths}


def test_everything_is_named_by_product_code() -> None:
    allowed = {(path, name) for table in ALLOWED for path, names in table.items() for name in names}
    found = {(str(one.path.relative_to(ROOT)), one.name): one for one in unused(sources())}
    assert [f"{path}:{found[path, name].first} {name}" for path, name in sorted(found.keys() - allowed)] == []
    assert sorted(allowed - found.keys()) == [], "in use, or gone: no exceptions are needed"


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
