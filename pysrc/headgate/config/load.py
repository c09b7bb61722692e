"""From a source (a path, standard input, a text) to the IR, or all of its faults."""

from __future__ import annotations

import gc
import io
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, TextIO

from headgate.config.check import BAD, Record, check
from headgate.config.context import Context
from headgate.config.shape.root import ROOT
from headgate.config.standalone import Standalone, all_notes, lower
from headgate.document.lazy_dataclass import dataclass, replace
from headgate.document.nodes import DocumentNode, Report
from headgate.document.read import MAX_CHARS, read_document
from headgate.document.regular_file import open_regular, read_regular
from headgate.errors import ConfigErrors, Problem
from headgate.ir.gateway import Gateway
from headgate_engine.lazy_pattern import lazy_pattern

if TYPE_CHECKING:  # loaded by a file that says so
    from headgate.config.resources.stored import StoredSnapshot

STDIN: Final = "<stdin>"
# Read once and never watched.
_STREAMS = lazy_pattern(r"-|/dev/stdin|/dev/fd/\d+|/proc/self/fd/\d+")
_UTF8_BOM: Final = "\ufeff"


@dataclass(frozen=True, slots=True)
class FileSource:
    """A file; `-`, `/dev/stdin`, `/dev/fd/N` and `/proc/self/fd/N` are streams, which are not watched."""

    path: str

    @property
    def is_stream(self) -> bool:
        return _STREAMS.fullmatch(self.path) is not None


@dataclass(frozen=True, slots=True)
class TextSource:
    """A text given inline; `name` stands for it in messages."""

    text: str
    name: str = "--config"


Source = FileSource | TextSource
EMPTY: Final = "the configuration is empty: nothing is served"
# Faults that do not come of something else missing.
SURE: Final = (Problem.VALUE, Problem.FILE, Problem.UNSUPPORTED)


@dataclass(frozen=True, slots=True)
class Loaded:
    """`watched_files` are absolute: the source first if it is a file, then every file it names. `blank`: it had no
    content but comments, not even `{}`. `resources`: what was stored and merged, None where nothing may be.
    """

    gateway: Gateway
    watched_files: tuple[str, ...]
    warnings: tuple[str, ...] = ()
    blank: bool = False
    resources: StoredSnapshot | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """A configuration with what its parts came to. `anchored`: values of the text have names."""

    loaded: Loaded
    standalone: Standalone
    anchored: bool


class UnreadableSource(ConfigErrors):
    """The source itself could not be read; nothing is known about its files."""


class LoadErrors(ConfigErrors):
    """Faults of a source that was read; `watched_files` as in Loaded, so that a repair is noticed. `passing`: what is
    wrong may be over in a moment, without a change of any file.
    """

    passing = False

    def __init__(self, errors: ConfigErrors | Report, watched_files: tuple[str, ...]) -> None:
        super().__init__(errors.errors if isinstance(errors, ConfigErrors) else errors.in_order())
        self.watched_files = watched_files


def _text(source: Source, stdin: TextIO | None) -> tuple[str, str]:
    """Return text and name of a source."""
    if isinstance(source, TextSource):
        return source.text, source.name
    name = STDIN if source.path == "-" else source.path
    report = Report(name)
    try:
        if source.path == "-":
            text = (stdin or sys.stdin).read(MAX_CHARS + 1)
        else:
            with (open(source.path, "rb") if source.is_stream else open_regular(source.path)) as file:
                text = io.TextIOWrapper(file, encoding="utf-8").read(MAX_CHARS + 1)
    except UnicodeDecodeError:
        report.add(Problem.FILE, "", "the configuration is not UTF-8")
    except OSError as error:
        reason = error.strerror or os.strerror(error.errno or 0)
        report.add(Problem.FILE, "", f"cannot read the configuration: {reason}")
    else:
        return text.removeprefix(_UTF8_BOM), name
    raise UnreadableSource(report.errors)


def source_text(source: Source) -> tuple[str, str] | None:
    """Return text and name of a source that can be read again; None of a stream. Raises OSError, UnicodeDecodeError."""
    if isinstance(source, TextSource):
        return source.text, source.name
    if source.is_stream:
        return None
    return read_regular(source.path).decode().removeprefix(_UTF8_BOM), source.path


@contextmanager
def collector_paused() -> Iterator[None]:
    """Keep the cycle collector from walking the growing document again and again: a third of a large load."""
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if running:
            gc.enable()


def is_stream_name(name: str) -> bool:
    """Tell whether the name of a text in messages is that of a stream, which cannot be read again."""
    return name == STDIN or _STREAMS.fullmatch(name) is not None


