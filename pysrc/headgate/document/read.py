"""Text (YAML or JSON) to nodes.

The reader is the YAML 1.2 core schema over libyaml's events: only `true` and `false` are bools, so `no`,
`on` and `y` stay text. Keys given twice, merge keys, custom tags, several documents and documents beyond
the limits are faults. The walk keeps its own stack, so nesting cannot exhaust that of the interpreter.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import yaml

from headgate.document.expand import NOT_FOUND, expand
from headgate.document.nodes import DocumentNode, MapEntry, Report, Scalar
from headgate.errors import ConfigErrors, Problem
from headgate_engine.document.blocks import UnusualYaml, read_blocks

MAX_CHARS: Final = 64 * 1024 * 1024
MAX_DEPTH: Final = 128
# Counted after aliases are followed: nine levels of ten aliases each do not pass.
MAX_NODES: Final = 5_000_000

_INT = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_WORDS: Final[dict[str, Scalar]] = {
    "": None, "~": None, "null": None, "Null": None, "NULL": None,
    "true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False,
    ".inf": float("inf"), "-.inf": float("-inf"), ".nan": float("nan"),
}  # fmt: skip
_STARTS_NUMBER: Final = frozenset("0123456789+-.")
_CORE: Final = "tag:yaml.org,2002:"
_MAX_INT_DIGITS: Final = 40
# `{a: ${VAR}}`: the braces of a variable would be those of a map. Marks of the same width stand for them meanwhile.
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*(?::-[^{}\[\],'\"\n]*)?)\}")
_OPEN: Final = "\ue000"
_CLOSE: Final = "\ue001"
_SURROGATES = re.compile(r"(?<!\\)((?:\\\\)*)\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})")


def resolve(text: str) -> Scalar:
    """Return what a plain scalar means in the YAML 1.2 core schema."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in _STARTS_NUMBER or len(text) > _MAX_INT_DIGITS:
        return text
    if _INT.fullmatch(text):
        return int(text, 0) if text[:2] in ("0o", "0x") else int(text)
    return float(text) if _FLOAT.fullmatch(text) else text


def _tagged(tag: str, text: str) -> Scalar:
    """Return the value of a scalar with an explicit core tag; raises ValueError when they do not fit."""
    kind = tag.removeprefix(_CORE)
    if tag == "!" or kind == "str":
        return text
    value = resolve(text)
    wanted: dict[str, type] = {"int": int, "float": float, "bool": bool, "null": type(None)}
    if kind == "float" and type(value) is int:
        return float(value)
    if kind in wanted and tag.startswith(_CORE) and type(value) is wanted[kind]:
        return value
    raise ValueError(f"tag {tag!r} is not accepted here")


