from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from headgate.net.tasks import spawn
from headgate.policy.cloud import refresher as module
from headgate.policy.cloud.refresher import CredentialError, CredentialRefresher, Fetched


def kept(fetch: Callable[[], Awaitable[Fetched]]) -> CredentialRefresher:
    return CredentialRefresher("it", fetch, spawn)


class Script:
    """Gives what it was told, one after the other; waits for `gate` first."""

    def __init__(self, *told: Any) -> None:
        self.told = list(told)
        self.calls = 0
        self.gate = asyncio.Event()
        self.gate.set()

    async def __call__(self) -> Fetched:
        self.calls += 1
        await self.gate.wait()
        found = self.told.pop(0)
        if isinstance(found, Exception):
            raise found
        assert isinstance(found, Fetched)
        return found


def test_all_who_wait_wait_for_one_fetch() -> None:
    async def main() -> None:
        script = Script(Fetched(b"token", 3600))
        found = kept(script)
        await asyncio.gather(*(found.wait() for _ in range(20)))
        assert (script.calls, found.held.value, found.held.fresh) == (1, b"token", True)
        await found.wait()
        assert script.calls == 1

    asyncio.run(main())


def test_an_old_one_is_used_while_the_next_is_fetched() -> None:
    async def main() -> None:
        script = Script(Fetched(b"one", 3600, 0.0), Fetched(b"two", 3600))
        found = kept(script)
        await found.wait()
        script.gate.clear()
        assert (found.held.fresh, found.held.usable) == (False, True)
        found.renew()
        found.renew()
        await found.wait()                                    # does not wait
        assert found.held.value == b"one"
        script.gate.set()
        for _ in range(10):
            await asyncio.sleep(0)
        assert (script.calls, found.held.value) == (2, b"two")

    asyncio.run(main())


def test_a_failure_leaves_what_there_is_and_is_not_repeated_at_once(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        script = Script(Fetched(b"one", 3600, 0.0), CredentialError("not today"))
        found = kept(script)
        await found.wait()
        for _ in range(5):
            found.renew()
            for _ in range(5):
                await asyncio.sleep(0)
        assert (script.calls, found.held.value, found.held.usable) == (2, b"one", True)

    with caplog.at_level(logging.WARNING):
        asyncio.run(main())
    assert [(one.message, one.__dict__["error"]) for one in caplog.records] == [("cannot get credentials", "not today")]


def test_without_one_requests_are_told_why_and_nobody_is_hammered(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = 1000.0
    monkeypatch.setattr(module.time, "monotonic", lambda: clock)

    async def main() -> None:
        nonlocal clock
        script = Script(CredentialError("no"), CredentialError("no"), Fetched(b"token", 60))
        found = kept(script)
        for calls, seconds in ((1, 0.5), (1, 0.6), (2, 1.9), (2, 0.2)):
            with pytest.raises(CredentialError, match="it: no"):
                await found.wait()
            assert script.calls == calls
            clock += seconds
        await found.wait()
        assert found.held.value == b"token"

    asyncio.run(main())


def test_a_fetch_that_hangs_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WAIT_SECONDS", 0.01)

    async def main() -> None:
        script = Script(Fetched(b"token", 60))
        script.gate.clear()
        found = kept(script)
        with pytest.raises(CredentialError, match="no answer in"):
            await found.wait()
        script.gate.set()
        await found.wait()                                    # the fetch went on
        assert script.calls == 1
        found.close()

    asyncio.run(main())


def test_a_fault_of_ours_is_a_failure_too() -> None:
    async def main() -> None:
        found = kept(Script(RuntimeError("CANARY")))
        with pytest.raises(CredentialError) as told:
            await found.wait()
        assert "CANARY" not in str(told.value)

    asyncio.run(main())


@pytest.mark.parametrize(
    ("fetched", "renew", "end"),
    [
        (Fetched(b"", 3600), 3300, 3590),
        (Fetched(b"", 40), 30, 36),
        (Fetched(b"", 3600, 60), 60, 3590),
        (Fetched(b"", 40, 60), 36, 36),
    ],
)
def test_times(fetched: Fetched, renew: float, end: float) -> None:
    assert fetched.times() == (renew, end)


def test_one_that_has_run_out_when_it_comes_is_none() -> None:
    async def main() -> None:
        with pytest.raises(CredentialError, match="expired already"):
            await kept(Script(Fetched(b"old", 0))).wait()

    asyncio.run(main())