def load(source: Source, *, environ: Mapping[str, str] | None = None, stdin: TextIO | None = None) -> Loaded:
    """Read, expand, check and resolve a configuration.

    `environ` None means that of the process. Files that the configuration names are read relative to its
    own folder (to the working directory for a stream or a text). Raises UnreadableSource or LoadErrors,
    both ConfigErrors.
    """
    text, context, watched = opened(source, environ, stdin)
    with collector_paused():
        return interpret(text, context, watched).loaded


def opened(
    source: Source, environ: Mapping[str, str] | None = None, stdin: TextIO | None = None
) -> tuple[str, Context, tuple[str, ...]]:
    """Return text, context and watched files of a source; UnreadableSource."""
    variables = os.environ if environ is None else environ
    text, name = _text(source, stdin)
    own = isinstance(source, FileSource) and not source.is_stream
    folder = Path(source.path).parent if own and isinstance(source, FileSource) else Path()
    watched = (os.path.abspath(source.path),) if own and isinstance(source, FileSource) else ()
    return text, Context(Report(name), variables, folder), watched


def load_text(text: str, path: str) -> Loaded:
    """Load a text as if it stood in the file at `path`; LoadErrors."""
    watched = (os.path.abspath(path),)
    with collector_paused():
        return interpret(text, Context(Report(path), os.environ, Path(path).parent), watched).loaded


def _look_further(context: Context, record: Record) -> None:
    """Add the faults that the next step finds in what the checks have left of a document, so that all are told at once.

    What is left has holes: a fault that could come of them is not told, nor is one around a place that is told already.
    """
    told = context.report
    context.report = Report(told.file, unset=told.unset)
    # The next step may rely on what is not there. It stops then: what it found is true all the same.
    with suppress(ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError):
        lower(context, record)
    known = {error.path for error in told.errors}
    around = {path[:end] for path in known for end in range(len(path) + 1) if path[end : end + 1] in ("", ".", "[")}
    found, context.report = context.report, told
    told.first |= found.first
    told.errors += [one for one in found.errors if one.problem in SURE and one.path not in around]


def interpret(text: str, context: Context, watched: tuple[str, ...], *, partial: bool = False) -> Reading:
    """Return what a text says; LoadErrors. `watched`: the file that it stands in, if it does. `partial`: routes are
    left out, so that a policy which reaches none may reach one all the same.
    """
    report = context.report
    try:
        root, anchored = read_document(text, report.file, context.environ, report)
    except ConfigErrors as error:
        raise LoadErrors(error, watched) from None
    if not is_hybrid(root):
        return _interpreted(root, context, watched, SourceText(anchored, _is_blank(text), partial))
    from headgate.config.resources.reading import merge_stored

    merger, snapshot = merge_stored(root, context, watched)
    try:
        reading = _interpreted(root, context, watched, SourceText(anchored, False, partial))
    except LoadErrors as error:
        raise LoadErrors(ConfigErrors(map(merger.told, error.errors)), error.watched_files) from None
    warnings = (*reading.loaded.warnings, *merger.warnings)
    return replace(reading, loaded=replace(reading.loaded, warnings=warnings, resources=snapshot))


def _is_blank(text: str) -> bool:
    """Tell whether a text has nothing but comments."""
    return all(line.lstrip()[:1] in ("", "#") for line in text.splitlines())


def is_hybrid(root: DocumentNode) -> bool:
    """Tell whether a document says `config.storage.mode: hybrid`."""
    node = root
    for key in ("config", "storage", "mode"):
        entry = node.value.get(key) if isinstance(node.value, dict) else None
        if entry is None:
            return False
        node = entry.node
    return node.value in ("hybrid", "Hybrid")


class SourceText(NamedTuple):
    """What is known of a text beside its document: `partial` as in interpret()."""

    anchored: bool
    blank: bool
    partial: bool


def _interpreted(root: DocumentNode, context: Context, watched: tuple[str, ...], text: SourceText) -> Reading:
    """Return what a document says; LoadErrors."""
    report = context.report
    record = check(ROOT, root, report, context.indexes)
    if record is BAD:
        raise LoadErrors(report, watched)
    if report.broken:
        _look_further(context, record)
        raise LoadErrors(report, watched)
    standalone = Standalone(context, record)
    gateway = standalone.gateway()
    if text.blank and watched:
        context.warnings.append(EMPTY)
    notes = [spec.listed.notes for spec in standalone.listed if spec.listed is not None]
    warnings, named, refused, spiffe = all_notes(context.notes, notes, standalone.about_unused())
    files = (*watched, *(path for path in named if path not in watched))
    if not text.partial and not report.errors:
        standalone.targeted.refuse(refused)
    if report.errors:
        raise LoadErrors(report, files)
    if spiffe:
        gateway = replace(gateway, spiffe=True)
    loaded = Loaded(gateway, files, tuple(warnings), blank=text.blank)
    return Reading(loaded, standalone, text.anchored)
