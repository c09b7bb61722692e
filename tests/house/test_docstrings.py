"""Public functions and classes of the Python half say what they are, and which errors they raise themselves."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Rows of one table each: what a row takes and returns is said once, above them.
TABLES = {"pysrc/headgate/pipeline/steps.py"}
Public = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def silent(text: str) -> list[str]:
    """Return the public names of a module, in its order, that have no docstring."""
    nodes = (node for node in ast.parse(text).body if isinstance(node, Public) and not node.name.startswith("_"))
    return [node.name for node in nodes if not ast.get_docstring(node)]


def test_public_names_have_docstrings() -> None:
    found = {str(path.relative_to(ROOT)): silent(path.read_text()) for path in sorted((ROOT / "pysrc").rglob("*.py"))}
    assert {path: names for path, names in found.items() if names and path not in TABLES} == {}
    assert all(found[path] for path in TABLES), "no exception is needed"


def test_a_silent_function_is_found() -> None:
    assert silent('def told() -> None:\n    """Do nothing."""\n\ndef quiet() -> None: ...\n\ndef _own() -> None: ...\n\nclass Kind: ...\n') == [
        "quiet", "Kind",
    ]  # fmt: skip


def raised_in(function: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    """The types of errors that the function makes and raises, but for those that it catches itself."""
    found: set[str] = set()

    def look(node: ast.AST, caught: frozenset[str]) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, Public | ast.Lambda):
                continue
            if isinstance(child, ast.Raise) and isinstance(child.exc, ast.Call) and isinstance(child.exc.func, ast.Name):
                found.update({child.exc.func.id} - caught)
            if isinstance(child, ast.Try):
                kinds = {name.id for handler in child.handlers for name in ast.walk(handler.type or handler) if isinstance(name, ast.Name)}
                for part in child.body:
                    look(ast.Module([part], []), caught | kinds)
                for part in (*child.handlers, *child.orelse, *child.finalbody):
                    look(ast.Module([part], []), caught)
            else:
                look(child, caught)

    look(function, frozenset())
    # What is no class is a function that makes the error; how a process ends and what cannot be are no errors of callers.
    return {name for name in found if name[:1].isupper()} - {"SystemExit", "AssertionError", "NotImplementedError", "RuntimeError"}


def untold(text: str) -> list[str]:
    """Return the public functions and methods of a module, with the errors that no docstring of theirs, their class or module names."""
    module = ast.parse(text)
    found = []

    def look(node: ast.Module | ast.ClassDef, told: str) -> None:
        told += ast.get_docstring(node) or ""
        for one in node.body:
            if not isinstance(one, Public) or one.name.startswith("_"):
                continue
            if isinstance(one, ast.ClassDef):
                look(one, told)
                continue
            own = ast.get_docstring(one)
            if own is not None:
                found.extend(f"{one.name}: {error}" for error in sorted(raised_in(one)) if error not in told + own)

    look(module, "")
    return found


def test_errors_that_a_function_raises_are_in_its_docstring() -> None:
    found = {str(path.relative_to(ROOT)): untold(path.read_text()) for path in sorted((ROOT / "pysrc").rglob("*.py"))}
    assert {path: lines for path, lines in found.items() if lines} == {}


def test_an_error_without_a_word_is_found() -> None:
    head = 'def f(x):\n    """Return x%s."""\n'
    assert untold(head % "" + "    raise ValueError(x)\n") == ["f: ValueError"]
    assert untold(head % ", or raise ValueError" + "    raise ValueError(x)\n") == []
    assert untold(head % "" + "    try:\n        raise KeyError(x)\n    except KeyError:\n        raise Lost(x)\n") == ["f: Lost"]
    assert untold('class A:\n    """Raises Lost."""\n    ' + (head % "").replace("\n", "\n    ") + "    raise Lost(x)\n") == []
