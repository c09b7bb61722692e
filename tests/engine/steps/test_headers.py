"""Static header edits against edits one at a time."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.expr.compile import compile_expression
from headgate_engine.context.headers import hide_headers
from headgate_engine.context.request import make_context
from headgate_engine.plan.step import run_step
from headgate_engine.steps.headers import RequestHeaderStep

# Names that the engine knows, and others of equal length, first and last letter.
NAMES = st.sampled_from(["x-a", "X-A", "x-ba", "x-ca", "accept", "Cookie", "user-agent", "x-long-" + "n" * 100, "authorization"])
VALUES = st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=20)
PAIRS = st.lists(st.tuples(NAMES, VALUES), max_size=12)


@given(PAIRS, PAIRS, PAIRS, st.lists(NAMES, max_size=4))
def test_an_edit_does_what_its_parts_do_one_at_a_time(
    fields: list[tuple[str, str]], added: list[tuple[str, str]], replaced: list[tuple[str, str]], removed: list[str]
) -> None:
    ctx = make_context(headers=fields)
    run_step(RequestHeaderStep(added, replaced, removed), ctx)
    model = make_context(headers=fields).request
    for name, value in added:
        model.add(name.lower(), value)
    for name, value in replaced:
        model.set(name.lower(), value)
    for name in removed:
        model.remove(name)
    assert ctx.request.items() == model.items()


def test_an_edit_can_be_applied_again() -> None:
    ctx, step = make_context(headers=[("a", "1")]), RequestHeaderStep([("b", "2")], [("a", "3")], ["c"])
    for _ in range(3):
        run_step(step, ctx)
    assert ctx.request.items() == [("b", "2"), ("b", "2"), ("b", "2"), ("a", "3")]


def test_what_is_sensitive_may_be_said_after_the_edit_was_made() -> None:
    ctx, step = make_context(), RequestHeaderStep([("x-hidden-later", "secret")])
    hide_headers(["x-hidden-later"])
    run_step(step, ctx)
    shown = compile_expression('request.headers.redacted()["x-hidden-later"]').evaluate(ctx)
    assert (ctx.request.get("x-hidden-later"), shown) == ("secret", "<redacted>")


@pytest.mark.parametrize("pair", [("", "1"), ("a b", "1"), ("a", "1\n"), ("content-length", "1"), ("n" * 65536, "1")])
def test_what_may_not_stand_in_a_field_is_refused(pair: tuple[str, str]) -> None:
    with pytest.raises(ValueError, match="header"):
        RequestHeaderStep([pair])


@pytest.mark.parametrize(
    ("name", "hidden"),
    [
        ("authorization", True), ("proxy-authorization", True), ("cookie", True), ("api-key", True), ("x-api-key", True), ("X-Goog-Api-Key", True),
        ("x-auth-token", True), ("x-amz-security-token", True), ("token", True), ("x-upstream-token", True), ("x-client-secret", True),
        ("secret", True), ("x-db-password", True), ("Mcp-Session-Id", True), ("sec-websocket-protocol", True),
        ("accept", False), ("content-type", False), ("x-keys", False), ("x-tokens", False), ("x-secrets", False), ("n", False),
        ("x-session-id", False), ("x-request-id", False), ("user-agent", False), ("x-password-hint", False),
    ],
)  # fmt: skip
def test_names_of_credentials_are_hidden(name: str, hidden: bool) -> None:
    ctx = make_context(headers=[(name, "value")])
    shown = compile_expression("request.headers.redacted()", "log", {}).evaluate(ctx)
    assert dict(shown.cel_items()) == {name.lower(): "<redacted>" if hidden else "value"}


@pytest.mark.parametrize("name", ["referer", "location", "content-location"])
def test_urls_in_fields_lose_the_credentials_of_their_queries(name: str) -> None:
    ctx = make_context(headers=[(name, "https://a.test/x?token=CANARY&b=1")])
    shown = compile_expression("request.headers.redacted()", "log", {}).evaluate(ctx)
    assert dict(shown.cel_items()) == {name: "https://a.test/x?token=<redacted>&b=1"}
