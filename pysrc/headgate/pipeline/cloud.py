"""The cloud credentials of a configuration, whose modules are loaded for the first one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from headgate_engine.link.client import HttpClient
from headgate_engine.link.worker import Worker

if TYPE_CHECKING:
    from headgate.policy.cloud.store import CredentialStore


class CloudCredentials:
    """Makes the store when it is wanted, with the credentials of the previous configuration.

    `client` returns a client for an endpoint. Policies keep this object: it holds nothing of its configuration else.
    """

    def __init__(
        self, worker: Worker, client: Callable[..., HttpClient], previous: CloudCredentials | None
    ) -> None:
        self._worker = worker
        self._client = client
        self._previous = None if previous is None else previous._store
        self._store: CredentialStore | None = None

    def store(self) -> CredentialStore:
        """Return the store."""
        if self._store is None:
            from headgate.policy.cloud.store import CredentialStore

            self._store = CredentialStore(self._worker.spawn, self._previous)
            self._store.calls.client = self._client
            self._previous = None
        return self._store

    def close_unused(self, current: CloudCredentials) -> None:
        """Close the credentials that `current` has not taken over."""
        current._previous = None
        if self._store is None:
            return
        if current._store is None:
            self._store.close()
        else:
            self._store.close_unused(current._store)

    def close(self) -> None:
        """Close all credentials."""
        if self._store is not None:
            self._store.close()
