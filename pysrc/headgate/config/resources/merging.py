"""Merges what is stored into the document of the file, before anything of it is checked.

Items of lists come behind those of the file, in the order in which they were created; entries of maps and fields of
objects are added. Whatever the file defines stays as it is: a resource with the id of something in the file is left
out, with a warning. Nodes of resources have a negative line, the number of their resource, so that a fault is told of
the resource that it is in.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from headgate.config.check import BAD, check
from headgate.config.resources.kinds import KINDS, StoredKind, items, value_shape
from headgate.config.resources.stored import StoredResource, StoredSnapshot
from headgate.config.shape.vocabulary import Object
from headgate.document.nodes import DocumentNode, MapEntry, Report, child, plain
from headgate.document.read import expand_node
from headgate.errors import ConfigError, Problem

# Whatever a section needs that no resource says.
NEEDED: Final = {"llm": "models", "mcp": "targets"}
NO_POLICY: Final = "the keys need the policy: store it as llm.policy/apiKey, or write llm.policies.apiKey into the file"


class Merger:
    """Merges a snapshot into the document `root`. Then `warnings` says what was left out.

    `environ`: the variables; None leaves them as they are written.
    """

    def __init__(
        self, root: DocumentNode, snapshot: StoredSnapshot, environ: Mapping[str, str] | None, report: Report
    ) -> None:
        self.warnings: list[str] = []
        self._root = root
        self._resources = snapshot.resources
        self._environ = environ
        self._report = report
        # By path in the merged document.
        self._places: dict[str, StoredResource] = {}
        self._owned = owned_ids(plain(root))
        self._stored = {one.kind for one in snapshot.resources}

    def merge(self) -> None:
        """Put every resource into its place. Faults are in the report."""
        ordered = sorted(enumerate(self._resources), key=lambda one: _RANK.get(one[1].kind, len(_RANK)))
        for number, resource in ordered:
            kind = KINDS.get(resource.kind)
            line = -(number + 1)
            if kind is None:
                self._report.add(
                    Problem.UNSUPPORTED, "", f"resources of kind {resource.kind}", DocumentNode(None, line, 0)
                )
                continue
            node = self._node(resource.value(), line)
            if self._is_owned(kind, resource, node):
                self.warnings.append(f"{resource.label}: left out, because the file also defines it")
            elif self._waits(kind):
                self.warnings.append(f"{resource.label}: no effect without {_awaited(kind)}")
                self._check_alone(kind, node)
            else:
                self._insert(kind, resource, node)

    def _is_owned(self, kind: StoredKind, resource: StoredResource, node: DocumentNode) -> bool:
        owned = self._owned[kind.name]
        claimed = set(node.value) if kind.form == "fields" and isinstance(node.value, dict) else {resource.id}
        return not claimed.isdisjoint(owned)

    def _waits(self, kind: StoredKind) -> bool:
        """Tell whether the section of a resource is neither in the file nor made by another one."""
        assert isinstance(self._root.value, dict)
        if kind.waits_for is None or _given(self._root.value, kind.place[0]):
            return False
        return kind.waits_for not in self._stored

    def _check_alone(self, kind: StoredKind, node: DocumentNode) -> None:
        shape = value_shape(kind)
        if kind.form in ("field", "fields") and isinstance(shape, Object):
            # Of an object that is not complete, each field for itself.
            for name, entry in node.value.items() if isinstance(node.value, dict) else ():
                field = shape.fields.get(shape.aliases.get(name, name))
                if field is None:
                    self._report.add(Problem.UNKNOWN_FIELD, name, f"unknown field {name!r}", entry)
                else:
                    check(field.shape, entry.node, self._report)
        elif check(shape, node, self._report) is BAD and not self._report.errors:
            self._report.add(Problem.VALUE, "", "not valid", node)

    def _insert(self, kind: StoredKind, resource: StoredResource, node: DocumentNode) -> None:
        value, path = self._root.value, ""
        held = self._root
        for step in kind.place:
            assert isinstance(value, dict)
            if not _given(value, step):
                if kind.name == "llm.apiKey" and step == "apiKey":
                    self._report.add(Problem.MISSING, "", NO_POLICY, node)
                    return
                last = step == kind.place[-1]
                made: Any = [] if last and kind.form == "item" else {}
                value[step] = MapEntry(node.line, 0, DocumentNode(made, node.line, 0))
                need = NEEDED.get(step) if not path else None
                if need is not None:
                    made[need] = MapEntry(node.line, 0, DocumentNode([], node.line, 0))
            held = value[step].node
            value, path = held.value, child(path, step)
            if not isinstance(value, dict | list):
                return  # a fault of the file, which its check tells
        self._put(kind, resource, node, held, path)

    def _put(
        self, kind: StoredKind, resource: StoredResource, node: DocumentNode, held: DocumentNode, path: str
    ) -> None:
        value = held.value
        if kind.form == "item" and isinstance(value, list):
            self._places[f"{path}[{len(value)}]"] = resource
            value.append(node)
        elif isinstance(value, dict) and isinstance(node.value, dict):
            if kind.form == "entry":
                node.value.pop("name", None)
                value[resource.id] = MapEntry(node.line, 0, node)
                self._places[child(path, resource.id)] = resource
                return
            for name, entry in node.value.items():
                value[name] = entry
                self._places[child(path, name)] = resource

    def _node(self, value: Any, line: int) -> DocumentNode:
        """Return a JSON value as nodes, with its variables replaced."""
        if isinstance(value, dict):
            entries = {key: MapEntry(line, 0, self._node(one, line)) for key, one in value.items()}
            return DocumentNode(entries, line, 0)
        if isinstance(value, list):
            return DocumentNode([self._node(one, line) for one in value], line, 0)
        node = DocumentNode(value, line, 0)
        if isinstance(value, str) and self._environ is not None:
            expand_node(node, value, self._environ, self._report)
        return node

    def told(self, error: ConfigError) -> ConfigError:
        """Return an error of the merged document as one of the resource that it is in, if it is in one."""
        found = self._resources[-error.line - 1] if error.line < 0 else None
        path = error.path
        for place, resource in self._places.items():
            if path == place or path.startswith((f"{place}.", f"{place}[")):
                found = resource
                # The name of a field is in the value itself.
                if KINDS[resource.kind].form in ("item", "entry"):
                    path = path[len(place) :].removeprefix(".")
                else:
                    path = path[len(KINDS[resource.kind].path) + 1 :]
                break
        if found is None:
            return error
        return ConfigError(error.problem, path, error.message, f"resource {found.label}", 0, 0)


# The order in which kinds are merged: what makes a section comes before what stands in it.
_RANK: Final = {name: at for at, name in enumerate(KINDS)}


def _given(entries: dict[str, MapEntry], key: str) -> bool:
    return key in entries and entries[key].node.value is not None


def _awaited(kind: StoredKind) -> str:
    return f"a section {kind.place[0]} in the file" + ("" if kind.waits_for == "ui" else f" or {kind.waits_for}")


def owned_ids(document: Any) -> dict[str, frozenset[str]]:
    """Return by kind the ids that a file defines; of a kind with fields, the names of those that it sets."""
    found: dict[str, frozenset[str]] = {}
    for kind in KINDS.values():
        values = list(items(kind, document))
        if kind.form == "fields":
            found[kind.name] = frozenset(name for _, value in values for name in value)
        elif kind.unnamed:
            found[kind.name] = frozenset()  # entries without a name belong to nobody else
        else:
            found[kind.name] = frozenset(name for name, _ in values if name is not None)
    return found
