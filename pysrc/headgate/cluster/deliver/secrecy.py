"""Finds secrets among resources, which must not be sent in plain text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from headgate.cluster.deliver.wire import SentFragment, part_of
from headgate.config.file_view import file_view
from headgate.document.secret import REDACTED
from headgate.errors import ConfigErrors

MAX_KNOWN: Final = 100_000
# How the file has lists that do not stand at its top.
_AROUND: Final = {"listeners": ('{"binds": [{"listeners": [', "]}]}"), "tcpRoutes": ('{"tcpRoutes": [', "]}")}


class SecretFinder:
    """Tells which resources have a secret. The shape of the file says which fields are secrets, as for the admin
    page. What it has looked at is known by its version. Called in threads; a resource may then be looked at twice.
    """

    def __init__(self) -> None:
        self._clean: set[str] = set()

    def first(self, resources: Mapping[str, SentFragment]) -> str:
        """Return the name of a resource with a secret, "" if there is none."""
        if len(self._clean) > MAX_KNOWN:
            self._clean = set()
        for name, resource in resources.items():
            if resource.version in self._clean:
                continue
            if has_secret(resource):
                return name
            self._clean.add(resource.version)
        return ""


def has_secret(resource: SentFragment) -> bool:
    """Tell whether a resource has a secret. One that cannot be read counts as one with a secret."""
    try:
        part = part_of(resource.payload)
        before, after = _AROUND.get(part.place, (f'{{"{part.place}": [', "]}"))
        text = f"{before}{part.value}{after}"
        return REDACTED in repr(file_view(text, ""))
    except (ValueError, ConfigErrors):
        return True
