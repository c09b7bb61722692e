"""The configurations on the page of agents load as they stand."""

from __future__ import annotations

import re
from pathlib import Path

from headgate.config.load import TextSource, load
from headgate.ir.backend import AgentRuntimeBackend, HostBackend

PAGE = (Path(__file__).parents[2] / "docs/agents.md").read_text()
KEYS = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "s"}


def test_examples_load() -> None:
    blocks = re.findall(r"^```yaml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    kinds = []
    for text in blocks:
        [choice] = load(TextSource(text), environ=KEYS).gateway.binds[0].listeners[0].routes[0].backends
        assert choice.policies.a2a == isinstance(choice.backend, HostBackend)
        kinds.append(type(choice.backend))
    assert kinds == [HostBackend, AgentRuntimeBackend]
