"""Rules about tools that hide prompts and resources."""

from __future__ import annotations

import pytest

from headgate.config.load import TextSource, load
from headgate.config.mcp_rules import hidden
from headgate.ir.policy.authorization import Authorization

TOOL = 'mcp.tool.name == "read"'
CASES = [
    (Authorization(), None),
    (Authorization(allow=(TOOL,)), "all allow rules are about tools"),
    (Authorization(allow=(TOOL, 'mcp.tool.target == "a"')), "all allow rules are about tools"),
    (Authorization(allow=(TOOL, "has(mcp.prompt)")), None),
    (Authorization(allow=(TOOL, 'jwt.sub == "ada"')), None),
    (Authorization(allow=(f'{TOOL} || "admin" in jwt.groups',)), None),
    (Authorization(allow=("!has(mcp.tool) || " + TOOL,)), None),
    (Authorization(deny=(TOOL,)), "has(mcp.tool) && (" + TOOL + ")"),
    (Authorization(deny=("has(mcp.tool) && " + TOOL,)), None),
    (Authorization(require=(TOOL,)), "!has(mcp.tool) || (" + TOOL + ")"),
    (Authorization(deny=(TOOL,), allow=("has(mcp.prompt)",)), "the deny rule"),
    (Authorization(allow=('mcp.resource.name == "a"',)), None),
]


@pytest.mark.parametrize(("rules", "told"), CASES)
def test_it_is_told_when_only_tools_can_be_seen(rules: Authorization, told: str | None) -> None:
    found = hidden(rules)
    assert (found is None) == (told is None)
    assert told is None or told in str(found)


def test_the_warning_names_the_backend() -> None:
    text = f"""
gateways: {{default: {{port: 3000}}}}
mcp:
  targets: [{{name: a, stdio: {{cmd: x}}}}]
  policies: {{mcpAuthorization: {{rules: ['{TOOL}']}}}}
"""
    [warning] = load(TextSource(text), environ={}).warnings
    assert warning.startswith("mcp: mcpAuthorization: all allow rules are about tools")
