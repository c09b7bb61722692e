"""Requests of a run, made ready once."""

from __future__ import annotations

import pytest

from headgate_engine.load.request import LoadRequest


def test_what_cannot_be_sent_is_refused() -> None:
    for method, target, authority in (("GE T", "/", "a"), ("GET", "/ /", "a"), ("GET", "", "a"), ("GET", "/", "a b"), ("CONNECT", "a:1", "a")):
        with pytest.raises(ValueError):
            LoadRequest(method, target, authority, ())
    with pytest.raises(ValueError):
        LoadRequest("GET", "/", "a", [("x", "a\nb")])


def test_an_answer_is_judged_by_its_status_unless_told_otherwise() -> None:
    request = LoadRequest("POST", "/", "a", (), b"{}")
    assert (request.judgement, request.format, request.body) == (0, None, b"{}")
    request.judge_rpc()
    assert request.judgement == 2
    request.judge_stream("messages")
    assert (request.judgement, request.format) == (1, "messages")
    with pytest.raises(ValueError, match="csv"):
        request.judge_stream("csv")


@pytest.mark.parametrize("at", [-1, 0, 5, 100])
def test_a_number_needs_ten_digits(at: int) -> None:
    with pytest.raises(ValueError, match="ten digits"):
        LoadRequest("POST", "/", "a", (), b'{"id":123456789}').number(at)
