"""The page on shared state: its configuration loads, its numbers are those of the code."""

from __future__ import annotations

import re
from pathlib import Path

from headgate.config.load import TextSource, load
from headgate.config.shape.process import REDIS
from headgate.policy.shared.limiter import FIRST_PAUSE_S, IDLE_NS, LAST_PAUSE_S, TEND_S

PAGE = (Path(__file__).parents[2] / "docs/shared-state.md").read_text()


def test_the_configuration_loads() -> None:
    [text] = re.findall(r"^```yaml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    state = load(TextSource(text), environ={}).gateway.process.shared_state
    assert state is not None
    assert (state.failure, state.place) == ("deny", "127.0.0.1:6379")
    for default in (f"percent ({state.local_share})", f"call ({state.timeout_ms}ms)", f"worker ({state.max_connections})"):
        assert default in PAGE
    assert f"`{state.mode}` (the default)" in PAGE


def test_every_field_is_described() -> None:
    assert set(re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE)) == set(REDIS.fields)


def test_the_numbers_are_those_of_the_code() -> None:
    assert (1 / FIRST_PAUSE_S, 1 / LAST_PAUSE_S) == (20, 1)
    assert "1 to 20 times a second" in PAGE
    assert (IDLE_NS, TEND_S) == (10**9, 0.05)
    assert "a second without requests" in PAGE
    assert "within 50 ms" in PAGE
