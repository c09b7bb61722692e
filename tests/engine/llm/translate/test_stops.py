"""Why replies ended."""

from __future__ import annotations

import pytest

from headgate_engine.llm.translate.stops import (
    END,
    READ,
    STOPS,
    TIERS_FOR_MESSAGES,
    WRITE,
    read_stop,
    tier_of_messages,
    write_stop,
)


def test_every_stop_can_be_written_in_every_format_of_clients() -> None:
    for format, words in WRITE.items():
        assert set(words) == set(STOPS), format


def test_every_word_means_a_stop() -> None:
    for words in READ.values():
        assert set(words.values()) <= set(STOPS)


@pytest.mark.parametrize("format", ["completions", "messages"])
def test_words_that_are_written_are_read_as_the_same_or_a_wider_stop(format: str) -> None:
    for stop in STOPS:
        word = write_stop(format, stop)
        assert write_stop(format, read_stop(format, word)) == word


@pytest.mark.parametrize("word", [None, 7, {}, "unheard_of"])
def test_words_that_are_not_known_end_the_turn(word: object) -> None:
    assert read_stop("messages", word) == END


@pytest.mark.parametrize("word", ["MISSING_THOUGHT_SIGNATURE", "MODEL_ARMOR", "SAFETY"])
def test_reasons_of_gemini_for_what_is_no_answer_are_those_of_filters(word: str) -> None:
    assert read_stop("gemini", word) == "filter"


@pytest.mark.parametrize("format", READ)
@pytest.mark.parametrize("word", ["FINISH_REASON_UNSPECIFIED", "UNHEARD_OF"])
def test_reasons_that_nobody_knows_are_no_reason_to_call_an_answer_filtered(format: str, word: str) -> None:
    assert read_stop(format, word) == END


def test_tiers_of_service_have_the_words_of_each_vendor() -> None:
    assert [tier_of_messages(word) for word in ("standard", "priority", "batch", None, 3)] == [
        "default", "priority", None, None, None,
    ]  # fmt: skip
    assert TIERS_FOR_MESSAGES == {"default": "standard", "priority": "priority"}
