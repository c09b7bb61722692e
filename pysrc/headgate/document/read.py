"""Text (YAML or JSON) to nodes.

What is read is YAML 1.2 with its core schema: only `true` and `false` are bools, so `no`, `on` and `y` stay text. A
text that is written the plain way is read without libyaml; `document.events` reads all others and tells their faults.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from headgate.document.expand import NOT_FOUND, expand
from headgate.document.nodes import DocumentNode, MapEntry, Report, Scalar
from headgate.errors import ConfigErrors, Problem
from headgate_engine.document.blocks import UnusualYaml, read_blocks
from headgate_engine.lazy_pattern import lazy_pattern

MAX_CHARS: Final = 64 * 1024 * 1024
MAX_DEPTH: Final = 128
# Counted after aliases are followed: nine levels of ten aliases each do not pass.
MAX_NODES: Final = 5_000_000

_INT = lazy_pattern(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = lazy_pattern(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_WORDS: Final[dict[str, Scalar]] = {
    "": None, "~": None, "null": None, "Null": None, "NULL": None,
    "true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False,
    ".inf": float("inf"), "-.inf": float("-inf"), ".nan": float("nan"),
}  # fmt: skip
_STARTS_NUMBER: Final = frozenset("0123456789+-.")
_MAX_INT_DIGITS: Final = 40


def resolve(text: str) -> Scalar:
    """Return what a plain scalar means in the YAML 1.2 core schema."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in _STARTS_NUMBER or len(text) > _MAX_INT_DIGITS:
        return text
    if _INT.fullmatch(text):
        return int(text, 0) if text[:2] in ("0o", "0x") else int(text)
    return float(text) if _FLOAT.fullmatch(text) else text


def expand_node(node: DocumentNode, text: str, environ: Mapping[str, str], report: Report) -> None:
    """Put the text with its variables replaced into a node; reports those that are not set."""
    result = expand(text, environ)
    for name in result.missing:
        report.add(Problem.ENVIRONMENT, "", f"{NOT_FOUND}: {name}", node)
    if result.missing:
        report.unset.append(node)
    node.value = result.text
    # A quoted "${VAR}" may become a number as well: people quote them out of habit.
    node.loose = result.whole
    node.expanded = result.used


class Document(NamedTuple):
    """`anchored`: values have names, so that parts of the text may depend on other parts."""

    root: DocumentNode
    anchored: bool


def read(text: str, file: str, environ: Mapping[str, str] | None = None) -> DocumentNode:
    """Return the root node of read_document()."""
    return read_document(text, file, environ).root


def read_document(
    text: str, file: str, environ: Mapping[str, str] | None = None, unset: Report | None = None
) -> Document:
    """Return the document that `text` holds; an empty one is an empty map.

    `environ` None leaves `$` alone. Raises ConfigErrors: for syntax the first fault, and before it all unset
    variables and all keys that are given twice. Unset variables alone are no reason to raise where `unset` takes their
    faults: the texts keep their names then.
    """
    report = Report(file)
    if len(text) > MAX_CHARS:
        report.add(Problem.SYNTAX, "", f"longer than {MAX_CHARS} characters")
        raise ConfigErrors(report.errors)
    root = read_plain(text, environ)
    if root is not None:
        return Document(root, anchored=False)
    from headgate.document.events import read_events  # with libyaml, which a plain text does not need

    return read_events(text, file, environ, unset)


def read_plain(text: str, environ: Mapping[str, str] | None) -> DocumentNode | None:
    """Return the root of a text without faults that is written the plain way, as most are; None of any other."""
    report = Report("")

    def expand_in(node: DocumentNode, text: str) -> None:
        expand_node(node, text, environ or {}, report)

    try:
        root: DocumentNode = read_blocks(
            text, DocumentNode, MapEntry, resolve, None if environ is None else expand_in, MAX_NODES
        )
    except UnusualYaml:
        return None
    return None if report.errors else root
