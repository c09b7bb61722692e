"""The configurations on the page of costs load as they stand."""

from __future__ import annotations

import json
import re
from pathlib import Path

from headgate.config.load import TextSource, load
from headgate.ir.model import AiBackend, LlmRouter

PAGE = (Path(__file__).parents[2] / "docs/llm-costs.md").read_text()


def test_examples_load() -> None:
    first, second = re.findall(r"^```yaml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    gateway = load(TextSource(first), environ={}).gateway
    prices = gateway.process.prices
    assert prices is not None
    assert prices.document is not None
    gemini = json.loads(prices.document)["gcp.gemini"]["gemini-pro"]
    assert gemini["tiers"] == [[200000, {"input": 2_500_000, "output": 15_000_000}]]
    assert isinstance(gateway.binds[0].listeners[0].routes[0].backends[0].backend, AiBackend)
    router = load(TextSource(second), environ={}).gateway.binds[0].listeners[0].routes[0].backends[0].backend
    assert isinstance(router, LlmRouter)
    assert router.models[0].tokenize
