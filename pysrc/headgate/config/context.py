"""What the way from the file to the IR carries along: the report, the environment, the files that were
read.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from headgate.config.check import Record
from headgate.document import fields
from headgate.document.lazy_dataclass import dataclass
from headgate.document.nodes import Report, child
from headgate.document.secret import Secret
from headgate.errors import Problem
from headgate.ir.endpoint import Endpoint
from headgate.ir.policies import BackendPolicies
from headgate.ir.policy.mirror import CopyTarget
from headgate.ir.secret import SecretRef

if TYPE_CHECKING:
    from headgate.expr.custom import CustomFunctions

MAX_FILE_BYTES: Final = 1024 * 1024


class Directory(Protocol):
    """Knows the named backends and services of the file, for policies that name one."""

    def copies_to(self, target: Record) -> CopyTarget | None:
        """Return where a target reference leads that takes copies of requests; None after a report."""

    def place_of(self, target: fields.Target, policies: Record | None) -> tuple[Endpoint, BackendPolicies]:
        """Return where calls of a policy itself go, and what goes with them."""


@dataclass(slots=True)
class Context:
    """`folder` is where relative paths start: that of the configuration file, else the working directory.
    `functions`: those of `config.customFunctions`. `directory`: set before policies are read. `expressions`: those
    that were checked, with their phases.
    """

    report: Report
    environ: Mapping[str, str]
    folder: Path
    watched: dict[str, None] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    functions: CustomFunctions = field(default_factory=dict)
    directory: Directory | None = None
    expressions: set[tuple[str, str]] = field(default_factory=set)
    _contents: dict[str, bytes] = field(default_factory=dict)

    def fault(self, problem: Problem, record: Record, key: str, message: str) -> None:
        """Report a fault of entry `key` of a map, or of the map itself when `key` is empty."""
        path = child(record.path, key) if key else record.path
        self.report.add(problem, path, message, record.at(key))

    def read_file(self, record: Record, key: str, name: str) -> tuple[str, bytes] | None:
        """Return absolute path and content of the file `name` of entry `key`, or None after a report."""
        if "\n" in name:
            # Not quoted: who writes a key where its file belongs does not want to read it in a log.
            self.fault(Problem.FILE, record, key, "not a file name but a text of several lines: name a file with it")
            return None
        path = str((self.folder / name).absolute()) if name else ""
        if not name or "\0" in name:
            self.fault(Problem.FILE, record, key, "not a file name")
            return None
        # Watched even when it cannot be read: it may appear later.
        self.watched[path] = None
        if path not in self._contents:
            try:
                with open(path, "rb") as stream:
                    content = stream.read(MAX_FILE_BYTES + 1)
            except OSError as error:
                reason = error.strerror or os.strerror(error.errno or 0)
                self.fault(Problem.FILE, record, key, f"cannot read {name!r}: {reason}")
                return None
            if len(content) > MAX_FILE_BYTES:
                self.fault(Problem.FILE, record, key, f"{name!r} is larger than {MAX_FILE_BYTES} bytes")
                return None
            self._contents[path] = content
        return path, self._contents[path]

    def content(self, path: str) -> bytes | None:
        """Return what was read from a file, None where that is not known."""
        return self._contents.get(path)

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
