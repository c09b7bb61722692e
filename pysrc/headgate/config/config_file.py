"""The configuration file as something that is written: checked by a full load, replaced at once, with a backup."""

from __future__ import annotations

import hashlib
from typing import Any, Final

from headgate.config.load import Loaded, load_text
from headgate.config.redaction import restored_text, shown_text
from headgate.document.lazy_dataclass import dataclass
from headgate.document.replace import replace_file
from headgate.document.write import write

BACKUP_SUFFIX: Final = ".bak"
SCHEMA_START: Final = "# yaml-language-server: $schema="
DEFAULT_SCHEMA: Final = f"{SCHEMA_START}config.schema.json"


class Changed(Exception):
    """The file is not the one that was edited."""


@dataclass(frozen=True, slots=True)
class Held:
    """The file as it is. `revision` changes with every byte of it."""

    text: str
    revision: str


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """The file at `path`. Methods read and write files and load configurations: they belong into a thread."""

    path: str

    def read(self) -> Held:
        """Return the file; raises OSError or UnicodeDecodeError."""
        with open(self.path, "rb") as file:
            data = file.read()
        return Held(data.decode().removeprefix("\ufeff"), hashlib.sha256(data).hexdigest()[:32])

    def shown(self) -> Held:
        """Return the file without its secrets; as read(), and ConfigErrors."""
        held = self.read()
        return Held(shown_text(held.text, self.path), held.revision)

    def check(self, text: str) -> tuple[str, Held, Loaded]:
        """Return what would be written in place of what, and what that comes to. ConfigErrors: it does not load."""
        held = self.read()
        whole = restored_text(text, held.text, self.path)
        return whole, held, load_text(whole, self.path)

    def change(self, text: str, revision: str | None = None) -> str:
        """Write the text, its marks replaced by what they stand for; return the new revision.

        `revision` None: whatever the file is now is replaced. Raises ConfigErrors (it does not load), Changed, OSError.
        """
        whole, held, _ = self.check(text)
        if revision is not None and revision != held.revision:
            raise Changed

        def unchanged() -> None:
            if self.read().revision != held.revision:
                raise Changed

        if whole != held.text:
            with open(self.path, "rb") as file:
                old = file.read()
            data = whole.encode()
            replace_file(self.path + BACKUP_SUFFIX, old, like=self.path)
            replace_file(self.path, data, unchanged)
            return hashlib.sha256(data).hexdigest()[:32]
        return held.revision

    def text_of(self, document: Any) -> str:
        """Return the YAML of a document with the schema line of the file, else with ours."""
        try:
            held = self.read().text
        except (OSError, UnicodeDecodeError):
            held = ""
        line = next((one for one in held.splitlines() if one.startswith(SCHEMA_START)), DEFAULT_SCHEMA)
        return f"{line}\n{write(document)}"
