"""Public functions and classes of the Python half say what they are."""

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
