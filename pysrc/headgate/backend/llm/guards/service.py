"""HTTP calls from guards to their services."""

from __future__ import annotations

import asyncio
import json
import random
from typing import Any, Final

from headgate.backend.llm.guards.contract import VERDICTS, GuardFailure, Pairs
from headgate.document.lazy_dataclass import replace
from headgate.ir.policy.cloud_auth import AwsAuth, GcpAuth
from headgate.ir.policy.prompt_guard import GuardService
from headgate.net.authority import own_authority
from headgate.policy.cloud.refresher import CredentialError, CredentialRefresher
from headgate.policy.environment import Environment
from headgate_engine.link.client import CallError, HttpClient
from headgate_engine.llm.translate.writers import dump_json
from headgate_engine.steps.aws_signature import AwsKeys, sign

MAX_ANSWER: Final = 2 * 1024 * 1024
# Prefixes of fields that differ between equal calls with a cloud credential: signatures have a time, tokens change.
SIGNED: Final = ("x-amz-", "authorization")
JSON_TYPE: Final = ("content-type", "application/json")


class GuardServiceClient:
    """One service that guards call with POST."""

    def __init__(self, service: GuardService, env: Environment) -> None:
        self.service = service
        self.clients = [(env.client(place, subtype="Guardrail"), own_authority(place)) for place, _ in service.places]
        self.weights = [float(share) for _, share in service.places]
        if not any(self.weights):
            self.weights = [1.0] * len(self.weights)
        self.fixed = [*service.set, *service.add]
        for key in service.keys:
            value = key.location.prefix + key.key.secret.reveal()
            self.fixed = [(name, old) for name, old in self.fixed if name != key.location.name]
            self.fixed.append((key.location.name, value))
        self.refresher = _refresher(service, env)

    def headers(self, more: Pairs) -> Pairs:
        """Return the headers of a call: content type, `more`, and the configured headers, which take precedence."""
        own = {name for name, _ in self.fixed}
        kind = [] if any(name == JSON_TYPE[0] for name, _ in more) else [JSON_TYPE]
        found = [(name, value) for name, value in [*kind, *more] if name not in own]
        return [(name, value) for name, value in (*found, *self.fixed) if name not in self.service.remove]

    def choose(self) -> tuple[HttpClient, str]:
        """Return the client of a randomly chosen endpoint, and its authority."""
        if not self.clients:
            raise GuardFailure(f"{self.service.name} has no endpoint")
        [found] = random.choices(self.clients, self.weights)
        return found

    async def post(self, path: str, payload: Any) -> Any:
        """Send a call and return the JSON of its response; raises GuardFailure without a 2xx response in JSON."""
        client, authority = self.choose()
        target, body = self.service.prefix + path, encoded(payload)
        headers = await self._authorized(target, authority, self.headers([]), body)
        return await self.call(client, ("POST", target), headers, body)

    async def _authorized(self, target: str, authority: str, headers: Pairs, body: bytes) -> Pairs:
        """Return the headers with the cloud credential, if one is configured; raises GuardFailure without it."""
        if self.refresher is None:
            return headers
        try:
            await self.refresher.wait()
        except CredentialError as error:
            raise GuardFailure(f"{self.service.name}: {error}") from None
        if not self.refresher.held.fresh:
            self.refresher.renew()
        value, cloud = self.refresher.held.value, self.service.cloud
        if isinstance(cloud, AwsAuth):
            assert isinstance(value, AwsKeys)
            assert cloud.region is not None
            assert cloud.service is not None
            return sign(
                "POST", target, authority, headers, body, value, region=cloud.region, service=cloud.service
            )
        assert isinstance(value, bytes)
        kept = [(name, told) for name, told in headers if name != "authorization"]
        return [*kept, ("authorization", f"Bearer {value.decode()}")]

    async def call(
        self, client: HttpClient, line: tuple[str, str], headers: Pairs, body: bytes, authority: str | None = None
    ) -> Any:
        """Send a call and return the JSON of its response; an equal call of an earlier attempt is not repeated.

        `line`: method and path; `authority`: another one than the client's. Raises GuardFailure.
        """
        known, call = VERDICTS.get(), (line, headers, body, authority)
        if known is None:
            return await self._sent(client, call)
        signed = self.service.cloud is not None
        own = tuple(pair for pair in headers if not (signed and pair[0].startswith(SIGNED)))
        question = (self.service.name, line, own, body, authority)
        if question not in known.answers:
            try:
                known.answers[question] = await self._sent(client, call)
            except GuardFailure as failure:
                known.answers[question] = failure
        found = known.answers[question]
        if isinstance(found, GuardFailure):
            raise found
        return found

    async def _sent(self, client: HttpClient, call: tuple[tuple[str, str], Pairs, bytes, str | None]) -> Any:
        line, headers, body, authority = call
        try:
            async with asyncio.timeout(self.service.timeout_ms / 1000):
                response = await client.request(*line, headers, body, authority)
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


def _refresher(service: GuardService, env: Environment) -> CredentialRefresher | None:
    cloud = service.cloud
    if cloud is None:
        return None
    assert env.credentials is not None
    if isinstance(cloud, GcpAuth) and cloud.kind == "idToken" and cloud.audience is None:
        cloud = replace(cloud, audience=f"https://{service.places[0][0].host}")
    return env.credentials().refresher(cloud)


def encoded(payload: Any) -> bytes:
    """Return compact JSON in UTF-8."""
    return dump_json(payload)


def want(value: Any, kind: type, what: str) -> Any:
    """Return the value if it has that type; raises GuardFailure otherwise."""
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise GuardFailure(f"the answer's {what} is no {kind.__name__}")
    return value
