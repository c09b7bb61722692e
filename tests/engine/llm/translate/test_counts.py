"""Token counts of all formats in one convention."""

from __future__ import annotations

from typing import Any

import pytest

from headgate_engine.llm.translate.counts import (
    UsageCounts,
    completions_usage,
    converse_usage,
    exclusive_usage,
    gemini_usage,
    rerank_usage,
    responses_usage,
)

READERS = [completions_usage, exclusive_usage, responses_usage, gemini_usage, converse_usage, rerank_usage]

CASES: list[tuple[Any, Any, UsageCounts | None]] = [
    (completions_usage, {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}, UsageCounts(3, 4)),
    (completions_usage, {"prompt_tokens": 3.0, "completion_tokens": 4.0}, UsageCounts(3, 4)),
    (completions_usage, {"prompt_tokens": 3, "total_tokens": 9}, UsageCounts(3, 6, total=9)),
    (completions_usage, {"prompt_tokens": 3, "cache_creation_input_tokens": 2}, UsageCounts(3, 0, written=2)),
    (completions_usage, {"prompt_tokens": True, "completion_tokens": "4"}, None),
    (completions_usage, {"prompt_tokens": -1, "completion_tokens": 1 << 70}, None),
    (completions_usage, {"prompt_tokens": 1 << 40, "completion_tokens": 1}, UsageCounts(1 << 40, 1)),
    (completions_usage, {"prompt_tokens": float("nan"), "completion_tokens": 1}, UsageCounts(0, 1)),
    (exclusive_usage, {"input_tokens": 5, "output_tokens": 2, "cache_read_input_tokens": 7}, UsageCounts(12, 2, cached=7)),
    (exclusive_usage, {"cache_creation_input_tokens": 7}, UsageCounts(7, 0, written=7)),
    (exclusive_usage, {"input_tokens": None}, None),
    (responses_usage, {"input_tokens": 5, "output_tokens": 2, "input_tokens_details": {"cached_tokens": 3}},
     UsageCounts(5, 2, cached=3)),
    (responses_usage, {"input_tokens": 5, "output_tokens": 2, "input_token_details": {"cached_tokens": 3}},
     UsageCounts(5, 2, cached=3)),
    (gemini_usage, {"promptTokenCount": 5, "candidatesTokenCount": 2, "thoughtsTokenCount": 3, "totalTokenCount": 10},
     UsageCounts(5, 5, reasoning=3, total=10)),
    (gemini_usage, {"promptTokenCount": 5, "toolUsePromptTokenCount": 4, "totalTokenCount": 9}, UsageCounts(9, 0)),
    (converse_usage, {"inputTokens": 5, "outputTokens": 2, "cacheReadInputTokens": 1, "cacheWriteInputTokens": 2},
     UsageCounts(8, 2, cached=1, written=2)),
    (converse_usage, {}, None),
    (rerank_usage, {"tokens": {"input_tokens": 4}}, UsageCounts(4, 0)),
    (rerank_usage, {"billed_units": {"total_tokens": 4}}, UsageCounts(4, 0)),
    (rerank_usage, {"billed_units": {"search_units": 1}}, None),
    (completions_usage, {"prompt_tokens": 9, "completion_tokens": 8, "prompt_tokens_details": {"audio_tokens": 4},
                         "completion_tokens_details": {"audio_tokens": 6, "text_tokens": 2}},
     UsageCounts(9, 8, parts=(-1, -1, 4, 2, -1, 6))),
    (responses_usage, {"input_tokens": 9, "output_tokens": 8, "input_tokens_details": {"image_tokens": 5},
                       "output_tokens_details": {"image_tokens": 7}}, UsageCounts(9, 8, parts=(-1, 5, -1, -1, 7, -1))),
    (gemini_usage, {"promptTokenCount": 9, "candidatesTokenCount": 8,
                    "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 3}, {"modality": "AUDIO", "tokenCount": 2},
                                            {"modality": "AUDIO", "tokenCount": 4}, {"modality": "VIDEO", "tokenCount": 1}],
                    "candidatesTokensDetails": [{"modality": "IMAGE", "tokenCount": 8}, {"modality": 3}, None]},
     UsageCounts(9, 8, parts=(3, -1, 6, -1, 8, -1))),
]  # fmt: skip


@pytest.mark.parametrize(("read", "usage", "expected"), CASES)
def test_usage_is_read(read: Any, usage: Any, expected: UsageCounts | None) -> None:
    assert read(usage) == expected


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize("usage", [None, [], "x", 3, {"input_tokens": {}}, {"tokens": []}])
def test_what_is_no_usage_counts_nothing(read: Any, usage: Any) -> None:
    assert read(usage) is None


def test_usages_are_values() -> None:
    assert UsageCounts(1, 2) == UsageCounts(1, 2, total=3)
    assert hash(UsageCounts(1, 2)) == hash(UsageCounts(1, 2))
    assert UsageCounts(1, 2) != UsageCounts(1, 2, cached=1)
    assert UsageCounts(1, 2) != (1, 2)
    assert repr(UsageCounts(1, 2)) == "Usage(input=1, output=2, cached=0, written=0, reasoning=0, total=3)"
