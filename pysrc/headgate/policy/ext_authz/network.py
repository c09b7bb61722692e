"""Compiles `networkExtAuthz`: a service decides whether a connection may carry anything."""

from __future__ import annotations

import asyncio
import logging
from typing import Final, Protocol

from headgate.ir.policy.ext_authz import AuthzHttp, ExtAuthz
from headgate.policy.environment import Environment
from headgate.policy.ext_authz.cache import DecisionCache
from headgate.policy.ext_authz.decision import FINE, REFUSED_CONNECTION, AuthzDecision
from headgate.policy.ext_authz.failure import ServiceFailure
from headgate.policy.remote import HttpPolicyService
from headgate_engine.context.request import RequestContext
from headgate_engine.expr.values import EvaluationError
from headgate_engine.link.client import CallError

logger = logging.getLogger("headgate.ext_authz")

PHASE: Final = "network"
REFUSED: Final = "network external authorization failed"
ALLOWED: Final = 200


class ConnectionAuthorizer(Protocol):
    """A protocol of services that decide about connections."""

    async def decide(self, ctx: RequestContext) -> AuthzDecision:
        """Return the decision about a connection; only whether it refuses matters. Raises ServiceFailure."""


class HttpConnections:
    """Asks a service with a GET request, which it answers with 200 for a connection that may go on."""

    def __init__(self, policy: ExtAuthz, env: Environment) -> None:
        self._service = HttpPolicyService(policy.service, env, "ExtAuthz")
        self._timeout_s = policy.timeout_ms / 1000
        http = policy.http or AuthzHttp()
        self._path = None if http.path is None else env.program(http.path, PHASE)
        self._added = [(name, env.program(text, PHASE)) for name, text in http.added]

    async def decide(self, ctx: RequestContext) -> AuthzDecision:
        """Return the decision. Raises ServiceFailure."""
        try:
            path = "/" if self._path is None else self._path.evaluate(ctx)
        except EvaluationError:
            return REFUSED_CONNECTION
        if not isinstance(path, str) or not path.startswith("/"):
            return REFUSED_CONNECTION
        told = [(name, program.header_value(ctx)) for name, program in self._added]
        headers = [(name, value.decode("utf-8", "surrogateescape")) for name, value in told if value is not None]
        try:
            async with asyncio.timeout(self._timeout_s):
                answer = await self._service.request(ctx, "GET", path, headers, None)
                await answer.aclose()
        except TimeoutError:
            raise ServiceFailure(f"no answer in {self._timeout_s:g} s") from None
        except (CallError, ValueError, OSError) as error:
            raise ServiceFailure(str(error) or type(error).__name__) from None
        return FINE if answer.status == ALLOWED else REFUSED_CONNECTION


def _authorizer(policy: ExtAuthz, env: Environment) -> ConnectionAuthorizer:
    if policy.http is not None:
        return HttpConnections(policy, env)
    from headgate.policy.ext_authz.network_grpc import GrpcConnections  # protobuf: 4 MB

    return GrpcConnections(policy, env)


class NetworkCheck:
    """Asks one service about connections, or takes what it has decided before."""

    def __init__(self, policy: ExtAuthz, env: Environment) -> None:
        self._authorizer = _authorizer(policy, env)
        self._name = policy.service.name
        self._allows_failure = policy.failure_status is None
        cache = policy.cache
        self._cache = None
        if cache is not None and cache.keys:
            keys = [env.program(text, PHASE) for text in cache.keys]
            self._cache = DecisionCache(keys, env.program(cache.ttl, PHASE), cache.max_entries)

    async def __call__(self, ctx: RequestContext) -> str | None:
        """Return why a connection is refused, None if it is not."""
        key = None if self._cache is None else self._cache.key(ctx)
        decision: AuthzDecision | None = None if key is None or self._cache is None else self._cache.get(key)
        if decision is None:
            try:
                decision = await self._authorizer.decide(ctx)
            except ServiceFailure as error:
                logger.debug("authorization service failed", extra={"service": self._name, "error": str(error)})
                # One that was to be renewed holds until its end.
                decision = None if key is None or self._cache is None else self._cache.held(key)
                if decision is None:
                    return None if self._allows_failure else f"{REFUSED}: {error}"
            else:
                if key is not None and self._cache is not None:
                    self._cache.put(key, ctx, decision)
        return None if decision.reply is None else REFUSED
