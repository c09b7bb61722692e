"""`headgate convert`: from a file to resources, and back."""

from __future__ import annotations

import base64
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml

from headgate.cluster.convert.gateway import GatewayNames, converted
from headgate.cluster.convert.losses import Loss
from headgate.cluster.convert.said import said
from headgate.cluster.convert.verify import file_of, unmet, verify, world_of
from headgate.cluster.snapshot import ObjectKey
from headgate.cluster.translate.fragments import Json
from headgate.config.load import FileSource, load
from headgate.config.shape.root import ROOT
from headgate.document.read import read_document
from headgate.document.write import write

# Kinds whose objects are in no namespace.
_EVERYWHERE: Final = ("GatewayClass", "Namespace")


class ConvertedFile(NamedTuple):
    """`documents` in the order of writing; `losses`: what of the file they do not say."""

    documents: list[Json]
    losses: list[Loss]


def to_resources(path: str, names: GatewayNames, environ: Mapping[str, str] = os.environ) -> ConvertedFile:
    """Return the resources for a file; raises ConfigErrors if it has faults."""
    loaded = load(FileSource(path), environ=environ)
    root, _ = read_document(Path(path).read_text(encoding="utf-8-sig"), path, environ)
    found = converted(said(ROOT, root), Path(path).parent, names)
    verify(found, loaded.gateway, names)
    return ConvertedFile(found.of.objects.in_order(), found.of.losses.in_order())


def documents_of(texts: list[str], namespace: str = "default") -> list[Json]:
    """Return the objects of manifests, those of lists too; raises ValueError. `namespace`: of those that say none."""
    found: list[Any] = []
    try:
        for text in texts:
            found += [one for one in yaml.safe_load_all(text) if one]
    except yaml.YAMLError as error:
        raise ValueError(f"no YAML: {error}") from None
    return [_stored(one, namespace) for document in found for one in _listed(document)]


def _listed(document: Any) -> list[Any]:
    items = document.get("items") if isinstance(document, dict) else None
    return items if isinstance(items, list) and str(document.get("kind")).endswith("List") else [document]


def _stored(document: Any, namespace: str) -> Json:
    """Return an object as an API server has it."""
    if not isinstance(document, dict) or not document.keys() >= {"apiVersion", "kind", "metadata"}:
        raise ValueError("an object without apiVersion, kind and metadata")
    found: Json = dict(document)
    if found["kind"] not in _EVERYWHERE:
        found["metadata"] = {"namespace": namespace, **found["metadata"]}
    if found["kind"] == "Secret" and found.get("stringData"):
        plain = {name: base64.b64encode(str(text).encode()).decode() for name, text in found.pop("stringData").items()}
        found["data"] = {**(found.get("data") or {}), **plain}
    return found


class FileOfGateway(NamedTuple):
    """The file for a Gateway, and what the controller says is not in force."""

    text: str
    refused: list[str]


def to_file(documents: list[Json], gateway: str) -> FileOfGateway:
    """Return the file for a Gateway, by `<namespace>/<name>` or, if there is one alone, "". Raises ValueError."""
    world = world_of(documents)
    found = {str(key): fragments for key, fragments in world.gateways.items()}
    if not found:
        raise ValueError("there is no Gateway among the objects")
    if not gateway and len(found) > 1:
        raise ValueError(f"which Gateway: {', '.join(sorted(found))}?")
    chosen = gateway or next(iter(found))
    if chosen not in found:
        raise ValueError(f"no Gateway {chosen}: there are {', '.join(sorted(found))}")
    refused = [f"{one.kind.kind} {one.key}: {message}" for one, message in unmet(world.statuses)]
    file, _ = file_of(documents, world, ObjectKey(*chosen.split("/")))
    return FileOfGateway(write(file), refused)
