"""Resources as they may be shown: of the file and of the database, variables as written, secrets as `<redacted>`."""

from __future__ import annotations

from typing import Any

from headgate.config.file_view import document_view
from headgate.config.redaction import restored_value
from headgate.config.resources.kinds import StoredKind, items
from headgate.config.resources.merging import Merger
from headgate.config.resources.stored import StoredResource, StoredSnapshot, timestamp
from headgate.document.nodes import DocumentNode, MapEntry, Report, plain
from headgate.document.read import read


def shown(kind: StoredKind, value: Any) -> Any:
    """Return a value without its secrets, which the shape of the file knows at the place of the kind."""
    inner: Any = {"-": value} if kind.form == "entry" else [value] if kind.form == "item" else value
    if kind.form == "entry" and isinstance(value, dict):
        inner = {"-": {key: one for key, one in value.items() if key != "name"}}
    document = inner
    for step in reversed(kind.place):
        document = {step: document}
    found = document_view(_nodes(document))
    for step in kind.place:
        found = found[step]
    if kind.form == "item":
        return found[0]
    if kind.form == "entry":
        named = isinstance(value, dict) and "name" in value
        return {"name": value["name"], **found["-"]} if named else found["-"]
    return found


def _nodes(value: Any) -> DocumentNode:
    if isinstance(value, dict):
        return DocumentNode({key: MapEntry(1, 1, _nodes(one)) for key, one in value.items()}, 1, 1)
    if isinstance(value, list):
        return DocumentNode([_nodes(one) for one in value], 1, 1)
    return DocumentNode(value, 1, 1)


def restored(kind: StoredKind, value: Any, held: Any) -> tuple[list[str], Any]:
    """Return where `<redacted>` has no certain meaning, and the value with the secrets of `held`, the stored one."""
    return restored_value(value, None if held is None else shown(kind, held), held)


def stored_entry(kind: StoredKind, one: StoredResource) -> dict[str, Any]:
    """Return a stored resource as answers have it."""
    return {
        "kind": one.kind,
        "id": one.id,
        "value": shown(kind, one.value()),
        "revision": one.revision,
        "createdAt": timestamp(one.created_us),
        "updatedAt": timestamp(one.updated_us),
    }


def file_entries(kind: StoredKind, text: str, name: str) -> list[dict[str, Any]]:
    """Return the resources of a kind in a file, which have no revision. What has no name has its path as id.

    Raises ConfigErrors if the text cannot be read.
    """
    root = read(text, name)
    views = items(kind, document_view(root))
    found = []
    for number, ((said, _), (_, view)) in enumerate(zip(items(kind, plain(root)), views, strict=True)):
        unnamed = said is None or (kind.unnamed and kind.form == "item")
        found.append({"kind": kind.name, "id": f"{kind.path}[{number}]" if unnamed else said, "value": view})
    return found


def effective(text: str, name: str, snapshot: StoredSnapshot) -> Any:
    """Return the file merged with what is stored. Raises ConfigErrors if the text cannot be read."""
    root = read(text, name)
    if isinstance(root.value, dict):
        Merger(root, snapshot, None, Report(name)).merge()
    return document_view(root)
