"""Ids of requests."""

from __future__ import annotations

import uuid

import pytest

from headgate_engine.context.request import RequestContext, make_context
from headgate_engine.link.request_id import MAX_LENGTH, identify, usable

OFF, GENERATE, TRUST = range(3)


def context(*ids: str) -> RequestContext:
    return make_context(headers=[("X-Request-Id", one) for one in ids])


def sent_on(ctx: RequestContext) -> list[str]:
    return ctx.request.get_list("x-request-id")


def test_none_is_made_where_ids_are_off() -> None:
    ctx = context("mine")
    assert identify(ctx, OFF) is None
    assert sent_on(ctx) == ["mine"]


@pytest.mark.parametrize("ids", [(), ("mine",), ("a", "b")])
def test_a_made_one_replaces_those_of_the_client(ids: tuple[str, ...]) -> None:
    ctx = context(*ids)
    found = identify(ctx, GENERATE)
    assert found is not None
    assert uuid.UUID(found.decode()).version == 4
    assert sent_on(ctx) == [found.decode()]


def test_a_clients_is_kept_where_it_is_trusted() -> None:
    ctx = context("mine-1")
    assert identify(ctx, TRUST) == b"mine-1"
    assert sent_on(ctx) == ["mine-1"]


@pytest.mark.parametrize("ids", [(), ("a", "b"), ("",), ("with space",), ("x" * (MAX_LENGTH + 1),)])
def test_an_unusable_one_is_replaced_even_so(ids: tuple[str, ...]) -> None:
    ctx = context(*ids)
    found = identify(ctx, TRUST)
    assert found is not None
    assert len(found) == 36
    assert sent_on(ctx) == [found.decode()]


def test_what_is_usable() -> None:
    assert usable(b"~!x")
    assert usable(b"x" * MAX_LENGTH)
    assert not any(usable(bad) for bad in (b"", b" ", b"a\tb", b"\xff", b"\x7f", b"x" * (MAX_LENGTH + 1)))
