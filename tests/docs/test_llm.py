"""The configurations on the page of LLM providers, and the example, load as they stand."""

from __future__ import annotations

import re
from pathlib import Path

from headgate.config.load import FileSource, TextSource, load
from headgate.ir.model import AiBackend, LlmRouter

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/llm.md").read_text()
KEYS = {"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k"}


def test_examples_load() -> None:
    blocks = re.findall(r"^```yaml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    kinds = []
    for text in blocks:
        [choice] = load(TextSource(text), environ={}).gateway.binds[0].listeners[0].routes[0].backends
        kinds.append(type(choice.backend))
    assert kinds == [LlmRouter, AiBackend, LlmRouter, LlmRouter, LlmRouter, AiBackend, LlmRouter, LlmRouter, LlmRouter, AiBackend]


def test_the_failover_example_loads() -> None:
    gateway = load(FileSource(str(ROOT / "examples/llm-failover.yaml")), environ=KEYS).gateway
    router = gateway.binds[0].listeners[0].routes[0].backends[0].backend
    assert isinstance(router, LlmRouter)
    assert [(one.name, one.kind) for one in router.virtual_models] == [
        ("assistant", "failover"), ("cheap-or-good", "conditional"),
    ]  # fmt: skip
