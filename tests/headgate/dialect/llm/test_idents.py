"""Ids of tool calls: what each vendor takes, and that calls and results still belong together."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.dialect.llm import idents

PATTERNS = [
    (idents.MESSAGES, r"[a-zA-Z0-9_-]{1,64}"), (idents.CONVERSE, r"[a-zA-Z0-9_-]{1,64}"),
    (idents.COMPLETIONS, r"(?s).{1,40}"), (idents.RESPONSES, r"(?s).{1,64}"), (idents.MISTRAL, r"[a-zA-Z0-9]{9}"),
]  # fmt: skip


@pytest.mark.parametrize(("ids", "pattern"), PATTERNS)
@given(st.text(max_size=100), st.text(max_size=100))
@settings(max_examples=100, derandomize=True, deadline=None)
def test_an_id_fits_and_stays_what_it_is(ids: idents.Idents, pattern: str, one: str, other: str) -> None:
    made = ids.fit(one)
    assert re.fullmatch(pattern, made)
    assert ids.fits(made) or idents.THOUGHT in made
    assert ids.fit(made) == made
    if one.partition(idents.THOUGHT)[0] != other.partition(idents.THOUGHT)[0]:
        assert made != ids.fit(other)


@pytest.mark.parametrize(("ids", "pattern"), PATTERNS[:-1])
@pytest.mark.parametrize("own", ["toolu_01AbC", "call_abc", "tooluse_X-y_z", "call_resp_0"])
def test_ids_of_vendors_go_on_as_they_are_without_a_signature(ids: idents.Idents, pattern: str, own: str) -> None:
    assert ids.fit(own) == own
    assert ids.fit(f"{own}{idents.THOUGHT}c2ln+/==") == own


def test_mistral_has_ids_of_its_own() -> None:
    assert idents.of_completions("mistral").fit("D681PevKs") == "D681PevKs"
    assert idents.of_completions("openai") is idents.COMPLETIONS
    assert idents.WHOLE.fit("a__thought__b/") == "a__thought__b/"
