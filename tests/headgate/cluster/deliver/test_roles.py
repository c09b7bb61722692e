"""Who a data plane is."""

from __future__ import annotations

import asyncio

import pytest
from tests.end_to_end.delivery_rig import FakeApi

from headgate.cluster.calls import ApiError
from headgate.cluster.deliver.roles import KEPT_S, MAX_KEPT, TokenReviews, Unauthenticated, account_name, role_of
from headgate.cluster.snapshot import ObjectKey


def test_long_names_of_gateways_are_cut() -> None:
    assert account_name("web") == "web"
    assert account_name("a" * 63) == "a" * 63
    # The first 50 characters without a dash at their end, a dash, 12 digits of the SHA-256.
    assert account_name("a" * 64) == "a" * 50 + "-ffe054fe7ae0"
    assert account_name("a" * 49 + "-" + "b" * 30).startswith("a" * 49 + "-")
    assert len(account_name("a" * 49 + "-" + "b" * 30)) == 49 + 13


def test_a_role_is_namespace_and_name() -> None:
    assert role_of("shop~web") == ObjectKey("shop", "web")
    for text in ("", "shop", "shop~", "~web", "shop~web~x", "shop~we/b", "Shop~web", "shop~web\n"):
        assert role_of(text) is None


def test_a_token_is_asked_about_once_and_then_kept_for_a_while() -> None:
    api = FakeApi({"t": "system:serviceaccount:shop:web"})
    now = [0.0]
    reviews = TokenReviews(api, "us", lambda: now[0])
    for _ in range(3):
        assert asyncio.run(reviews.account("Bearer t")) == ObjectKey("shop", "web")
    assert api.reviews == 1
    now[0] = KEPT_S
    asyncio.run(reviews.account("bearer t"))
    assert api.reviews == 2
    # Refused from when the API server says so.
    now[0] = 2 * KEPT_S
    api.accounts.clear()
    with pytest.raises(Unauthenticated, match="not valid"):
        asyncio.run(reviews.account("Bearer t"))


def test_tokens_that_are_kept_have_a_bound() -> None:
    api = FakeApi({f"t{number}": f"system:serviceaccount:shop:n{number}" for number in range(MAX_KEPT + 1)})

    async def ask() -> None:
        reviews = TokenReviews(api, "us", lambda: 0.0)
        for number in range(MAX_KEPT + 1):
            await reviews.account(f"Bearer t{number}")
        await reviews.account(f"Bearer t{MAX_KEPT}")
        assert api.reviews == MAX_KEPT + 1
        await reviews.account("Bearer t0")
        assert api.reviews == MAX_KEPT + 2

    asyncio.run(ask())


@pytest.mark.parametrize("user", ["admin", "system:serviceaccount:shop", "system:serviceaccount:shop:web:x", ""])
def test_other_users_are_refused(user: str) -> None:
    with pytest.raises(Unauthenticated, match="not that of a service account"):
        asyncio.run(TokenReviews(FakeApi({"t": user}), "us").account("Bearer t"))


@pytest.mark.parametrize("text", ["", "Bearer", "Bearer ", "Basic t", "t", "Bearer " + "t" * 20_000])
def test_only_bearer_tokens_are_asked_about(text: str) -> None:
    api = FakeApi({"t": "system:serviceaccount:shop:web"})
    with pytest.raises(Unauthenticated, match="bearer token"):
        asyncio.run(TokenReviews(api, "us").account(text))
    assert api.reviews == 0


def test_a_token_for_somebody_else_is_refused_and_a_silent_api_server_is_an_error() -> None:
    class Other(FakeApi):
        async def create(self, path: str, document: dict[str, object]) -> dict[str, object]:
            return {"status": {"authenticated": True, "user": {"username": "system:serviceaccount:a:b"}, "audiences": ["them"]}}

    with pytest.raises(Unauthenticated, match="audience us"):
        asyncio.run(TokenReviews(Other({}), "us").account("Bearer t"))
    api = FakeApi({})
    api.failing = True
    with pytest.raises(ApiError):
        asyncio.run(TokenReviews(api, "us").account("Bearer t"))
