"""HTTP calls from guards to their services."""

from __future__ import annotations

import asyncio
import json
from typing import Any, Final

from headgate.backend.llm.guards.contract import ORIGIN, VERDICTS, GuardFailure, Pairs
from headgate.ir.policy.prompt_guard import GuardService
from headgate.policy.environment import Environment
from headgate.policy.remote import HttpPolicyService
from headgate_engine.link.client import CallError
from headgate_engine.llm.translate.writers import dump_json

MAX_ANSWER: Final = 2 * 1024 * 1024
JSON_TYPE: Final = ("content-type", "application/json")


class GuardServiceClient:
    """One service that guards call."""

    def __init__(self, service: GuardService, env: Environment) -> None:
        self.service = service
        self._remote = HttpPolicyService(service.remote, env, "Guardrail")

    async def post(self, path: str, payload: Any) -> Any:
        """Send a call and return the JSON of its response; raises GuardFailure without a 2xx response in JSON."""
        return await self.call(("POST", self.service.prefix + path), [], encoded(payload))

    async def call(self, line: tuple[str, str], headers: Pairs, body: bytes, authority: str | None = None) -> Any:
        """Send a call and return the JSON of its response; an equal call of an earlier attempt is not repeated.

        `line`: method and path; `authority`: another one than the service's. Raises GuardFailure.
        """
        if not any(name == JSON_TYPE[0] for name, _ in headers):
            headers = [JSON_TYPE, *headers]
        known, call = VERDICTS.get(), (line, headers, body, authority)
        if known is None:
            return await self._sent(call)
        question = (self.service, line, tuple(headers), body, authority)
        if question not in known.answers:
            try:
                known.answers[question] = await self._sent(call)
            except GuardFailure as failure:
                known.answers[question] = failure
        found = known.answers[question]
        if isinstance(found, GuardFailure):
            raise found
        return found

    async def _sent(self, call: tuple[tuple[str, str], Pairs, bytes, str | None]) -> Any:
        line, headers, body, authority = call
        try:
            async with asyncio.timeout(self.service.timeout_ms / 1000):
                response = await self._remote.request(ORIGIN.get(), *line, headers, body, authority)
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
    """Return compact JSON in UTF-8."""
    return dump_json(payload)


def want(value: Any, kind: type, what: str) -> Any:
    """Return the value if it has that type; raises GuardFailure otherwise."""
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise GuardFailure(f"the answer's {what} is no {kind.__name__}")
    return value