class _Builder:
    """Builds nodes from events. A frame is an open list or map; `size` counts nodes with aliases followed."""

    def __init__(self, report: Report, environ: Mapping[str, str] | None, guarded: bool = False) -> None:
        self.report = report
        self.environ = environ
        self.guarded = guarded
        self.stack: list[tuple[DocumentNode, list[Any]]] = []
        self.sizes: list[int] = []
        self.anchors: dict[str, tuple[DocumentNode, int]] = {}
        self.open_anchors: dict[str, DocumentNode] = {}
        self.root: DocumentNode | None = None
        self.total = 0

    def fail(self, message: str, mark: Any) -> None:
        place = DocumentNode(None, mark.line + 1, mark.column + 1)
        self.report.add(Problem.SYNTAX, "", message, place)
        raise ConfigErrors(self.report.in_order())

    def count(self, size: int, mark: Any) -> None:
        self.total += size
        if self.total > MAX_NODES:
            self.fail(f"the document has more than {MAX_NODES} values with its aliases followed", mark)
        if self.sizes:
            self.sizes[-1] += size

    def place(self, node: DocumentNode, event: Any) -> None:
        """Put a finished value into the open frame; in a map every other one is a key."""
        if not self.stack:
            self.root = node
            return
        parent, pending = self.stack[-1]
        if isinstance(parent.value, list):
            parent.value.append(node)
            return
        if not pending:
            pending.append(self.key_of(node, event))
            pending.append(node)
            return
        key, at = pending
        pending.clear()
        entries = parent.value
        assert isinstance(entries, dict)
        if key in entries:
            first = entries[key].line
            self.report.add(Problem.SYNTAX, "", f"key {key!r} is given twice, first in line {first}", at)
            return
        entries[key] = MapEntry(at.line, at.column, node)

    def key_of(self, node: DocumentNode, event: Any) -> str:
        if not isinstance(event, yaml.ScalarEvent):
            self.fail("a key must be a scalar", event.start_mark)
        if event.value == "<<" and not event.style:
            self.fail("merge keys (<<) are not supported", event.start_mark)
        return node.value if isinstance(node.value, str) else str(event.value)

    def scalar(self, event: Any) -> None:
        mark = event.start_mark
        text: str = event.value
        if self.guarded:
            text = text.replace(_OPEN, "{").replace(_CLOSE, "}")
        value: Scalar = text
        if event.tag is not None:
            try:
                value = _tagged(event.tag, text)
            except ValueError as error:
                self.fail(str(error), mark)
        elif not event.style:
            value = resolve(text)
        node = DocumentNode(value, mark.line + 1, mark.column + 1)
        if self.environ is not None and "$" in text:
            self.expand(node, text)
        self.count(1, mark)
        if event.anchor is not None:
            self.anchors[event.anchor] = (node, 1)
        self.place(node, event)

    def expand(self, node: DocumentNode, text: str) -> None:
        assert self.environ is not None
        result = expand(text, self.environ)
        for name in result.missing:
            self.report.add(Problem.ENVIRONMENT, "", f"{NOT_FOUND}: {name}", node)
        node.value = result.text
        # A quoted "${VAR}" may become a number as well: people quote them out of habit.
        node.loose = result.whole
        node.expanded = result.used

    def open(self, event: Any, value: list[DocumentNode] | dict[str, MapEntry]) -> None:
        mark = event.start_mark
        if len(self.stack) >= MAX_DEPTH:
            self.fail(f"nested deeper than {MAX_DEPTH} levels", mark)
        core = "seq" if isinstance(value, list) else "map"
        if event.tag not in (None, "!", _CORE + core):
            self.fail(f"tag {event.tag!r} is not accepted here", mark)
        if self.stack and isinstance(self.stack[-1][0].value, dict) and not self.stack[-1][1]:
            self.fail("a key must be a scalar", mark)
        node = DocumentNode(value, mark.line + 1, mark.column + 1)
        self.count(1, mark)
        if event.anchor is not None:
            self.open_anchors[event.anchor] = node
            self.anchors.pop(event.anchor, None)
        self.sizes.append(1)
        self.stack.append((node, []))

    def close(self, event: Any) -> None:
        node, _ = self.stack.pop()
        size = self.sizes.pop()
        if self.sizes:
            self.sizes[-1] += size - 1
        for name in [name for name, opened in self.open_anchors.items() if opened is node]:
            del self.open_anchors[name]
            self.anchors[name] = (node, size)
        self.place(node, event)

    def alias(self, event: Any) -> None:
        if event.anchor not in self.anchors:
            inside = " inside itself" if event.anchor in self.open_anchors else ""
            self.fail(
                f"alias *{event.anchor} is used{inside} before its anchor is complete", event.start_mark
            )
        node, size = self.anchors[event.anchor]
        self.count(size, event.start_mark)
        self.place(node, event)


