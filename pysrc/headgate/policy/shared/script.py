"""What a Redis server does with the questions of replicas: one script, which runs as a whole or not at all.

Source: https://redis.io/docs/latest/develop/programmability/eval-intro/.
"""

from __future__ import annotations

from typing import Final, NamedTuple

# Takes n tokens or none. Leases up to n, at most half of what is there. Charges n, whatever is there (below 0: gives
# back). Only returns tokens of a lease.
TAKE, LEASE, CHARGE, RETURN = range(4)

# ARGV[1] is a number for buckets that begin, then 11 numbers for each key, as Question has them.
#
# A bucket begins full and is refilled in whole intervals of the server's clock. `room` is how many tokens of leases of
# the last window may still come back: as many as the refill would have had room for, had they been there. `seq` counts
# the states of a bucket. A replica that knows a state of a window that is not over, which the server does not know, has
# met a server that lost its memory: what other replicas have taken in that window is unknown, and the bucket is empty
# until that window ends.
SCRIPT: Final = """
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local out, at, refused = {}, 1, false
for i = 1, #KEYS do
  local a = {}
  for j = 1, 11 do a[j] = tonumber(ARGV[at + j]) end
  at = at + 11
  local most, fill, every, op, n = a[1], a[2], a[3], a[4], a[5]
  local back, back_tick, epoch_known, seq_known, rest, joined = a[6], a[7], a[8], a[9], a[10], a[11]
  local h = redis.call('HMGET', KEYS[i], 'level', 'tick', 'born', 'room', 'seq', 'epoch')
  local level, tick, born = tonumber(h[1]), tonumber(h[2]), tonumber(h[3])
  local room, seq, epoch = tonumber(h[4]), tonumber(h[5]), tonumber(h[6])
  local begins = not level
  if begins then
    level, tick, born, room, seq, epoch = most, 0, now, 0, 0, tonumber(ARGV[1])
  end
  local ticks = math.floor((now - born) / every)
  if ticks > tick then
    level = math.min(most, level + (ticks - tick) * fill)
    room = (ticks == tick + 1) and (most - level) or 0
    tick = ticks
  end
  if epoch_known >= 0 and rest > 0 and (epoch ~= epoch_known or seq < seq_known) then
    level, room, epoch, seq = 0, 0, tonumber(ARGV[1]), math.max(seq, seq_known)
    if begins or born + (tick + 1) * every - now < rest then born, tick = now + rest - every, 0 end
  end
  if back > 0 and epoch_known == epoch then
    if back_tick == tick then
      level = math.min(most, level + back)
    elseif back_tick == tick - 1 then
      local fits = math.min(back, room)
      level, room = level + fits, room - fits
    end
  end
  if joined == 0 then refused = false end
  local granted = 0
  if refused then
    granted = -1
  elseif op == 0 then
    if n >= 1 and n <= level then granted = n else refused = true end
    level = level - granted
  elseif op == 1 then
    granted = math.min(n, math.ceil(level / 2))
    level = level - granted
  elseif op == 2 then
    level = math.max(0, math.min(most, level - n))
  end
  seq = seq + 1
  redis.call('HSET', KEYS[i], 'level', level, 'tick', tick, 'born', born, 'room', room, 'seq', seq, 'epoch', epoch)
  if fill > 0 then
    local full = math.ceil((math.ceil((most - level) / fill) + 2) * every / 1000)
    redis.call('PEXPIRE', KEYS[i], math.min(full, 4503599627370496))
  end
  local answer = {granted, level, tick, math.floor(born + (tick + 1) * every - now), seq, epoch}
  for j = 1, 6 do out[#out + 1] = answer[j] end
end
return out
"""
ANSWER: Final = 6


class Question(NamedTuple):
    """One entry of a call. `every_us`: the refill interval. `epoch`, `seq`, `rest_us`: what is known of the bucket
    (epoch -1: nothing), and the microseconds until that window ends. `joined`: not asked if the one before it, of the
    same request, was refused.
    """

    most: int
    fill: int
    every_us: int
    operation: int
    number: int
    back: int
    back_tick: int
    epoch: int
    seq: int
    rest_us: int
    joined: int
