"""Leases of the limits of virtual keys, from the Redis server that gateways share.

One script answers all questions of a call, so that two gateways never see the same part of a limit. A server that has
lost its memory begins another epoch. Gateways that knew the one before tell what they hold, and for some seconds nobody
gets anything: what others have not told yet is unknown.

Source: https://redis.io/docs/latest/develop/programmability/eval-intro/.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Sequence
from typing import Final

from headgate.ir.shared_state import SharedState
from headgate.net.redis_store import RedisStore, StoreFailure
from headgate.telemetry.spend.budgets import SPARE_PARTS, Budget, BudgetFailure, LeaseAnswer, LeaseQuestion

# How long a server that has lost its memory gives nothing: gateways look for that once a second.
SETTLE_MS: Final = 3000
# How long a window is kept behind its end: clocks of gateways differ.
LATE_MS: Final = 3_600_000
# Numbers of Redis scripts are exact up to this.
MOST: Final = 2**53
EPOCHS: Final = 2**52

# KEYS: the epoch, whether it has begun of late, then one for each question. ARGV: the epoch that the gateway knows (0:
# none), a number for a new one, how long that gives nothing; then for each question most, floor, least, total, extra,
# force, back, rejoin, and for how long it is kept. The answer begins with the epoch; without more, the gateway knew
# another one.
SCRIPT: Final = f"""
local known, fresh, settle = tonumber(ARGV[1]), ARGV[2], ARGV[3]
local epoch = redis.call('GET', KEYS[1])
if not epoch then
  epoch = fresh
  redis.call('SET', KEYS[1], epoch)
end
local out = {{tonumber(epoch)}}
if known ~= 0 and known ~= out[1] then
  redis.call('SET', KEYS[2], 1, 'PX', settle, 'NX')
  return out
end
local settling = redis.call('EXISTS', KEYS[2]) == 1
local at = 3
for i = 3, #KEYS do
  local a = {{}}
  for j = 1, 9 do a[j] = tonumber(ARGV[at + j]) end
  at = at + 9
  local most, floor, least, total, extra, force, back, rejoin = a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8]
  local taken = tonumber(redis.call('GET', KEYS[i]) or '0')
  taken = math.max(taken - back, floor) + rejoin
  local left, granted = most - taken, 0
  if not settling then
    if total <= left then
      granted = total + math.min(extra, math.floor((left - total) / {SPARE_PARTS}))
    elseif least <= left then
      granted = left
    end
  end
  granted = math.max(granted, force)
  taken = taken + granted
  redis.call('SET', KEYS[i], string.format('%.0f', taken), 'PX', ARGV[at])
  out[#out + 1] = granted
  out[#out + 1] = math.max(most - taken, 0)
end
return out
"""


class RedisBudgets:
    """The limits at one server."""

    def __init__(self, settings: SharedState, store: RedisStore | None = None) -> None:
        self.place = settings.place
        self._prefix = settings.key_prefix
        self._store = RedisStore(settings, SCRIPT) if store is None else store
        self._epoch = 0

    async def ask(self, questions: Sequence[LeaseQuestion]) -> list[LeaseAnswer]:
        """Answer all questions, or none. Raises BudgetFailure: then they may have been answered."""
        found = await self._run(questions)
        if len(found) != 1 + 2 * len(questions):
            # What it had is lost, and lost() will tell so: nothing is granted until then.
            return [LeaseAnswer(0, 0)] * len(questions)
        return [LeaseAnswer(granted, left) for granted, left in zip(found[1::2], found[2::2], strict=True)]

    async def _run(self, questions: Sequence[LeaseQuestion]) -> list[int]:
        keys = [f"{self._prefix}budget-epoch".encode(), f"{self._prefix}budget-settling".encode()]
        values = [self._epoch, 1 + secrets.randbelow(EPOCHS), SETTLE_MS]
        now_ms = time.time_ns() // 10**6
        for one in questions:
            keys.append(self._key(one.budget))
            kept_ms = max(one.budget.end_s * 1000 - now_ms, 0) + LATE_MS
            values += [*(min(amount, MOST) for amount in one[1:]), kept_ms]
        try:
            found = await self._store.run(keys, values)
        except StoreFailure as error:
            raise BudgetFailure(str(error)) from None
        if not found or self._epoch == 0:
            self._epoch = found[0] if found else 0
        return found

    def _key(self, budget: Budget) -> bytes:
        return f"{self._prefix}budget:{json.dumps(budget[:5])}".encode()

    async def lost(self) -> bool:
        """Tell whether the server has lost its memory since it was asked last. Raises BudgetFailure."""
        known = self._epoch
        if known == 0:
            return False
        found = await self._run([])
        self._epoch = found[0]
        return self._epoch != known

    async def aclose(self) -> None:
        """Close the connections."""
        await self._store.aclose()
