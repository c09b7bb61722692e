"""Keys of a worker: key sets by source, and virtual keys.

A key set that a new configuration still names keeps its keys.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING

from headgate.ir.endpoint import Endpoint
from headgate.ir.gateway import Gateway
from headgate.ir.policy.document_source import DocumentSource
from headgate.pipeline.pools import Pools
from headgate_engine.link.client import HttpClient
from headgate_engine.link.worker import Worker

if TYPE_CHECKING:
    from headgate.pipeline.virtual_keys import CompiledKeys
    from headgate.policy.key_sets import KeyStore
    from headgate_engine.steps.virtual_key import KeyTable


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


class KeyHolder:
    """The virtual keys of one configuration; most have none. It is no part of the configuration that it belongs to."""

    def __init__(self, worker: Worker, gateway: Gateway, previous: KeyHolder | None) -> None:
        self._worker = worker
        self._keys = gateway.virtual_keys
        self._before = None if previous is None else previous._compiled
        self._compiled: CompiledKeys | None = None

    def compile(self) -> Generator[None, None, None]:
        """Compile the keys. Those that stay keep what they hold of the worker."""
        before, self._before = self._before, None
        if self._keys is None and before is None:
            return
        from headgate.pipeline.virtual_keys import CompiledKeys  # with the first section of them

        self._compiled = CompiledKeys(self._worker.segment, before)
        yield from self._compiled.compile(self._keys)

    def table(self, *, wanted: bool) -> KeyTable | None:
        """Return the keys, None where the configuration has no section of them and the table is not `wanted`.

        A step that wants it keeps it: keys that are made later are in the same table.
        """
        if self._compiled is None and wanted:
            from headgate.pipeline.virtual_keys import CompiledKeys  # with the first policy that wants them

            self._compiled = CompiledKeys(self._worker.segment, None)
        return None if self._compiled is None else self._compiled.table

    def turn(self) -> None:
        """Put the keys in force."""
        if self._compiled is not None:
            self._compiled.turn()
