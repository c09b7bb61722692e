"""Why a configuration is not in force."""

from __future__ import annotations

from collections.abc import Iterable


class ReloadFailed(Exception):
    """A configuration could not be applied. The argument is a list of reasons; `ports`: those that cannot be opened."""

    def __init__(self, why: str, ports: Iterable[int] = ()) -> None:
        super().__init__(why)
        self.ports = frozenset(ports)


class WorkerLost(ReloadFailed):
    """A worker died or hung during the reload. The configuration is not to blame."""
