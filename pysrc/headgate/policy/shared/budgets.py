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
from headgate.telemetry.spend.budgets import (
    EXPIRE_SECONDS,
    SPARE_PARTS,
    Budget,
    BudgetFailure,
    LeaseAnswer,
    LeaseExpired,
    LeaseQuestion,
    Standing,
)

# How long a server that has lost its memory gives nothing: gateways look for that once a second.
SETTLE_MS: Final = 3000
# How long a window is kept behind its end: clocks of gateways differ.
LATE_MS: Final = 3_600_000
# How long what a gateway has lent is kept behind its last word: as long as the longest window, which is a month.
LENT_MS: Final = 32 * 86_400_000 + LATE_MS
# Numbers of Redis scripts are exact up to this.
MOST: Final = 2**53
EPOCHS: Final = 2**52
# Numbers of an answer in front of those of the questions.
HEAD: Final = 2

# Entries of a gateway that is not heard any more that one call takes back.
MOST_EXPIRED: Final = 64

# KEYS: the epoch, whether it has begun of late, the gateways by when they were heard, what this one has lent by limit
# (with the window's key), then one for each question. ARGV: the epoch that the gateway knows (0: none), a number for a
# new one, how long that gives nothing, whether this gateway was heard before, how long one may be silent, how long its
# entries are kept; then for each question most, floor, least, total, extra, force, back, rejoin, lent, and for how long
# it is kept. Times are in ms. The answer begins with the epoch, and whether the gateway was silent for too long;
# without more, it knew another epoch, or was silent.
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
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local silent = now - tonumber(ARGV[5])
if ARGV[4] == '1' and tonumber(redis.call('ZSCORE', KEYS[3], KEYS[4]) or '0') < silent then
  return {{out[1], 1}}
end
out[2] = 0
redis.call('ZADD', KEYS[3], now, KEYS[4])
for _, gone in ipairs(redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', '(' .. silent, 'LIMIT', 0, 1)) do
  local cursor, entries = '0', {{}}
  repeat
    -- A page has no entries where those of its part of the table have been taken back already.
    cursor, entries = unpack(redis.call('HSCAN', gone, cursor, 'COUNT', {MOST_EXPIRED}))
  until cursor == '0' or #entries > 0
  for j = 1, #entries, 2 do
    local lent, key = string.match(entries[j + 1], '^(%d+) (.*)$')
    local kept = redis.call('PTTL', key)
    if kept > 0 then
      local taken = math.max(tonumber(redis.call('GET', key)) - tonumber(lent), 0)
      redis.call('SET', key, string.format('%.0f', taken), 'PX', kept)
    end
    redis.call('HDEL', gone, entries[j])
  end
  if redis.call('EXISTS', gone) == 0 then redis.call('ZREM', KEYS[3], gone) end
end
local settling = redis.call('EXISTS', KEYS[2]) == 1
local at = 6
for i = 5, #KEYS do
  local a = {{}}
  for j = 1, 10 do a[j] = tonumber(ARGV[at + j]) end
  at = at + 10
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
  local limit = string.match(KEYS[i], '^(.*),')
  if a[9] > 0 then
    redis.call('HSET', KEYS[4], limit, string.format('%.0f ', a[9]) .. KEYS[i])
  else
    redis.call('HDEL', KEYS[4], limit)
  end
  out[#out + 1] = granted
  out[#out + 1] = math.max(most - taken, 0)
end
redis.call('PEXPIRE', KEYS[4], ARGV[6])
return out
"""


class RedisBudgets:
    """The limits at one server."""

    def __init__(self, settings: SharedState, store: RedisStore | None = None) -> None:
        self.place = settings.place
        self._prefix = settings.key_prefix
        self._store = RedisStore(settings, SCRIPT) if store is None else store
        self._epoch = 0
        # What the gateway is called there, and whether it is known by that.
        self._holder = secrets.token_hex(8)
        self._begun = False

    async def ask(self, questions: Sequence[LeaseQuestion]) -> list[LeaseAnswer]:
        """Answer all questions, or none. Raises LeaseExpired, and BudgetFailure: then they may have been answered."""
        found = await self._run(questions)
        if len(found) == HEAD and found[1]:
            raise LeaseExpired("the server does not know this gateway")
        if len(found) != HEAD + 2 * len(questions):
            # What it had is lost, and heard() will tell so: nothing is granted until then.
            return [LeaseAnswer(0, 0)] * len(questions)
        return [LeaseAnswer(granted, left) for granted, left in zip(found[HEAD::2], found[HEAD + 1 :: 2], strict=True)]

    async def _run(self, questions: Sequence[LeaseQuestion]) -> list[int]:
        names = ("budget-epoch", "budget-settling", "budget-gateways", f"budget-lent:{self._holder}")
        keys = [f"{self._prefix}{name}".encode() for name in names]
        fresh = 1 + secrets.randbelow(EPOCHS)
        values = [self._epoch, fresh, SETTLE_MS, int(self._begun), EXPIRE_SECONDS * 1000, LENT_MS]
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
        self._begun = len(found) >= HEAD
        return found

    def _key(self, budget: Budget) -> bytes:
        return f"{self._prefix}budget:{json.dumps(budget[:5])}".encode()

    async def heard(self) -> Standing:
        """Be heard, and tell what the server knows of this gateway. Raises BudgetFailure."""
        known = self._epoch
        found = await self._run([])
        self._epoch = found[0]
        if self._epoch != known and known:
            return Standing.LOST
        if found[1]:
            # Under another name: what was lent under this one is not this gateway's any more.
            self._holder, self._begun = secrets.token_hex(8), False
            return Standing.EXPIRED
        return Standing.KNOWN

    async def aclose(self) -> None:
        """Close the connections."""
        await self._store.aclose()
