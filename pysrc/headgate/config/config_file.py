"""Writes the configuration file: checks it by a full load, replaces it atomically, and keeps a backup."""

from __future__ import annotations

import hashlib
from typing import Any, Final

from headgate.config.load import Loaded, load_text
from headgate.config.redaction import restored_text, shown_text
from headgate.document.lazy_dataclass import dataclass
from headgate.document.regular_file import read_regular
from headgate.document.replace import replace_file
from headgate.document.write import write
from headgate.errors import ConfigErrors

BACKUP_SUFFIX: Final = ".bak"
SCHEMA_START: Final = "# yaml-language-server: $schema="
DEFAULT_SCHEMA: Final = f"{SCHEMA_START}config.schema.json"


class Changed(Exception):
    """The file has changed since it was read for editing."""


class DropsEverything(Exception):
    """The new text serves nothing, where the old one served something."""


@dataclass(frozen=True, slots=True)
class Held:
    """The current file. `revision` is a digest of its content."""

    text: str
    revision: str


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """The file at `path`. Methods read and write files and load configurations, so call them in a thread."""

    path: str

    def read(self) -> Held:
        """Return the file. Raises OSError or UnicodeDecodeError."""
        data = read_regular(self.path)
        return Held(data.decode().removeprefix("\ufeff"), hashlib.sha256(data).hexdigest()[:32])

    def shown(self) -> Held:
        """Return the file without its secrets. Raises ConfigErrors, OSError or UnicodeDecodeError."""
        held = self.read()
        return Held(shown_text(held.text, self.path), held.revision)

    def check(self, text: str) -> tuple[str, Held, Loaded]:
        """Return the current and the new text, and the configuration that the new text gives. Raises ConfigErrors if it
        does not load."""
        held = self.read()
        whole = restored_text(text, held.text, self.path)
        return whole, held, load_text(whole, self.path)

    def change(self, text: str, revision: str | None = None, *, may_drop: bool = False) -> str:
        """Write the text, with `<redacted>` marks replaced by the secrets that they stand for. Return the new revision.

        With `revision` None, replaces the file whatever its content. Raises ConfigErrors if the text does not load,
        Changed, DropsEverything unless it `may_drop` all that is served, or OSError.
        """
        whole, held, loaded = self.check(text)
        if revision is not None and revision != held.revision:
            raise Changed
        if not may_drop and not _serves(loaded) and self._served(held):
            raise DropsEverything

        def unchanged() -> None:
            if self.read().revision != held.revision:
                raise Changed

        if whole != held.text:
            old = read_regular(self.path)
            data = whole.encode()
            replace_file(self.path + BACKUP_SUFFIX, old, like=self.path)
            replace_file(self.path, data, unchanged)
            return hashlib.sha256(data).hexdigest()[:32]
        return held.revision

    def _served(self, held: Held) -> bool:
        try:
            return _serves(load_text(held.text, self.path))
        except ConfigErrors:
            return True  # what a broken file was meant to serve is not known

    def text_of(self, document: Any) -> str:
        """Return the YAML of a document, with the schema line of the file or else the default one."""
        try:
            held = self.read().text
        except (OSError, UnicodeDecodeError):
            held = ""
        line = next((one for one in held.splitlines() if one.startswith(SCHEMA_START)), DEFAULT_SCHEMA)
        return f"{line}\n{write(document)}"


def _serves(loaded: Loaded) -> bool:
    """Return True if a request can get anywhere."""
    return any(listener.routes for bind in loaded.gateway.binds for listener in bind.listeners)
