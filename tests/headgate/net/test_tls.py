"""Contexts for connections to backends: shared, and completed in a thread before the first connection."""

from __future__ import annotations

import asyncio
import threading
import weakref

import pytest

from headgate.ir.listener import Listener
from headgate.ir.tls import BackendTls
from headgate.net.tasks import spawn
from headgate.net.tls import SniSelector, shared_context
from headgate_engine.link.protocols import PASSTHROUGH
from headgate_engine.tls.context import TlsContext


class Store:
    """Notes in which threads the system's trust store is read."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, failures: int = 0) -> None:
        self.threads: list[int] = []
        self.failures = failures
        monkeypatch.setattr("headgate.net.tls.read_system_roots", self._read)

    def _read(self) -> None:
        self.threads.append(threading.get_ident())
        if len(self.threads) <= self.failures:
            raise OSError("no store")


def test_a_port_that_only_passes_tls_on_refuses_no_name() -> None:
    def selector(*protocols: str) -> SniSelector:
        made = [
            Listener(key=one, gateway_name="g", gateway_namespace="n", name=one, protocol=one, hostname=f"{one}.test".lower())  # type: ignore[arg-type]
            for one in protocols
        ]  # fmt: skip
        steps = SniSelector.steps(made)
        while True:
            try:
                next(steps)
            except StopIteration as end:
                found: SniSelector = end.value
                return found

    passing = selector("TLS")
    assert {name: passing.find(name) for name in ("tls.test", "other.test", None)} == dict.fromkeys(("tls.test", "other.test", None), PASSTHROUGH)
    assert selector("TCP").find("other.test") is None


def test_backends_share_a_context_unless_more_than_their_hosts_differs() -> None:
    held = shared_context(BackendTls(hostname="a.test"))
    assert shared_context(BackendTls(hostname="b.test")) is held
    settings = (BackendTls(insecure=True), BackendTls(alpn=("h2",)), BackendTls(insecure_host=True))
    others = [shared_context(one) for one in settings]
    assert len({id(one) for one in (held, *others)}) == 4
    gone = weakref.ref(held)
    del held, others
    assert gone() is None, "nobody holds it"


def test_the_store_is_read_once_and_beside_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(monkeypatch)
    held = shared_context(BackendTls(alpn=("once",)))
    assert not store.threads, "before anybody connects"

    async def connect() -> list[TlsContext]:
        return list(await asyncio.gather(*(held.ready() for _ in range(20))))

    found = asyncio.run(connect())
    assert len(set(map(id, found))) == 1
    assert found[0].verified
    assert not found[0].lacks_roots
    assert len(store.threads) == 1
    assert store.threads[0] != threading.get_ident()
    asyncio.run(connect())
    assert len(store.threads) == 1


def test_whoever_leaves_does_not_stop_the_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(monkeypatch)
    held = shared_context(BackendTls(alpn=("leaves",)))

    async def connect() -> None:
        first = spawn("first", held.ready())
        await asyncio.sleep(0)
        first.cancel()
        await held.ready()
        assert first.cancelled()

    asyncio.run(connect())
    assert len(store.threads) == 1


def test_a_store_that_cannot_be_read_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(monkeypatch, failures=1)
    held = shared_context(BackendTls(alpn=("again",)))
    with pytest.raises(OSError, match="no store"):
        asyncio.run(held.ready())
    asyncio.run(held.ready())
    assert len(store.threads) == 2


@pytest.mark.parametrize("insecure_host", [False, True])
def test_what_needs_no_store_reads_none(monkeypatch: pytest.MonkeyPatch, insecure_host: bool) -> None:
    store = Store(monkeypatch)
    context = asyncio.run(shared_context(BackendTls(insecure=True, insecure_host=insecure_host)).ready())
    assert not context.verified
    assert not store.threads
