"""Stored resources on the way of a configuration: which database they are in, and a change of them as a candidate."""

from __future__ import annotations

from typing import Any

from headgate.config.check import BAD, check
from headgate.config.context import Context
from headgate.config.load import (
    Loaded,
    LoadErrors,
    Source,
    collector_paused,
    interpret,
    is_hybrid,
    is_stream_name,
    opened,
)
from headgate.config.request_log import request_log
from headgate.config.resources import database
from headgate.config.resources.kinds import KINDS, InvalidResource, identity
from headgate.config.resources.merging import Merger, owned_ids
from headgate.config.resources.stored import (
    ResourceChange,
    ResourceConflict,
    ResourcePut,
    StorageFailure,
    StoredSnapshot,
    Written,
    apply,
)
from headgate.config.resources.views import restored
from headgate.config.shape.root import ROOT
from headgate.document.nodes import DocumentNode, MapEntry, Report, plain
from headgate.document.read import read
from headgate.errors import ConfigError, ConfigErrors, Problem
from headgate.ir.request_log import RequestLogStore

AWAY = "the stored resources cannot be read"
ONCE = "hybrid needs a configuration that can be read again: a file, or --config"
NOT_HYBRID = "resources can be stored only with config.storage.mode: hybrid; change the file instead"


class StoreAway(LoadErrors):
    """The database of stored resources cannot be read, and nothing is known of it."""

    passing = True


def merge_stored(root: DocumentNode, context: Context, watched: tuple[str, ...]) -> tuple[Merger, StoredSnapshot]:
    """Merge what is stored into the document of the file, which says that there is something. Raises LoadErrors, of
    which StoreAway is one.

    A file that does not say where it is stored is left alone: its check tells.
    """
    if is_stream_name(context.report.file):
        context.report.add(Problem.VALUE, "config.storage.mode", ONCE, root)
        raise LoadErrors(context.report, watched)
    snapshot = context.resources
    if snapshot is None:
        store = store_of(root, context)
        try:
            snapshot = StoredSnapshot() if store is None else database.read_or_known(store)
        except StorageFailure as error:
            place = root.value["config"] if isinstance(root.value, dict) else root
            context.report.add(Problem.FILE, "config.database", f"{AWAY}: {error}", place)
            raise StoreAway(context.report, watched) from None
    merger = Merger(root, snapshot, context.environ, context.report)
    merger.merge()
    return merger, snapshot


def store_of(root: DocumentNode, context: Context) -> RequestLogStore | None:
    """Return the database that a document names; None where it names none, or is wrong about it."""
    process = root.value.get("config") if isinstance(root.value, dict) else None
    held = process.node.value if process is not None else None
    entry = held.get("database") if isinstance(held, dict) else None
    if entry is None:
        return None
    alone = DocumentNode({"config": MapEntry(1, 1, DocumentNode({"database": entry}, 1, 1))}, 1, 1)
    apart = Context(Report(context.report.file), context.environ, context.folder)
    record = check(ROOT, alone, apart.report)
    if record is BAD or apart.report.errors:
        return None
    found = request_log(apart, record["config"])
    return None if apart.report.errors else found


def candidate(source: Source, change: ResourceChange, now_us: int) -> tuple[Loaded, Written, RequestLogStore]:
    """Return the configuration with a change, what has to be written for it, and where. `now_us`: since 1970.

    Raises ConfigErrors if it does not load, StorageFailure, InvalidResource, ResourceConflict and ResourceMissing.
    """
    text, context, watched = opened(source)
    root = read(text, context.report.file, context.environ)
    store = store_of(root, context) if is_hybrid(root) else None
    if store is None:
        raise ResourceConflict(NOT_HYBRID)
    before = database.read(store)
    written = apply(before, _unmarked(change, before), owned_ids(plain(root)), now_us)
    context.resources = written.after
    with collector_paused():
        try:
            loaded = interpret(text, context, watched).loaded
        except ConfigErrors as error:
            raise _blaming(error, before, context, text, watched) from None
    return loaded, written, store


def _blaming(
    error: ConfigErrors, before: StoredSnapshot, context: Context, text: str, watched: tuple[str, ...]
) -> ConfigErrors:
    """Return the errors, with a word on top if the configuration did not load without the change either."""
    earlier = Context(Report(context.report.file), context.environ, context.folder, resources=before)
    try:
        interpret(text, earlier, watched)
    except ConfigErrors:
        note = "the configuration does not load without this change either"
        return ConfigErrors((ConfigError(Problem.CONFLICT, "", note, context.report.file), *error.errors))
    return error


def _unmarked(change: ResourceChange, before: StoredSnapshot) -> ResourceChange:
    """Return the change with what `<redacted>` stands for. Raises InvalidResource where that is not certain."""
    kind = KINDS[change.kind]
    known: dict[str, Any] = {one.id: one for one in before.resources if one.kind == change.kind}

    def unmarked(put: ResourcePut) -> ResourcePut:
        name = put.id if put.id is not None else identity(kind, put.value)
        held = known.get(name) if name is not None else None
        lost, value = restored(kind, put.value, None if held is None else held.value())
        if lost:
            raise InvalidResource("; ".join(lost))
        return put._replace(value=value)

    return change._replace(puts=tuple(unmarked(put) for put in change.puts))
