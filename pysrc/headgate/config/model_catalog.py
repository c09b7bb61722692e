"""`config.modelCatalog` and MODEL_CATALOG_PATHS to one catalog."""

from __future__ import annotations

import json
import os
from typing import Any, Final

from headgate.config.check import Record
from headgate.config.context import Context
from headgate.dialect.llm import catalog
from headgate.dialect.llm.catalog import Catalog
from headgate.document.nodes import child
from headgate.document.regular_file import read_regular
from headgate.errors import Problem
from headgate.ir.price_catalog import PriceCatalog

VARIABLE: Final = "MODEL_CATALOG_PATHS"
# What is known of all models of all providers is about two megabytes.
MAX_BYTES: Final = 32 * 1024 * 1024
# Faults that are told of one document.
MAX_FAULTS: Final = 20


class _Sources:
    """Reads sources one after the other; a file that is not there is passed over."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.found: list[Catalog] = []
        self.files: list[str] = []
        self.base: str | None = None

    def text(self, text: bytes | str, path: str, place: Any) -> None:
        """Take a document. Faults are reported at `path`."""
        try:
            value = json.loads(text)
        except (ValueError, RecursionError) as error:
            self.context.report.add(Problem.VALUE, path, f"not a JSON document: {error}", place)
            return
        self.value(value, path, place)

    def value(self, value: object, path: str, place: Any) -> None:
        """Take what a document says."""
        faults: list[tuple[str, str]] = []
        found = catalog.read(value, lambda where, text: faults.append((where, text)))
        for where, text in faults[:MAX_FAULTS]:
            self.context.report.add(Problem.VALUE, f"{path}: {where}" if where else path, text, place)
        self.found.append(found)

    def file(self, name: str, path: str, place: Any, *, in_file: bool) -> None:
        """Take a file; it is watched in any case, as it may come later. `in_file`: the configuration names it."""
        if not name or "\0" in name:
            self.context.report.add(Problem.FILE, path, "not a file name", place)
            return
        if not in_file:
            full = os.path.abspath(name)
            self.context.watched[full] = None
        else:
            full = self.context.watch_file(name)
        self.base = self.base or full
        try:
            text = read_regular(full, MAX_BYTES + 1)
        except FileNotFoundError:
            self.context.contents[full] = None
            self.context.warnings.append(f"{path}: no cost catalog {name!r}")
            return
        except OSError as error:
            reason = error.strerror or os.strerror(error.errno or 0)
            self.context.report.add(Problem.FILE, path, f"cannot read {name!r}: {reason}", place)
            return
        if len(text) > MAX_BYTES:
            self.context.report.add(Problem.FILE, path, f"{name!r} is larger than {MAX_BYTES} bytes", place)
            return
        self.context.contents[full] = text
        self.files.append(full)
        self.text(text, f"{path}: {name}", place)


def _plain(value: Any) -> Any:
    """Return a checked value as the JSON it was."""
    if isinstance(value, Record):
        return {name: _plain(value[name]) for name in value}
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, list) else value


def parse(context: Context, process: Record) -> PriceCatalog | None:
    """Return the merged catalog; None when no source is configured."""
    sources = _Sources(context)
    names = context.environ.get(VARIABLE)
    if names:
        for name in names.split(","):
            sources.file(name.strip(), f"environment variable {VARIABLE}", None, in_file=False)
    else:
        records = process.records("modelCatalog")
        if not records:
            return None
        for record in records:
            if "file" in record:
                sources.file(record["file"], child(record.path, "file"), record.at("file"), in_file=True)
                continue
            inline, path, place = record["inline"], child(record.path, "inline"), record.at("inline")
            if isinstance(inline, str):
                sources.text(inline, path, place)
            else:
                sources.value(_plain(inline), path, place)
    if not sources.found:
        return PriceCatalog(document=None, base=sources.base)
    merged: Catalog = {}
    for one in sources.found:
        merged = catalog.merge(merged, one)
    text = catalog.compact(merged)
    return PriceCatalog(document=text, version=catalog.version_of(text), files=tuple(sources.files), base=sources.base)
