"""The state of one conversion from the file to the IR: the report, the environment, the files that were read.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from headgate.config.check import Record
from headgate.document import fields
from headgate.document.lazy_dataclass import dataclass
from headgate.document.nodes import Report, child
from headgate.document.regular_file import read_regular
from headgate.document.secret import Secret
from headgate.errors import Problem
from headgate.ir.endpoint import Endpoint
from headgate.ir.hbone import Hbone
from headgate.ir.policies import BackendPolicies
from headgate.ir.policy.mirror import CopyTarget
from headgate.ir.remote_service import RemoteService
from headgate.ir.secret import SecretRef

if TYPE_CHECKING:
    from headgate.config.resources.stored import StoredSnapshot
    from headgate.expr.custom import CustomFunctions

MAX_FILE_BYTES: Final = 1024 * 1024
# What may be a key in the place of a file's name, and is not quoted.
_LIKE_A_KEY: Final = re.compile("[A-Za-z0-9+/=]{40,}")
Result = TypeVar("Result")


class Directory(Protocol):
    """Looks up the named backends and services of the file for policies."""

    def copies_to(self, target: Record) -> CopyTarget | None:
        """Return where a target reference leads that takes copies of requests; None after a report."""

    def place_of(self, target: fields.ConnectTarget, policies: Record | None) -> tuple[Endpoint, BackendPolicies]:
        """Return where calls of a policy itself go, and what goes with them."""

    def remote_service(self, record: Record, *, grpc: bool = True) -> RemoteService | None:
        """Return the service that a record names, which a policy calls; None after a report."""


@dataclass(slots=True)
class Notes:
    """What was found beside the values while a part of the file was read: the files that it names, in the order of
    their mention, warnings, expressions with their phases, the paths of the targeted policies that hold for it, the
    names of the backends that it refers to, the services that it refers to (`namespace/hostname`, or a host name alone
    that a service may have), and whether it needs the SPIFFE Workload API.
    """

    watched: dict[str, None] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    expressions: dict[tuple[str, str], None] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)
    backends: set[str] = field(default_factory=set)
    services: set[str] = field(default_factory=set)
    spiffe: bool = False

    def add(self, other: Notes) -> None:
        """Add the notes of another part."""
        self.watched.update(other.watched)
        self.warnings += other.warnings
        self.expressions.update(other.expressions)
        self.used |= other.used
        self.backends |= other.backends
        self.services |= other.services
        self.spiffe = self.spiffe or other.spiffe


@dataclass(slots=True)
class Context:
    """`folder` is where relative paths start: that of the configuration file, else the working directory (files that
    are read may be there, too: find_file()). `functions`: those of `config.customFunctions`. `directory`: set before
    policies are read. `notes`: those of the part that is being read. `indexes`: of items that are read without the
    others of their list. `contents`: of the files that were read, None of one that was not there. `phase`: of
    expressions of policies that are being read.
    `has_all_functions`: `config.customFunctions` could be read; if not, nothing is said of functions that are unknown.
    `can_have_keys`: there are virtual keys, or some can be made.
    `has_workload_api`: something says where the SPIFFE Workload API is. `hbone`: what `config.hbone` says.
    `bind_host`: the one address that ports listen on.
    `resources`: stored ones that are merged into the file, instead of those in its database.
    """

    report: Report
    environ: Mapping[str, str]
    folder: Path
    notes: Notes = field(default_factory=Notes)
    functions: CustomFunctions = field(default_factory=dict)
    directory: Directory | None = None
    indexes: Mapping[tuple[int, int], int] = field(default_factory=dict)
    contents: dict[str, bytes | None] = field(default_factory=dict)
    phase: str = "route"
    has_all_functions: bool = True
    bind_host: str | None = None
    has_workload_api: bool = False
    can_have_keys: bool = True
    hbone: Hbone = field(default_factory=Hbone)
    resources: StoredSnapshot | None = None

    @contextmanager
    def reading(self, phase: str) -> Iterator[None]:
        """Read policies whose expressions are of a phase (see headgate.expr.variables)."""
        outer, self.phase = self.phase, phase
        try:
            yield
        finally:
            self.phase = outer

    @property
    def warnings(self) -> list[str]:
        """The warnings about the part that is being read."""
        return self.notes.warnings

    @property
    def watched(self) -> dict[str, None]:
        """The files that the part names."""
        return self.notes.watched

    def noted(self, read: Callable[..., Result], *arguments: Any) -> tuple[Result, Notes]:
        """Call `read` with the arguments. Return its result and its notes, which are not added to the current part."""
        notes = Notes()
        return self.noting(notes, read, *arguments), notes

    def noting(self, notes: Notes, read: Callable[..., Result], *arguments: Any) -> Result:
        """Call `read` with the arguments, and add to these notes instead of those of the current part."""
        outer, self.notes = self.notes, notes
        try:
            return read(*arguments)
        finally:
            self.notes = outer

    def index(self, record: Record, number: int) -> int:
        """Return the index of an item that is number `number` of those that are read."""
        return self.indexes.get((record.node.line, record.node.column), number) if self.indexes else number

    def fault(self, problem: Problem, record: Record, key: str, message: str) -> None:
        """Report a fault of entry `key` of a map, or of the map itself when `key` is empty."""
        path = child(record.path, key) if key else record.path
        self.report.add(problem, path, message, record.at(key))

    def find_file(self, name: str) -> str:
        """Return the absolute path of the file that the configuration calls `name`: beside the configuration file or
        else, if there is none, in the working directory.
        """
        beside = str((self.folder / name).absolute())
        here = os.path.abspath(name)
        return here if not os.path.lexists(beside) and os.path.lexists(here) else beside

    def watch_file(self, name: str) -> str:
        """Return what find_file() does, and watch both places: a file may come later."""
        beside, here = str((self.folder / name).absolute()), os.path.abspath(name)
        found = self.find_file(name)
        for path in dict.fromkeys((beside, here) if found == here or not os.path.lexists(beside) else (beside,)):
            self.watched[path] = None
            if path != found or not os.path.lexists(path):
                self.contents.setdefault(path, None)
        return found

    def read_file(self, record: Record, key: str, name: str) -> tuple[str, bytes] | None:
        """Return absolute path and content of the file `name` of entry `key`, or None after a report."""
        if "\n" in name:
            # Not quoted: who writes a key where its file belongs does not want to read it in a log.
            self.fault(Problem.FILE, record, key, "not a file name but a text of several lines: name a file with it")
            return None
        if not name or "\0" in name:
            self.fault(Problem.FILE, record, key, "not a file name")
            return None
        path = self.watch_file(name)
        content = self.contents.get(path)
        if content is None:
            try:
                content = read_regular(path, MAX_FILE_BYTES + 1)
            except OSError as error:
                reason = error.strerror or os.strerror(error.errno or 0)
                shown = "the file" if _LIKE_A_KEY.fullmatch(name) else repr(name)
                self.fault(Problem.FILE, record, key, f"cannot read {shown}: {reason}")
                return None
            if len(content) > MAX_FILE_BYTES:
                self.fault(Problem.FILE, record, key, f"{name!r} is larger than {MAX_FILE_BYTES} bytes")
                return None
            self.contents[path] = content
        return path, content

    def secret(self, record: Record, key: str, *, lines: bool = False) -> SecretRef | None:
        """Return the secret of entry `key`: inline, or read from `{file: path}`; None when absent or at
        fault. `lines`: it may have several lines (a PEM text, a password file).
        """
        value = record.get(key)
        if isinstance(value, Secret):
            return SecretRef(secret=value)
        if not isinstance(value, Record) or "file" not in value:
            return None
        found = self.read_file(value, "file", value["file"])
        if found is None:
            return None
        path, content = found
        try:
            text = content.decode()
            return SecretRef(secret=Secret(text) if lines else fields.secret(text), file=path)
        except UnicodeDecodeError:
            self.fault(Problem.FILE, value, "file", "the file is not UTF-8")
        except ValueError as error:
            self.fault(Problem.FILE, value, "file", str(error))
        return None
