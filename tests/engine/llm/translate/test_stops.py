"""Why replies ended."""

from __future__ import annotations

import pytest

from headgate_engine.llm.translate.stops import END, READ, STOPS, WRITE, read_stop, write_stop


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


@pytest.mark.parametrize("word", ["MISSING_THOUGHT_SIGNATURE", "MODEL_ARMOR", "UNHEARD_OF"])
def test_a_reason_of_gemini_that_is_not_known_is_no_whole_answer(word: str) -> None:
    assert read_stop("gemini", word) == "filter"
