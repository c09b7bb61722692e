"""Log probabilities between formats."""

from __future__ import annotations

from typing import Any

import pytest

from headgate_engine.llm.translate.probs import chat_probs, gemini_probs, gemini_result, text_probs

NEUTRAL = [
    {"token": "hé", "logprob": -0.5, "bytes": [104, 195, 169], "top_logprobs": [
        {"token": "hé", "logprob": -0.5, "bytes": [104, 195, 169]}, {"token": "ho", "logprob": -1.5, "bytes": [104, 111]}]},
    {"token": "!", "logprob": 0.0, "bytes": [33], "top_logprobs": []},
]  # fmt: skip


def test_google_s_form_and_back() -> None:
    told = gemini_result(NEUTRAL)
    assert told["chosenCandidates"][0] == {"token": "hé", "logProbability": -0.5}
    assert len(told["topCandidates"]) == 2
    assert gemini_probs(told) == NEUTRAL
    # Google leaves out zeros, and the alternatives if none were asked for.
    assert gemini_probs({"chosenCandidates": [{"token": "!"}]}) == NEUTRAL[1:]


def test_the_form_of_chat_is_checked() -> None:
    assert chat_probs(NEUTRAL) == NEUTRAL
    assert chat_probs([{"token": "hé", "logprob": -0.5}]) == [{**NEUTRAL[0], "top_logprobs": []}]


@pytest.mark.parametrize("value", [None, 5, "a", {}, [5], [{"token": 5}], [{"token": "a", "logprob": "b"}]])
def test_what_is_none_is_left_out(value: Any) -> None:
    assert chat_probs(value) == []
    assert gemini_probs({"chosenCandidates": value, "topCandidates": value}) == [] or value == [{"token": "a", "logprob": "b"}]
    assert gemini_probs(value) == []


def test_legacy_completions_count_characters() -> None:
    assert text_probs(NEUTRAL, 4) == {
        "tokens": ["hé", "!"], "token_logprobs": [-0.5, 0.0], "text_offset": [4, 6],
        "top_logprobs": [{"hé": -0.5, "ho": -1.5}, {}],
    }  # fmt: skip
