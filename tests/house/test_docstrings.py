"""Public functions and classes of the Python half say what they are, and which errors they raise themselves. In both halves they
say in which units numbers are, and modules that speak somebody else's format or compute somebody else's algorithm name the page.
"""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.house.parsing_rig import many_trees, parsed

__all__ = ["many_trees"]

ROOT = Path(__file__).resolve().parents[2]
# Rows of one table each: what a row takes and returns is said once, above them.
TABLES = {"pysrc/headgate/pipeline/steps.py"}
Public = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def silent(text: str) -> list[str]:
    """Return the public names of a module, in its order, that have no docstring."""
    nodes = (node for node in parsed(text).body if isinstance(node, Public) and not node.name.startswith("_"))
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
    module = parsed(text)
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


# Words of names that stand for a time, a size or a rate, and those that say in which unit it is.
QUANTITIES = {
    "timeout", "deadline", "duration", "delay", "interval", "pause", "ttl", "age", "period", "elapsed", "latency", "lifetime", "patience",
    "grace", "size", "length", "rate", "limit", "frequency", "budget", "quota", "until", "expires", "now", "since",
}  # fmt: skip
IN_NAMES = {
    "s", "ms", "us", "ns", "seconds", "second", "minutes", "hours", "days", "bytes", "bits", "mb", "kb", "per", "tokens", "count", "percent", "hz",
}  # fmt: skip
IN_WORDS = re.compile(
    r"\b(seconds?|m?s|us|ns|milliseconds|minutes|hours|bytes?|[KMG]iB|per second|the unit of|characters|tokens|hits|number of|how many|of them)\b",
    re.IGNORECASE,
)  # fmt: skip


def without_unit(text: str) -> list[str]:
    """The public functions, properties and attributes of a module with a number whose unit neither the name nor a docstring says."""
    found = []

    def asks(name: str, kind: ast.expr | None) -> bool:
        words = set(name.lower().strip("_").split("_"))
        numeric = re.fullmatch(r"(int|float)( \| (int|float|None))*", "" if kind is None else ast.unparse(kind))
        return bool(words & QUANTITIES) and not words & IN_NAMES and numeric is not None

    def look(node: ast.Module | ast.ClassDef, told: str) -> None:
        told += " " + (ast.get_docstring(node) or "")
        for one, behind in itertools.zip_longest(node.body, node.body[1:]):
            if isinstance(one, ast.ClassDef) and not one.name.startswith("_"):
                look(one, told)
            if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef) and (not one.name.startswith("_") or one.name in ("__init__", "__new__")):
                given = [*one.args.posonlyargs, *one.args.args, *one.args.kwonlyargs]
                names = [f"{one.name}({argument.arg})" for argument in given if asks(argument.arg, argument.annotation)]
                names += [one.name] if asks(one.name, one.returns) else []
                if not IN_WORDS.search(told + " " + (ast.get_docstring(one) or "")):
                    found.extend(names)
            if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name) and isinstance(node, ast.ClassDef):
                said = ast.unparse(behind) if isinstance(behind, ast.Expr) else ""
                if not one.target.id.startswith("_") and asks(one.target.id, one.annotation) and not IN_WORDS.search(f"{told} {said}"):
                    found.append(f"{node.name}.{one.target.id}")

    look(parsed(text), "")
    return found


def public_files() -> Iterator[Path]:
    """What Python sees of both halves: modules, and the stubs of compiled ones."""
    yield from sorted((ROOT / "pysrc").rglob("*.py"))
    yield from sorted((ROOT / "engine" / "headgate_engine").rglob("*.pyi"))


# What click makes of a function is a command, and its docstring the help; the option's own text says the unit.
COMMANDS = {"pysrc/headgate/cli/top.py": ["top(delay)"]}


def test_times_sizes_and_rates_have_a_unit() -> None:
    found = {str(path.relative_to(ROOT)): without_unit(path.read_text()) for path in public_files()}
    assert {path: names for path, names in found.items() if names} == COMMANDS


def test_a_number_without_a_unit_is_found() -> None:
    head = 'def f(delay: float | None, size_bytes: int, pause: str) -> int:\n    """Wait%s."""\n'
    assert without_unit(head % "") == ["f(delay)"]
    assert without_unit(head % " for `delay` seconds") == []
    assert without_unit('class A:\n    """Of something."""\n    limit: int\n    rate: int\n    """Hits."""\n    def size(self) -> int: ...\n') == [
        "A.limit", "size",
    ]  # fmt: skip
    assert without_unit('"""Sizes are bytes."""\nclass A:\n    def __init__(self, size: int) -> None: ...\n') == []


