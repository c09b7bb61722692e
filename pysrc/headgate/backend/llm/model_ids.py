"""The models that a provider has: asked for when a list has a pattern that leads to it, and kept for a while."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Any, Final

from headgate.ir.model import LlmModel
from headgate.net.tasks import spawn
from headgate.policy.environment import Environment
from headgate_engine.link.client import CallError, HttpClient
from headgate_engine.llm.translate.readers import Garbage, load_json

logger = logging.getLogger("headgate.llm")

# How long a list is used, in seconds, and how long nobody asks again behind a failure.
FRESH_S: Final = 300.0
FAILED_S: Final = 30.0
TIMEOUT_S: Final = 3.0
# Of a list, in bytes and in models; what is beyond is not listed.
MAX_BODY: Final = 2 * 1024 * 1024
MAX_IDS: Final = 2000
MAX_ID: Final = 256
ANTHROPIC: Final = ("/v1/models?limit=1000", (("anthropic-version", "2023-06-01"),))
GEMINI: Final = "/v1beta/models?pageSize=1000"
# Families whose lists are known; those of clouds need signed requests to other hosts.
FAMILIES: Final = ("openai", "anthropic", "gemini", "custom")

Headers = tuple[tuple[str, str], ...]


class ProviderModels:
    """The ids of one provider's models. `ids` is empty until it was asked, and where it cannot say.

    `target` is the path of its list, `clock` a monotonic clock in seconds.
    """

    def __init__(
        self, client: HttpClient, target: str, headers: Headers, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.ids: tuple[str, ...] = ()
        self._client = client
        self._target = target
        self._headers = headers
        self._clock = clock
        self._until: float | None = None
        self._asking: asyncio.Task[None] | None = None

    @property
    def due(self) -> bool:
        """True if the provider has to be asked before `ids` is used."""
        return self._until is None or self._clock() >= self._until

    async def refresh(self) -> None:
        """Ask the provider, unless somebody does, and wait for the answer. Old ids stay where it cannot say.

        The question goes on when who waits is cancelled: others may wait for it, too.
        """
        if self._asking is None:
            self._asking = spawn("models of a provider", self._refreshed())
        await asyncio.shield(self._asking)

    async def _refreshed(self) -> None:
        fresh = FAILED_S
        try:
            self.ids = await asyncio.wait_for(self._ask(), TIMEOUT_S)
            fresh = FRESH_S
        except (CallError, ValueError, TimeoutError) as error:
            logger.info("a provider does not list its models", extra={"error": str(error) or type(error).__name__})
        finally:
            self._until = self._clock() + fresh
            self._asking = None

    async def _ask(self) -> tuple[str, ...]:
        answer = await self._client.request("GET", self._target, self._headers)
        try:
            body = await answer.read(MAX_BODY)
        finally:
            await answer.aclose()
        if answer.status != 200:
            raise ValueError(f"status {answer.status}")
        return ids_in(body)


def ids_in(body: bytes) -> tuple[str, ...]:
    """Return the ids in a list of models of OpenAI, Anthropic or Google. Raises ValueError for anything else."""
    try:
        found: Any = load_json(body)
    except Garbage as error:
        raise ValueError(str(error)) from None
    if isinstance(found, dict):
        found = found.get("data", found.get("models"))
    if not isinstance(found, list):
        raise ValueError("no list of models")
    names = [one.get("id") or one.get("name") for one in found[:MAX_IDS] if isinstance(one, dict)]
    kept = (name.removeprefix("models/") for name in names if isinstance(name, str) and 0 < len(name) <= MAX_ID)
    return tuple(dict.fromkeys(kept))


def model_ids(model: LlmModel, env: Environment) -> ProviderModels | None:
    """Return what asks for the ids behind a pattern, None for a name, and for providers that cannot be asked."""
    provider = model.provider
    auth = model.policies.auth
    key = None if auth is None else auth.fixed_header
    if (
        "*" not in model.pattern
        or model.pinned_model is not None
        or provider.family not in FAMILIES
        or provider.path_override is not None
        or (auth is not None and auth.main is not None and key is None)
    ):
        return None
    headers: Headers = (("accept", "application/json"),)
    target = f"{provider.path_prefix}/models"
    if provider.family == "anthropic":
        target, more = ANTHROPIC
        headers += more
    elif provider.family == "gemini":
        target = GEMINI
    if key is not None:
        secret = key.key.secret.reveal_bytes().decode("latin-1")
        headers += (_credential(provider.family, key.location.name, key.location.prefix, secret),)
    return ProviderModels(env.client(provider.endpoint, subtype="Llm"), target, headers)


def _credential(family: str, name: str, prefix: str, secret: str) -> tuple[str, str]:
    """Return the header field of the key, where the vendor expects it (see headgate.backend.llm.credentials)."""
    bearer = name == "authorization"
    if family == "anthropic" and bearer and not secret.startswith("sk-ant-oat"):
        return "x-api-key", secret
    if family == "gemini" and bearer and secret.startswith("AIza"):
        return "x-goog-api-key", secret
    return name, prefix + secret
