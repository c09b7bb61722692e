"""Any text (YAML or JSON) to nodes, over the events of libyaml.

Keys given twice, merge keys, custom tags, several documents and documents beyond the limits are faults. The walk keeps
its own stack, so nesting cannot exhaust that of the interpreter.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import yaml

from headgate.document.nodes import DocumentNode, MapEntry, Report, Scalar
from headgate.document.read import MAX_DEPTH, MAX_NODES, Document, expand_node, resolve
from headgate.errors import ConfigErrors, Problem
from headgate_engine.lazy_pattern import lazy_pattern

if TYPE_CHECKING:
    import re

_CORE: Final = "tag:yaml.org,2002:"
# `{a: ${VAR}}`: the braces of a variable would be those of a map. Marks of the same width stand for them meanwhile.
_VARIABLE = lazy_pattern(r"\$\{([A-Za-z_][A-Za-z0-9_]*(?::-[^{}\[\],'\"\n]*)?)\}")
_OPEN: Final = "\ue000"
_CLOSE: Final = "\ue001"
_SURROGATES = lazy_pattern(r"(?<!\\)((?:\\\\)*)\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})")


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
            self.fail(f"the document has more than {MAX_NODES} values, including those of aliases", mark)
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
            expand_node(node, text, self.environ, self.report)
        self.count(1, mark)
        if event.anchor is not None:
            self.anchors[event.anchor] = (node, 1)
        self.place(node, event)

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
            self.fail(f"alias *{event.anchor} is used{inside} before its anchor is complete", event.start_mark)
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
                builder.fail("a second document begins here; a file can contain only one", event.start_mark)


def _join_surrogates(text: str) -> str:
    """Replace the JSON escapes of one character beyond U+FFFF, which libyaml refuses, by the character."""

    def join(found: re.Match[str]) -> str:
        high, low = int(found[2], 16) - 0xD800, int(found[3], 16) - 0xDC00
        return found[1] + chr(0x10000 + (high << 10) + low)

    return _SURROGATES.sub(join, text)


def read_events(
    text: str, file: str, environ: Mapping[str, str] | None, unset: Report | None = None
) -> Document:
    """Return what read_document() does, whatever the text is like. Raises ConfigErrors."""
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
        if unset is None or any(error.problem is not Problem.ENVIRONMENT for error in report.errors):
            raise ConfigErrors(report.in_order())
        unset.errors += report.errors
        unset.unset += report.unset
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
