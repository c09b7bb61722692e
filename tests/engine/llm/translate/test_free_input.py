"""The input of custom tools out of the arguments of functions."""

from __future__ import annotations

import json

import pytest

from headgate_drivers.llm import free_pieces
from headgate_engine.llm.translate.free_input import free_text

TEXTS = ["", "a", "*** Begin Patch\n+ \"quoted\" \\ back\t", "caf\u00e9 \U0001f600 \u2028 end", "\\u0041 \\\\ud83d", "{\"input\":\"x\"}"]


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("ascii", [False, True])
@pytest.mark.parametrize("form", ['{"input":%s}', ' {\n "input" : %s ,"more":1}', '{"more":1,"input":%s}'])
def test_the_input_is_the_same_however_it_is_cut(text: str, ascii: bool, form: str) -> None:
    arguments = form % json.dumps(text, ensure_ascii=ascii)
    assert free_text(arguments) == text
    for at in range(len(arguments) + 1):
        assert "".join(free_pieces([arguments[:at], arguments[at:]])) == text
    assert "".join(free_pieces(list(arguments))) == text


def test_an_input_is_told_as_it_comes() -> None:
    assert free_pieces(['{"inp', 'ut":"one', " two\\", 'n\\ud83d', '\\ude00"', "}"]) == ["", "one", " two", "\n", "\U0001f600", "", ""]


@pytest.mark.parametrize("arguments", ["just text", '["a"]', '{"patch":"a"}', '{"input":7}', '"a"', "{" * 300])
def test_what_the_model_wrote_in_another_form_is_the_input(arguments: str) -> None:
    assert free_text(arguments) == arguments
    assert free_pieces(list(arguments))[-1] == arguments


def test_nothing_is_no_input() -> None:
    assert free_text("{}") == ""
    assert free_pieces([]) == [""]


def test_a_cut_input_is_told_as_far_as_it_is_whole() -> None:
    assert "".join(free_pieces(['{"input":"ab\\u00'])) == "ab"
    assert "".join(free_pieces(['{"input":"a\\xb"}'])) == "a\\xb"
