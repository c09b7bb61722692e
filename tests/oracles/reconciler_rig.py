"""A deployer that runs while a test does, and what it tells."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import TracebackType

from tests.end_to_end.running import PATIENCE

from headgate.cluster.deploy.outcome import Deployed
from headgate.cluster.deploy.reconciler import GatewayReconciler
from headgate.cluster.snapshot import ObjectKey

KEY = ObjectKey("edge", "main")


class RunningDeployer:
    """`made` gets what is to be called when results have changed."""

    def __init__(self, made: Callable[[Callable[[], None]], GatewayReconciler]) -> None:
        self._told = asyncio.Event()
        self.deployer = made(self._told.set)

    async def __aenter__(self) -> RunningDeployer:
        self._work = asyncio.get_running_loop().create_task(self.deployer.run())
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None) -> None:
        self._work.cancel()
        await asyncio.gather(self._work, return_exceptions=True)

    async def result(self, holds: Callable[[Deployed], object] = lambda _: True, key: ObjectKey = KEY) -> Deployed:
        """Wait for a result that holds."""
        async with asyncio.timeout(PATIENCE):
            while True:
                self._told.clear()
                found = self.deployer.results().get(key)
                if found is not None and holds(found):
                    return found
                await self._told.wait()

    async def idle(self) -> None:
        """Wait until nothing is queued and nothing is under way."""
        queue = self.deployer._queue
        async with asyncio.timeout(PATIENCE):
            while True:
                if not queue._waiting and not queue._busy:
                    return
                await asyncio.sleep(0.01)
