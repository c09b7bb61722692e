"""What the page on other gateways shows is what `headgate import` writes."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from headgate.config.foreign.litellm import litellm
from headgate.config.foreign.mcp_servers import mcp_servers
from headgate.config.foreign.notes import ImportNotes
from headgate.config.load import TextSource, load

PAGE = (Path(__file__).parents[2] / "docs/migrate.md").read_text()
SOURCES = re.findall(r"^```yml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
RESULTS = re.findall(r"^```yaml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize(("number", "translate"), [(0, litellm), (1, mcp_servers)])
def test_the_result_of_each_import(number: int, translate: Callable[[Any, ImportNotes], Any]) -> None:
    assert translate(yaml.safe_load(SOURCES[number]), ImportNotes()) == yaml.safe_load(RESULTS[number])


@pytest.mark.parametrize("text", RESULTS)
def test_results_load(text: str) -> None:
    load(TextSource(text), environ=dict.fromkeys(re.findall(r"\$\{(\w+)\}", text), "x"))


def test_there_are_two() -> None:
    assert len(SOURCES) == len(RESULTS) == 2
