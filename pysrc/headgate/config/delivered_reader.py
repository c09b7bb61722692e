"""Reads a file together with the parts that are delivered to it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from headgate.config.context import Context
from headgate.config.delivered import DeliveredParts, Key, bind_host
from headgate.config.load import Loaded, LoadErrors, Source, load, opened
from headgate.config.source_reader import SourceReader
from headgate.document.nodes import plain
from headgate.document.read import read
from headgate.errors import ConfigErrors

# Each time faults are found, other parts may turn out to depend on what is left out.
MAX_ROUNDS: Final = 8
# Of faults that are looked for at once: one part with many must not hide the others.
MAX_FAULTS: Final = 10_000
MAX_MESSAGE: Final = 500
_PLACE: Final = re.compile(r" \([^()]*\)$")


class DeliveredReader(SourceReader):
    """Reads one source with parts. Parts with a fault are refused, and the others are read."""

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        self.parts = DeliveredParts()
        self._lines: list[Key] = []
        # The text of the file, and what it says.
        self._file: tuple[str, dict[str, Any]] = ("", {})

    def load(self, environ: Mapping[str, str] | None = None) -> Loaded:
        """Read as SourceReader.load() does. LoadErrors: the faults are in the file, or cannot be assigned to a part."""
        for _ in range(MAX_ROUNDS):
            try:
                return super().load(environ)
            except LoadErrors as error:
                faults = self._faults(error)
                if not faults:
                    # Told with the places of the file, if they are its own.
                    load(self.source, environ=environ)
                    raise
                self.parts.refuse(faults)
        return super().load(environ)

    def _opened(self, environ: Mapping[str, str] | None) -> tuple[str, Context, tuple[str, ...]]:
        written, context, watched = opened(self.source, environ)
        known, file = self._file
        if written != known or not known:
            try:
                found = plain(read(written, context.report.file))
            except ConfigErrors as error:
                raise LoadErrors(error, watched) from None
            if not isinstance(found, dict):
                return written, context, watched
            self._file = (written, found)
            file = found
        text, self._lines = self.parts.text(file)
        context.report.limit = MAX_FAULTS
        context.bind_host = bind_host(context.environ)
        return text, context, watched

    def _faults(self, errors: LoadErrors) -> dict[Key, str]:
        """Return the faults of each part."""
        found: dict[Key, str] = {}
        for error in errors.errors:
            key = self._lines[error.line] if 0 < error.line < len(self._lines) else ""
            if key and key not in found:
                # Where the part stands is not known to those who wrote it.
                own = re.compile(rf"^.*?\b{re.escape(self.parts.wanted[key].place)}\[\d+\](?:\.|$)")
                path = own.sub("", error.path)
                message = f"{path}: {error.message}" if path else error.message
                found[key] = _PLACE.sub("", message)[:MAX_MESSAGE]
        return found
