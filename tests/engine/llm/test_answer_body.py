"""Answers that are kept whole: the bound of each, and that of all."""

from __future__ import annotations

from headgate_engine.llm.answer_body import FREE_BYTES, LIMITS, TOO_LARGE, TOO_MANY, AnswerBody, held_bytes, kept

LIMIT = FREE_BYTES + 1000


def test_an_answer_has_a_bound() -> None:
    found = kept(5, [b"abc", b"de"])
    assert isinstance(found, AnswerBody)
    assert bytes(found) == b"abcde"
    assert len(found) == 5
    assert kept(5, [b"abc", b"def"]) == TOO_LARGE


def test_what_is_below_the_free_bytes_counts_for_nothing() -> None:
    found = [kept(LIMIT, [bytes(FREE_BYTES)]) for _ in range(3)]
    assert held_bytes() == 0
    assert all(isinstance(one, AnswerBody) for one in found)


def test_all_long_answers_have_one_bound_and_give_back_what_they_had() -> None:
    large = kept(1 << 30, [bytes(FREE_BYTES), bytes(LIMIT * LIMITS - 1000)])
    assert held_bytes() == LIMIT * LIMITS - 1000
    pieces = [bytes(FREE_BYTES), bytes(500), bytes(500)]
    last = kept(LIMIT, pieces)
    assert isinstance(last, AnswerBody)
    assert held_bytes() == LIMIT * LIMITS
    assert kept(LIMIT, pieces) == TOO_MANY
    del last
    assert held_bytes() == LIMIT * LIMITS - 1000
    assert isinstance(kept(LIMIT, pieces), AnswerBody)
    del large
    assert held_bytes() == 0
