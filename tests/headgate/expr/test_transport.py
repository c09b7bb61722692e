"""Compiled expressions cross into another process."""

from __future__ import annotations

import pickle

import pytest

from headgate.expr import transport
from headgate.expr.compile import compile_expression
from headgate.expr.functions import FUNCTIONS
from headgate_engine.expr.views import READERS


@pytest.mark.parametrize("key", sorted(FUNCTIONS), ids=str)
def test_every_function_is_found_by_its_name(key: tuple[str, bool]) -> None:
    function = FUNCTIONS[key][0]
    assert pickle.loads(pickle.dumps(function)) is function


@pytest.mark.parametrize("path", sorted(READERS))
def test_every_variable_is_read_by_the_same_reader(path: str) -> None:
    assert pickle.loads(pickle.dumps(READERS[path])) is READERS[path]


@pytest.mark.parametrize(
    "text",
    ["mcp.tool.name == 'a'", "llm.outputTokens > 3", "math.ceil(1.5) > double(size(request.path))", "env.podName == 'a'",
     "request.headers.redacted()", "request.headers.cookie('a') == 'b'", "[1, 2].map(x, x + size(request.path))"],
)  # fmt: skip
def test_a_program_evaluates_there_as_here(text: str) -> None:
    program = compile_expression(text, "log")
    copy = pickle.loads(pickle.dumps(program))
    assert (copy.text, copy.variables, copy.slot_count) == (program.text, program.variables, program.slot_count)
    assert pickle.dumps(copy.root_node) == pickle.dumps(program.root_node)


def test_other_functions_keep_their_own_names() -> None:
    assert pickle.loads(pickle.dumps(transport.named)) is transport.named
