"""Calls of guards to services."""

from __future__ import annotations

import asyncio
import json
import random
from typing import Any, Final

from headgate.backend.llm.guards.contract import GuardFailure, Pairs
from headgate.ir.policy.prompt_guard import GuardService
from headgate.net.authority import own_authority
from headgate.policy.environment import Environment
from headgate_engine.link.client import CallError, HttpClient

MAX_ANSWER: Final = 2 * 1024 * 1024
JSON_TYPE: Final = ("content-type", "application/json")


class Service:
    """One service that guards ask by POST."""

    def __init__(self, service: GuardService, env: Environment) -> None:
        self.service = service
        self.clients = [(env.client(place), own_authority(place)) for place, _ in service.places]
        self.weights = [float(share) for _, share in service.places]
        if not any(self.weights):
            self.weights = [1.0] * len(self.weights)
        self.fixed = [*service.set, *service.add]
        for key in service.keys:
            value = key.location.prefix + key.key.secret.reveal()
            self.fixed = [(name, old) for name, old in self.fixed if name != key.location.name]
            self.fixed.append((key.location.name, value))

    def headers(self, more: Pairs) -> Pairs:
        """Return the headers of a call: content type, those given, then what the configuration sets."""
        own = {name for name, _ in self.fixed}
        kind = [] if any(name == JSON_TYPE[0] for name, _ in more) else [JSON_TYPE]
        found = [(name, value) for name, value in [*kind, *more] if name not in own]
        return [(name, value) for name, value in (*found, *self.fixed) if name not in self.service.remove]

    def choose(self) -> tuple[HttpClient, str]:
        """Return the client of one place, and its authority."""
        if not self.clients:
            raise GuardFailure(f"{self.service.name} has no endpoint")
        [found] = random.choices(self.clients, self.weights)
        return found

    async def post(self, path: str, payload: Any) -> Any:
        """Return the JSON that a call brings; GuardFailure for anything but a 2xx answer with JSON."""
        client, _ = self.choose()
        return await self.call(client, ("POST", self.service.prefix + path), self.headers([]), encoded(payload))

    async def call(self, client: HttpClient, line: tuple[str, str], headers: Pairs, body: bytes) -> Any:
        """Send one call and return its JSON. line: method and path."""
        try:
            async with asyncio.timeout(self.service.timeout_ms / 1000):
                response = await client.request(*line, headers, body)
                try:
                    answer = await response.read(MAX_ANSWER)
                finally:
                    await response.aclose()
        except (CallError, TimeoutError, ValueError, OSError) as error:
            reason = str(error) or type(error).__name__
            raise GuardFailure(f"{self.service.name}: {reason}") from None
        if not 200 <= response.status < 300:
            raise GuardFailure(f"{self.service.name}: status {response.status}")
        try:
            return json.loads(answer)
        except (ValueError, RecursionError):
            raise GuardFailure(f"{self.service.name}: the answer is no JSON") from None


def encoded(payload: Any) -> bytes:
    """Return JSON without blanks, as UTF-8."""
    return json.dumps(payload, ensure_ascii=False, separators=(",", ":")).encode()


def want(value: Any, kind: type, what: str) -> Any:
    """Return a value of that type; GuardFailure for any other."""
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise GuardFailure(f"the answer's {what} is no {kind.__name__}")
    return value
