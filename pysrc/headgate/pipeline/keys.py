"""Key sets of a worker by source. A key set that a new configuration still names keeps its keys."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.ir.endpoint import Endpoint
from headgate.ir.policy.document_source import DocumentSource
from headgate.pipeline.pools import Pools
from headgate_engine.link.client import HttpClient
from headgate_engine.link.worker import Worker

if TYPE_CHECKING:
    from headgate.policy.key_sets import KeyStore


class KeyStores:
    """The stores of one configuration."""

    def __init__(self, worker: Worker, pools: Pools, previous: KeyStores | None) -> None:
        self._worker = worker
        self._pools = pools
        self._previous = {} if previous is None else previous.by_source
        self._by_place = {source.place: store for source, store in self._previous.items() if source.place is not None}
        self.by_source: dict[DocumentSource, KeyStore] = {}

    def get(self, source: DocumentSource) -> KeyStore:
        """Return the store of a source. A remote store begins to fetch its keys."""
        found = self.by_source.get(source)
        if found is None:
            found = self._previous.get(source)
            if found is None:
                calls = self._pools.calls("Policy", "Http")
                clients = [HttpClient(self._pools.get(one), one.authority or "", calls) for one in _endpoints(source)]
                from headgate.policy.key_sets import KeyStore  # with the policies that want keys

                found = KeyStore(source, clients, self._worker.spawn)
                if (before := self._by_place.get(source.place or "")) is not None:
                    # The same service with other endpoints: its keys are good until the new ones are there.
                    found.keys = before.keys
                found.start()
            self.by_source[source] = found
        else:
            for one in _endpoints(source):
                self._pools.get(one)
        return found

    def close_unused(self, current: KeyStores) -> None:
        """Close the stores that `current` has not taken over."""
        current._previous = {}
        current._by_place = {}
        for source, store in self.by_source.items():
            if current.by_source.get(source) is not store:
                store.close()

    def close(self) -> None:
        """End all at shutdown."""
        for store in self.by_source.values():
            store.close()


def _endpoints(source: DocumentSource) -> tuple[Endpoint, ...]:
    return () if source.endpoint is None else (source.endpoint, *source.others)
