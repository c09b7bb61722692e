"""Rate limits in the header fields of each vendor."""

from __future__ import annotations

import pytest

from headgate.dialect.llm.rate_limits import MOST_SECONDS, Limit, carried, fields, wait_of

NOW = 1_700_000_000.0
OPENAI = {"x-ratelimit-limit-requests": "60", "x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "1m30s",
          "x-ratelimit-limit-tokens": "150000", "x-ratelimit-reset-tokens": "120ms"}  # fmt: skip
ANTHROPIC = {"anthropic-ratelimit-requests-limit": "60", "anthropic-ratelimit-requests-remaining": "0",
             "anthropic-ratelimit-requests-reset": "2023-11-14T22:14:50Z", "anthropic-ratelimit-tokens-limit": "150000",
             "anthropic-ratelimit-tokens-reset": "2023-11-14T22:13:21Z"}  # fmt: skip


def text(found: tuple[tuple[bytes, bytes], ...]) -> dict[str, str]:
    return {name.decode(): value.decode() for name, value in found}


@pytest.mark.parametrize(("seconds", "told"), [(0, "0s"), (59, "59s"), (90, "1m30s"), (3600, "1h0m0s"), (7325, "2h2m5s")])
def test_times_as_openai_writes_them(seconds: int, told: str) -> None:
    found = text(fields("completions", [Limit("requests", 1, 0, seconds)], NOW))
    assert found == {"x-ratelimit-limit-requests": "1", "x-ratelimit-remaining-requests": "0",
                     "x-ratelimit-reset-requests": told}  # fmt: skip


@pytest.mark.parametrize("client", ["messages", "count_tokens"])
def test_fields_of_anthropic(client: str) -> None:
    found = text(fields(client, [Limit("tokens", 9, None, 90)], NOW))
    assert found == {"anthropic-ratelimit-tokens-limit": "9", "anthropic-ratelimit-tokens-reset": "2023-11-14T22:14:50Z"}


@pytest.mark.parametrize(
    ("field", "seconds"),
    [(None, 0), ("", 0), ("3", 3), (" 90 ", 90), ("-1", 0), ("1.5", 0), ("Wed, 21 Oct 2026 07:28:00 GMT", 0), ("\u0663", 0),
     ("9" * 15, MOST_SECONDS), ("9" * 16, 0)],
)  # fmt: skip
def test_seconds_to_wait(field: str | None, seconds: int) -> None:
    assert wait_of(field) == seconds


def test_google_has_no_fields() -> None:
    assert fields("gemini", [Limit("requests", 1, 0, 5)], NOW) == ()


def test_a_provider_s_fields_are_told_in_the_client_s_way() -> None:
    assert text(carried("messages", "completions", OPENAI.get, NOW)) == ANTHROPIC
    told = text(carried("responses", "messages", ANTHROPIC.get, NOW))
    assert told == {**OPENAI, "x-ratelimit-reset-tokens": "1s"}


@pytest.mark.parametrize(("client", "upstream"), [("messages", "messages"), ("responses", "completions")])
def test_a_provider_of_the_client_s_vendor_has_told_them_already(client: str, upstream: str) -> None:
    assert carried(client, upstream, {**OPENAI, **ANTHROPIC}.get, NOW) == ()


@pytest.mark.parametrize("reset", ["", "soon", "9" * 40 + "s", "1x", "-5s", "9999999h", "2999-01-01T00:00:00Z", "٣s"])
def test_fields_that_say_nothing_are_left_out(reset: str) -> None:
    given = {"x-ratelimit-limit-requests": "many", "x-ratelimit-reset-requests": reset}
    assert carried("messages", "completions", given.get, NOW) == ()