def _feed(builder: _Builder, text: str) -> None:
    documents = 0
    for event in yaml.parse(text, Loader=yaml.CSafeLoader):
        kind = type(event)
        if kind is yaml.ScalarEvent:
            builder.scalar(event)
        elif kind is yaml.MappingStartEvent:
            builder.open(event, {})
        elif kind is yaml.SequenceStartEvent:
            builder.open(event, [])
        elif kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
            builder.close(event)
        elif kind is yaml.AliasEvent:
            builder.alias(event)
        elif kind is yaml.DocumentStartEvent:
            documents += 1
            if documents > 1:
                builder.fail("a second document begins here; one file holds one document", event.start_mark)


def _join_surrogates(text: str) -> str:
    """Replace the JSON escapes of one character beyond U+FFFF, which libyaml refuses, by the character."""

    def join(found: re.Match[str]) -> str:
        high, low = int(found[2], 16) - 0xD800, int(found[3], 16) - 0xDC00
        return found[1] + chr(0x10000 + (high << 10) + low)

    return _SURROGATES.sub(join, text)


class Document(NamedTuple):
    """`anchored`: values have names, so that parts of the text may depend on other parts."""

    root: DocumentNode
    anchored: bool


def read(text: str, file: str, environ: Mapping[str, str] | None = None) -> DocumentNode:
    """Return the root node of read_document()."""
    return read_document(text, file, environ).root


def read_document(text: str, file: str, environ: Mapping[str, str] | None = None) -> Document:
    """Return the document that `text` holds; an empty one is an empty map.

    `environ` None leaves `$` alone. Raises ConfigErrors: for syntax the first fault, and before it all unset
    variables and all keys that are given twice.
    """
    report = Report(file)
    if len(text) > MAX_CHARS:
        report.add(Problem.SYNTAX, "", f"longer than {MAX_CHARS} characters")
        raise ConfigErrors(report.errors)
    root = read_plain(text, environ)
    return read_events(text, file, environ) if root is None else Document(root, anchored=False)


def read_plain(text: str, environ: Mapping[str, str] | None) -> DocumentNode | None:
    """Return the root of a text without faults that is written the plain way, as most are; None of any other."""
    report = Report("")
    expand_in = None if environ is None else _Builder(report, environ).expand
    try:
        root: DocumentNode = read_blocks(text, DocumentNode, MapEntry, resolve, expand_in, MAX_NODES)
    except UnusualYaml:
        return None
    return None if report.errors else root


def read_events(text: str, file: str, environ: Mapping[str, str] | None) -> Document:
    """Return what read_document() does, whatever the text is like."""
    report = Report(file)
    if text.lstrip()[:1] in ("{", "["):
        text = _join_surrogates(text)
    builder = _Builder(report, environ)
    if not _parse(builder, text) and environ is not None and _OPEN not in text and _CLOSE not in text:
        guarded = _VARIABLE.sub(f"${_OPEN}\\1{_CLOSE}", text)
        if guarded != text:
            report = Report(file)
            builder = _Builder(report, environ, guarded=True)
            _parse(builder, guarded)
    if report.errors:
        raise ConfigErrors(report.in_order())
    root = builder.root
    if root is None or root.value is None:
        root = DocumentNode({}, 1, 1)
    return Document(root, bool(builder.anchors))


def _parse(builder: _Builder, text: str) -> bool:
    """Feed the builder; False after reporting the fault of a text that is no YAML."""
    try:
        _feed(builder, text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = DocumentNode(None, mark.line + 1, mark.column + 1) if mark is not None else None
        context = f" ({error.context})" if error.context else ""
        # Some versions of libyaml have a limit of their own, which the scanner reaches before the builder reaches ours.
        too_deep = "nesting depth" in (error.problem or "")
        told = f"nested deeper than {MAX_DEPTH} levels" if too_deep else f"{error.problem or 'cannot be read'}{context}"
        builder.report.add(Problem.SYNTAX, "", told, place)
    except yaml.YAMLError as error:
        at = DocumentNode(None, text.count("\n", 0, getattr(error, "position", 0)) + 1, 1)
        builder.report.add(Problem.SYNTAX, "", str(getattr(error, "reason", "cannot be read")), at)
    else:
        return True
    return False
