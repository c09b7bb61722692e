"""Sizes, names, mirrors and whole tables: what keeps the house easy to walk through."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MAX_LINES = 500
MAX_FUNCTION = 60
MAX_PARAMETERS = 6
NAMELESS = {"util", "utils", "common", "helper", "helpers", "misc", "base", "manager"}

# Files over the limit, with the reason why they stay whole.
LONG_FILES = {
    "engine/headgate_engine/expr/nodes.pyx": "one small class per kind of node",
    "engine/headgate_engine/expr/views.pyx": "one small reader per variable",
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


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_a_file_is_short_or_says_why_not(path: Path) -> None:
    lines = len(path.read_text().splitlines())
    assert lines <= MAX_LINES or name_of(path) in LONG_FILES, f"{lines} lines"


def test_the_list_of_long_files_is_current() -> None:
    for name in LONG_FILES:
        assert len((ROOT / name).read_text().splitlines()) > MAX_LINES, f"{name} is short now"


@pytest.mark.parametrize("path", [p for p in PYTHON if "pysrc" in p.parts], ids=name_of)
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


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_every_room_has_a_name(path: Path) -> None:
    for part in path.relative_to(ROOT).with_suffix("").parts:
        assert part.removeprefix("test_") not in NAMELESS


ENGINE = ROOT / "engine" / "headgate_engine"


@pytest.mark.parametrize("path", sorted(ENGINE.rglob("*.pyx")), ids=name_of)
def test_a_compiled_module_has_its_c_and_python_faces(path: Path) -> None:
    assert path.with_suffix(".pxd").exists(), "no .pxd"
    assert path.with_suffix(".pyi").exists(), "no .pyi"
