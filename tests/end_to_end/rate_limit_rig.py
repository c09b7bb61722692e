"""A rate-limit service for tests that speaks Envoy's protocol."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
from envoy.service.ratelimit.v3.rls_pb2 import RateLimitRequest, RateLimitResponse
from google.protobuf.json_format import MessageToDict, ParseDict


class Counting:
    """`react` gets a RateLimitRequest as JSON and returns a RateLimitResponse as JSON. `seen`: what it was asked. `credentials`: it
    speaks TLS.
    """

    def __init__(self, credentials: grpc.ServerCredentials | None = None) -> None:
        self.react: Callable[[dict[str, Any]], dict[str, Any]] = lambda question: {"overall_code": "OK"}
        self.seen: list[dict[str, Any]] = []
        self._changed = threading.Condition()
        self.server = grpc.server(ThreadPoolExecutor(16))
        handler = grpc.unary_unary_rpc_method_handler(self._count)
        name = "envoy.service.ratelimit.v3.RateLimitService"
        service = grpc.method_handlers_generic_handler(name, {"ShouldRateLimit": handler})
        self.server.add_generic_rpc_handlers((service,))
        place = "127.0.0.1:0"
        plain = credentials is None
        self.port = self.server.add_insecure_port(place) if plain else self.server.add_secure_port(place, credentials)
        self.server.start()

    def _count(self, text: bytes, context: Any) -> bytes:
        question = MessageToDict(RateLimitRequest.FromString(text), preserving_proto_field_name=True)
        with self._changed:
            self.seen.append(question)
            self._changed.notify_all()
        return ParseDict(self.react(question), RateLimitResponse()).SerializeToString()

    def asked(self, count: int) -> list[dict[str, Any]]:
        """Wait until it was asked so often."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.seen) >= count, 60), self.seen
            return list(self.seen)

    def stop(self) -> None:
        self.server.stop(None).wait()


def hits(question: dict[str, Any]) -> list[str | None]:
    """What is added for each descriptor; None: the service's default."""
    return [one.get("hits_addend") for one in question["descriptors"]]


def entries(question: dict[str, Any]) -> list[dict[str, str]]:
    return [{entry["key"]: entry["value"] for entry in one["entries"]} for one in question["descriptors"]]
