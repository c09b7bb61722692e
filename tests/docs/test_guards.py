"""The configurations on the page of guards load as they stand."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from headgate.backend.llm.guards.coverage import table
from headgate.config.load import TextSource, load
from headgate.ir.model import AiBackend, LlmRouter

PAGE = (Path(__file__).parents[2] / "docs/guards.md").read_text()
BLOCKS = re.findall(r"^```yaml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("text", BLOCKS, ids=range(len(BLOCKS)))
def test_examples_load(text: str) -> None:
    [choice] = load(TextSource(text), environ={}).gateway.binds[0].listeners[0].routes[0].backends
    backend = choice.backend
    models = backend.members if isinstance(backend, AiBackend) else ()
    models = backend.models if isinstance(backend, LlmRouter) else models
    assert models
    assert all(model.edits.guard is not None for model in models)


def test_there_are_examples() -> None:
    assert len(BLOCKS) == 4


def test_the_table_of_what_guards_see_is_that_of_the_product() -> None:
    assert f"\n\n{table()}\n\n" in PAGE
