"""Who a data plane says that it is, and whether its service account is that of its Gateway."""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable
from typing import Any, Final

from headgate.cluster.calls import ApiCalls, ApiError
from headgate.cluster.snapshot import ObjectKey

LONGEST_NAME: Final = 63
_HEAD: Final = 50
_HASH_DIGITS: Final = 12
_ROLE: Final = re.compile(r"([a-z0-9][a-z0-9.-]{0,252})~([a-z0-9][a-z0-9.-]{0,252})")
_ACCOUNT: Final = re.compile(r"system:serviceaccount:([^:]+):([^:]+)")
REVIEWS: Final = "/apis/authentication.k8s.io/v1/tokenreviews"
# How long the API server's word for a token is good, and for how many tokens it is kept.
KEPT_S: Final = 30.0
MAX_KEPT: Final = 1024
MAX_TOKEN: Final = 16 * 1024


def account_name(gateway: str) -> str:
    """Return the name of the objects that run a Gateway, its service account among them."""
    if len(gateway) <= LONGEST_NAME:
        return gateway
    digest = hashlib.sha256(gateway.encode()).hexdigest()[:_HASH_DIGITS]
    return f"{gateway[:_HEAD].rstrip('-')}-{digest}"


def role_of(text: str) -> ObjectKey | None:
    """Return namespace and account name of a role, `<namespace>~<name>`; None if it is none."""
    found = _ROLE.fullmatch(text)
    return None if found is None else ObjectKey(found[1], found[2])


class Unauthenticated(Exception):
    """A token is missing, or not good. The argument says why, without the token."""


class TokenReviews:
    """Asks the API server who has a token (TokenReview). What it vouches for is kept for KEPT_S seconds."""

    def __init__(self, calls: ApiCalls, audience: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._calls = calls
        self._audience = audience
        self._clock = clock
        self._kept: dict[bytes, tuple[float, ObjectKey]] = {}

    async def account(self, authorization: str) -> ObjectKey:
        """Return the service account that `Bearer <token>` belongs to. Raises Unauthenticated, and ApiError without an
        answer.
        """
        kind, _, token = authorization.partition(" ")
        token = token.strip()
        if kind.lower() != "bearer" or not token or len(token) > MAX_TOKEN:
            raise Unauthenticated("a bearer token is required")
        name = hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()
        until, account = self._kept.get(name, (0.0, None))
        if account is not None and self._clock() < until:
            return account
        account = await self._reviewed(token)
        self._kept.pop(name, None)
        while len(self._kept) >= MAX_KEPT:
            del self._kept[next(iter(self._kept))]
        self._kept[name] = (self._clock() + KEPT_S, account)
        return account

    async def _reviewed(self, token: str) -> ObjectKey:
        review = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenReview",
            "spec": {"token": token, "audiences": [self._audience]},
        }
        try:
            answer = await self._calls.create(REVIEWS, review)
        except ApiError as error:
            if error.status in (400, 422):  # not the form of a token
                raise Unauthenticated("the token is not valid") from None
            raise
        status: dict[str, Any] = answer.get("status") or {}
        if not status.get("authenticated"):
            raise Unauthenticated("the token is not valid")
        if self._audience not in (status.get("audiences") or ()):
            raise Unauthenticated(f"the token is not for the audience {self._audience}")
        found = _ACCOUNT.fullmatch((status.get("user") or {}).get("username") or "")
        if found is None:
            raise Unauthenticated("the token is not that of a service account")
        return ObjectKey(found[1], found[2])