# Packages whose modules speak formats and compute algorithms that others have defined.
DEFINED_BY_OTHERS = [
    *(f"engine/headgate_engine/{name}" for name in ["a2a", "aws", "envoy", "http1", "http2", "mcp", "peek", "sse", "tls", "websocket", "wire"]),
    *(f"pysrc/headgate/{name}" for name in ("crypto", "dialect", "policy/cloud")),
]
SOURCE = re.compile(r"RFC \d{3,5}|https://|FIPS \d|Unicode Standard Annex")
OWN_FORM = "a form of ours, between formats whose pages the modules of the formats name"
# Modules of these packages that need no source, with the reason.
OF_OUR_OWN = {
    "engine/headgate_engine/a2a/backend.pyx": "chooses a backend; what is read is in the others",
    "engine/headgate_engine/mcp/call.pyx": "a call of ours; heads and messages are read in others",
    "engine/headgate_engine/mcp/direct.pyx": "a backend; heads and messages are read in others",
    "engine/headgate_engine/mcp/settings.pyx": "settings",
    "engine/headgate_engine/mcp/telemetry.pyx": "telemetry of ours",
    "engine/headgate_engine/peek/delta.pyx": OWN_FORM,
    "engine/headgate_engine/tls/faults.py": "labels of ours for the codes of a header of OpenSSL, which it names",
    "engine/headgate_engine/wire/buffer.pyx": "memory",
    "pysrc/headgate/crypto/password_pool.py": "threads",
    "pysrc/headgate/dialect/llm/catalog.py": "a form of ours",
    "pysrc/headgate/dialect/llm/contract.py": OWN_FORM,
    "pysrc/headgate/dialect/llm/enrichment.py": "an edit by offsets",
    "pysrc/headgate/dialect/llm/fields.py": "types of members",
    "pysrc/headgate/dialect/llm/history.py": OWN_FORM,
    "pysrc/headgate/dialect/llm/neutral_reply.py": OWN_FORM,
    "pysrc/headgate/dialect/llm/page.py": "writes a page",
    "pysrc/headgate/dialect/llm/pairs.py": "a table of modules",
    "pysrc/headgate/dialect/llm/ran_code.py": OWN_FORM,
    "pysrc/headgate/dialect/llm/replies.py": OWN_FORM,
    "pysrc/headgate/dialect/llm/sayable.py": OWN_FORM,
    "pysrc/headgate/dialect/llm/streams.py": OWN_FORM,
    "pysrc/headgate/dialect/llm/transcript/contract.py": OWN_FORM,
    "pysrc/headgate/dialect/llm/transcript/edit.py": "an edit by offsets",
    "pysrc/headgate/dialect/llm/transcript/table.py": "a table of modules",
    "pysrc/headgate/dialect/llm/translate/chains.py": OWN_FORM,
    "pysrc/headgate/dialect/mcp/edit.py": "an edit by offsets",
    "pysrc/headgate/dialect/mcp/ext_mcp.py": "a protocol of ours, whose declaration it names",
    "pysrc/headgate/dialect/mcp/merge.py": "how several servers become one is our choice",
    "pysrc/headgate/dialect/mcp/method_keys.py": "patterns of ours",
    "pysrc/headgate/dialect/mcp/naming.py": "how items of several servers are named is our choice",
    "pysrc/headgate/policy/cloud/refresher.py": "when to renew is our choice",
    "pysrc/headgate/policy/cloud/store.py": "a table",
}


def sourceless(folder: Path) -> list[Path]:
    """The modules of a package that name no source, in none of their files."""
    modules = [path for path in sorted(folder.rglob("*")) if path.suffix in (".py", ".pyx") and path.name != "__init__.py"]
    forms = (".pyi", ".pxd")
    return [
        path for path in modules
        if not any(SOURCE.search(one.read_text()) for one in (path, *map(path.with_suffix, forms)) if one.exists())
    ]  # fmt: skip


def test_modules_of_foreign_formats_name_their_source() -> None:
    found = [str(path.relative_to(ROOT)) for package in DEFINED_BY_OTHERS for path in sourceless(ROOT / package)]
    assert set(found) == set(OF_OUR_OWN), "a module names neither a source nor a reason, or needs the reason no more"


@pytest.mark.parametrize("package", DEFINED_BY_OTHERS)
def test_packages_of_foreign_formats_exist(package: str) -> None:
    assert any(path.suffix in (".py", ".pyx") for path in (ROOT / package).rglob("*"))


def test_a_module_without_a_source_is_found(tmp_path: Path) -> None:
    (tmp_path / "told.pyx").write_text('"""Frames; see told.pxd."""\n')
    (tmp_path / "told.pxd").write_text("# RFC 9113 section 4\n")
    (tmp_path / "quiet.py").write_text('"""Frames of the RFC."""\n')
    assert sourceless(tmp_path) == [tmp_path / "quiet.py"]
