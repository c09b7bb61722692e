"""Every configuration on the page of policies loads as it stands, and every built policy is on the page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from headgate.config.load import TextSource, load
from headgate.config.policy.table import KINDS

PAGE = (Path(__file__).parents[2] / "docs/policies.md").read_text()
BLOCKS = re.findall(r"^## (.*?)\n.*?^```yaml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize(("title", "text"), BLOCKS, ids=[title for title, _ in BLOCKS])
def test_examples_load(title: str, text: str) -> None:
    gateway = load(TextSource(text), environ={"OIDC_COOKIE_SECRET": "5a" * 32}).gateway
    assert gateway.binds[0].listeners[0].routes, title


def test_every_policy_is_described() -> None:
    titles = " ".join(title for title, _ in BLOCKS)
    assert [kind.key for kind in KINDS if kind.key not in titles] == []
    assert len(BLOCKS) == PAGE.count("\n## ")
