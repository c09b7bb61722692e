"""The first reading of the configuration, and the state of the files that it was read from."""

from __future__ import annotations

import time
from typing import Final, NamedTuple

from headgate.config.load import FileSource, Loaded, LoadErrors
from headgate.config.source_reader import SourceReader
from headgate.server.watch import Fingerprint, fingerprint

# A database of stored resources that is away at a start.
DATABASE_SECONDS: Final = 10.0
DATABASE_PAUSE: Final = 0.25
# How often a file is read again that is being changed.
ATTEMPTS: Final = 5


class FirstLoad(NamedTuple):
    """The configuration that a gateway starts with, and the state of its files as they were read."""

    loaded: Loaded
    files: Fingerprint


def first_load(reader: SourceReader) -> FirstLoad:
    """Return the first configuration. A file that changes between this and the moment when it is watched has another
    state than the one returned. Raises ConfigErrors.
    """
    source = reader.source
    named = [source.path] if isinstance(source, FileSource) and not source.is_stream else []
    for _ in range(ATTEMPTS):
        before = fingerprint(named)
        loaded = _patient_load(reader)
        state = fingerprint(loaded.watched_files)
        if set(before) <= set(state):
            return FirstLoad(loaded, state)
    return FirstLoad(loaded, before)


def _patient_load(reader: SourceReader) -> Loaded:
    """Read the source. Waits a little for a database that is away, as it is when both are started at once."""
    deadline = time.monotonic() + DATABASE_SECONDS
    while True:
        try:
            return reader.load()
        except LoadErrors as error:
            if not error.passing or time.monotonic() > deadline:
                raise
        time.sleep(DATABASE_PAUSE)
