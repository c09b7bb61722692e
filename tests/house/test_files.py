"""Sizes, names, mirrors and whole tables: what keeps the house easy to walk through."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from pathlib import Path

from tests.house.each_rig import each

ROOT = Path(__file__).resolve().parents[2]
MAX_LINES = 500
MAX_FUNCTION = 60
MAX_PARAMETERS = 6
NAMELESS = {"util", "utils", "common", "helper", "helpers", "misc", "base", "manager"}

# Files over the limit, with the reason why they stay whole.
LONG_FILES = {
    "engine/headgate_engine/llm/translate/readers.pyx": "two readers, and the checks of members that all of them share",
    "engine/headgate_engine/llm/translate/writers.pyx": "one small method for each thing that a reply says",
    "engine/headgate_engine/expr/functions.pyx": "one small function per name",
    "engine/headgate_engine/expr/nodes.pyx": "one small class per kind of node",
    "engine/headgate_engine/llm/native.pyx": "one reader of usage per format of a provider",
    "engine/headgate_engine/expr/views.pyx": "one small reader per variable",
    "engine/headgate_engine/route/table.pyx": "one structure with what matches in it, at once and in steps",
}

SOURCES = sorted(
    path
    for folder in ("engine", "pysrc", "tests", "bench", "ci", "fuzz")
    for suffix in ("*.py", "*.pyx", "*.pxd")
    for path in (ROOT / folder).rglob(suffix)
)
PYTHON = [path for path in SOURCES if path.suffix == ".py"]


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


@each(SOURCES, name_of)
def test_a_file_is_short_or_says_why_not(path: Path) -> None:
    lines = len(path.read_text().splitlines())
    assert lines <= MAX_LINES or name_of(path) in LONG_FILES, f"{lines} lines"


def test_the_list_of_long_files_is_current() -> None:
    for name in LONG_FILES:
        assert len((ROOT / name).read_text().splitlines()) > MAX_LINES, f"{name} is short now"


@each([p for p in PYTHON if "pysrc" in p.parts], name_of)
def test_functions_are_short_and_take_few_parameters(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        length = (node.end_lineno or node.lineno) - node.lineno + 1
        assert length <= MAX_FUNCTION, f"{name_of(path)}:{node.lineno} {node.name}: {length} lines"
        arguments = node.args
        count = len(arguments.posonlyargs) + len(arguments.args) + len(arguments.kwonlyargs)
        names = [argument.arg for argument in arguments.args[:1]]
        count -= 1 if names in (["self"], ["cls"]) else 0
        assert count <= MAX_PARAMETERS, f"{name_of(path)}:{node.lineno} {node.name}: {count} parameters"


@dataclass(frozen=True)
class CompiledFunction:
    """What is counted of a function of Cython or Python source: it is read as text, which both languages allow."""

    name: str
    lines: int
    parameters: int


_FUNCTION = re.compile(r"( *)(?:async )?(?:def|cpdef|cdef)\b(?! +(?:class|enum|extern|struct|union|packed)\b)")
_SELF = re.compile(r"(?:\w+ +)?(?:self|cls)\b")


def declared(lines: list[str], start: int) -> tuple[str, int]:
    """Return the whole head of a function on one line, and the line behind it."""
    head, at = lines[start], start + 1
    while at < len(lines) and head.count("(") > head.count(")"):
        head, at = f"{head} {lines[at].strip()}", at + 1
    return head, at


def parameter_count(head: str) -> int:
    """Return how many parameters a head has, without self and the marks `*` and `/`."""
    inside = head[head.index("(") + 1 : head.rindex(")")]
    while (shorter := re.sub(r"\([^()]*\)|\[[^][]*\]|\{[^{}]*\}", "", inside)) != inside:
        inside = shorter
    found = [part.strip() for part in inside.split(",") if part.strip() not in ("", "*", "/")]
    return len(found) - bool(found and _SELF.match(found[0]))


def compiled_functions(text: str) -> list[CompiledFunction]:
    """Return the functions of a module; those inside others count for both."""
    lines = text.split("\n")
    found = []
    for start, line in enumerate(lines):
        match = _FUNCTION.match(line)
        if match is None:
            continue
        head, at = declared(lines, start)
        if not re.search(r"\).*:\s*(?:#.*)?$", head):
            continue
        last = at
        while at < len(lines) and (not lines[at].strip() or len(lines[at]) - len(lines[at].lstrip()) > len(match[1])):
            at += 1
            last = at if lines[at - 1].strip() else last
        found.append(CompiledFunction(re.findall(r"(\w+) *\(", head)[0], last - start, parameter_count(head)))
    return found


# Functions over the limits in compiled modules, with the reason why they stay so.
LONG_FUNCTIONS = {
    "llm/router.pyx choose": "the decisions for one request, in their order",
    "peek/scan.pyx scan_text": "the one loop over a text's bytes, whose state is local",
}
WIDE_FUNCTIONS = {
    "context/request.pyx make_context": "a request for tests, by its parts",
    "guard/reading.pyx add_texts": "where a text stands and what it is, all of it plain C values",
    "guard/reading.pyx parts": "where a content stands and what it is, all of it plain C values",
    "guard/scan.pyx _numbers": "state of the scanner's loop",
    "http2/limits.pyx __init__": "limits of a connection, given by name",
    "link/endpoints.pyx __init__": "settings of one plan object, given by name",
    "link/pool.pyx __init__": "settings of one plan object, given by name",
    "llm/target.pyx __init__": "settings of one plan object, given by name",
    "llm/translate/counts.pyx __init__": "one number per kind of token",
    "route/table.pyx __init__": "settings of one plan object, given by name",
    "steps/aws_signature.pyx sign": "what the signature covers (AWS Signature Version 4)",
    "tls/context.pyx __init__": "settings of one context, given by name",
    "steps/transform.pyx __init__": "settings of one plan object, given by name",
}


def test_functions_of_compiled_modules_are_read() -> None:
    text = "cdef class A:\n    cdef int f(self, int a,\n               (int, int) b=(1, 2)) except -1:\n        x\n\n        y\n\nz\n"
    assert compiled_functions(text + "cdef int g(int a)\n") == [CompiledFunction("f", 5, 2)]


@each([p for p in SOURCES if name_of(p).startswith("engine/") and p.suffix != ".pxd"], name_of)
def test_functions_of_the_engine_are_short_and_take_few_parameters(path: Path) -> None:
    for function in compiled_functions(path.read_text()):
        name = f"{name_of(path).removeprefix('engine/').removeprefix('headgate_engine/')} {function.name}"
        assert function.lines <= MAX_FUNCTION or name in LONG_FUNCTIONS, f"{name}: {function.lines} lines"
        assert function.parameters <= MAX_PARAMETERS or name in WIDE_FUNCTIONS, f"{name}: {function.parameters} parameters"


# Names of classes that nobody understood who had not read them.
REPLACED = [
    "Ask", "ConnectionHome", "HeldCalls", "Keeper", "LlmLane", "Manner", "Member", "Neighbours", "Note", "Origin", "Resident", "Said",
    "SlotWish", "Told", "Ways", "Wishes",
]  # fmt: skip


def test_names_of_classes_are_unique() -> None:
    places: dict[str, list[str]] = {}
    for path in SOURCES:
        if path.suffix != ".pxd" and path.relative_to(ROOT).parts[0] in ("engine", "pysrc"):
            for name in re.findall(r"^(?:cdef )?class (\w+)", path.read_text(), re.MULTILINE):
                places.setdefault(name, []).append(name_of(path))
    assert {name: found for name, found in places.items() if len(found) > 1} == {}
    assert [name for name in REPLACED if name in places] == [], "a class has the name that another one had before it got a better one"


@each(sorted((ROOT / "engine").rglob("*.pyx")), name_of)
def test_a_module_without_a_check_of_bounds_or_none_says_why(path: Path) -> None:
    text = path.read_text()
    for directive, word in (("boundscheck", "bounds"), ("nonecheck", "None")):
        if re.search(rf"^# cython:.*\b{directive}=False", text, re.MULTILINE):
            assert re.search(rf"#.*\b{word}\b|{directive} is off", text.partition(f"{directive}=False")[2]), directive


@each(SOURCES, name_of)
def test_every_room_has_a_name(path: Path) -> None:
    for part in path.relative_to(ROOT).with_suffix("").parts:
        assert part.removeprefix("test_") not in NAMELESS


ENGINE = ROOT / "engine" / "headgate_engine"


@each(sorted(ENGINE.rglob("*.pyx")), name_of)
def test_a_compiled_module_has_its_c_and_python_faces(path: Path) -> None:
    assert path.with_suffix(".pxd").exists(), "no .pxd"
    assert path.with_suffix(".pyi").exists(), "no .pyi"
