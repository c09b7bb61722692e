"""Tokens that a key set has verified: for whom they count, how long, and how many."""

from __future__ import annotations

from typing import Any

import pytest

from headgate_drivers.requests import bytes_kept
from headgate_engine.context.request import Reply, RequestContext, make_context
from headgate_engine.plan.step import CONTINUE_VERDICT, run_step
from headgate_engine.steps.identity import IdentityStep, JwtStep
from headgate_engine.steps.location import CredentialLocation
from headgate_engine.steps.verified import VerifiedTokens

BAD = Reply(401)


class Policy:
    """A step that verifies what no key set remembers, and how often it had to."""

    def __init__(self, *trusted: tuple[VerifiedTokens, object]) -> None:
        self.asked = 0
        self.step = JwtStep("jwtAuth", CredentialLocation("header", "authorization", "Bearer "), "strict", self.verify, BAD, BAD)
        self.step.trust(trusted)

    def verify(self, _step: IdentityStep, _ctx: RequestContext, _token: bytes) -> Reply | None:
        self.asked += 1
        return BAD

    def knows(self, token: str = "t") -> bool:
        context = make_context(headers=(("authorization", f"Bearer {token}"),))
        asked = self.asked
        verdict = run_step(self.step, context)
        assert (verdict == CONTINUE_VERDICT) == (self.asked == asked) == (context.jwt is not None)
        return self.asked == asked


def test_policies_with_the_same_checks_share_what_a_key_set_has_verified() -> None:
    tokens, checks, others = VerifiedTokens(), object(), object()
    first, second, stricter = Policy((tokens, checks)), Policy((tokens, checks)), Policy((tokens, others))
    assert not first.knows()
    tokens.remember(b"t", {"sub": "ada"}, checks, 60)
    assert first.knows()
    assert second.knows()
    # The signature is good there as well, and only the claims must be looked at.
    assert not stricter.knows()
    assert tokens.claims(b"t") == {"sub": "ada"}
    tokens.remember(b"t", {"sub": "ada"}, others, 60)
    assert stricter.knows()
    assert first.knows()
    tokens.clear()
    assert not first.knows()
    assert tokens.claims(b"t") is None


def test_a_key_set_of_another_provider_does_not_count() -> None:
    one, other, checks = VerifiedTokens(), VerifiedTokens(), object()
    one.remember(b"t", {}, checks, 60)
    assert not Policy((other, checks)).knows()
    assert Policy((other, checks), (one, checks)).knows()


def test_a_token_is_forgotten_when_it_expires() -> None:
    tokens, checks = VerifiedTokens(), object()
    for seconds in (0.0, -1.0, float("nan")):
        tokens.remember(b"t", {}, checks, seconds)
    assert len(tokens) == 0
    tokens.remember(b"t", {}, checks, 1e-9)
    assert not Policy((tokens, checks)).knows()
    assert (len(tokens), bytes_kept(tokens)) == (0, 0)
    # Nothing that is noted later makes it last longer.
    tokens.remember(b"u", {}, checks, 1e-9)
    assert tokens.claims(b"u") is None


def test_the_oldest_are_forgotten_when_there_are_too_many() -> None:
    tokens, checks = VerifiedTokens(), object()
    for number in range(16_385):
        tokens.remember(b"%d" % number, {}, checks, 60)
    assert len(tokens) == 16_385 - 4097
    assert tokens.claims(b"4096") is None
    assert tokens.claims(b"4097") == {}
    assert tokens.claims(b"16384") == {}


def test_there_are_not_too_many_bytes_of_them() -> None:
    tokens, checks = VerifiedTokens(), object()
    for number in range(5000):
        tokens.remember(b"%08d" % number + bytes(8 * 1024), {}, checks, 60)
        assert bytes_kept(tokens) <= 32 * 1024 * 1024
    assert bytes_kept(tokens) == len(tokens) * (8 + 8 * 1024)
    tokens.clear()
    assert bytes_kept(tokens) == 0


def test_checks_of_one_token_have_a_bound() -> None:
    tokens, all_checks = VerifiedTokens(), [object() for _ in range(40)]
    for checks in all_checks:
        tokens.remember(b"t", {}, checks, 60)
    assert [Policy((tokens, checks)).knows() for checks in all_checks] == [False] * 24 + [True] * 16


@pytest.mark.parametrize("bad", [None, 5, object()])
def test_wrong_types_are_refused(bad: Any) -> None:
    tokens = VerifiedTokens()
    with pytest.raises(TypeError):
        tokens.claims(bad)
    with pytest.raises(TypeError):
        tokens.remember(bad, {}, bad, 1)
    with pytest.raises(TypeError):
        tokens.remember(b"t", bad, 1, 1)
    with pytest.raises(TypeError):
        Policy().step.trust(((bad, 1),))
