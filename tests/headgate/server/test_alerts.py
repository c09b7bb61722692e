"""Limits that warn, in the supervisor: taken up without holding its loop."""

from __future__ import annotations

import asyncio
from typing import Any

from headgate.ir.virtual_keys import KeyRecord, UsageLimit, VirtualKeys
from headgate.net.tasks import spawn
from headgate.server.alerts import FRESH_STEP, AlertWatch
from headgate.telemetry.spend.rows import Warned
from headgate_engine.shared.segment import Segment


def test_many_limits_do_not_hold_the_loop() -> None:
    limit = UsageLimit(unit="tokens", window="day", most=100, warn_percent=80)
    records = [KeyRecord(name=str(number), digest=b"", metadata="{}", limits=(limit,)) for number in range(5 * FRESH_STEP)]
    gateway: Any = type("Gateway", (), {"virtual_keys": VirtualKeys(keys=tuple(records))})()

    async def claim(warned: list[Warned]) -> list[Warned]:
        return warned

    async def run() -> int:
        turns = 0

        async def count() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        watch = AlertWatch(Segment.create(state_bytes=8 << 20), claim)
        counting = spawn("count", count())
        await watch.prepare(gateway)
        counting.cancel()
        assert len(watch._limits) == len(records)
        watch.stop()
        return turns

    assert asyncio.run(run()) >= 5
