"""Warns of rules about tools that hide prompts and resources as well.

A rule about `mcp.tool` cannot be evaluated for a prompt, which has none: as an `allow` or `require` it does not hold
then, and as a `deny` it denies.
"""

from __future__ import annotations

import re
from typing import Final

from headgate.ir.policy.authorization import Authorization

_READS: Final = re.compile(r"\bmcp\.(tool|prompt|resource|task)\b")
# What may give an expression a value even where a variable has none.
_MAY_HOLD: Final = re.compile(r"\|\||\?|\b(?:has|default|coalesce)\(")


def _only_tools(rule: str) -> bool:
    return set(_READS.findall(rule)) == {"tool"} and _MAY_HOLD.search(rule) is None


def hidden(rules: Authorization) -> str | None:
    """Return a warning if nobody sees a prompt or a resource for rules that are about tools alone."""
    for kind, texts in (("deny", rules.deny), ("require", rules.require)):
        for text in texts:
            if _only_tools(text):
                remedy = f"has(mcp.tool) && ({text})" if kind == "deny" else f"!has(mcp.tool) || ({text})"
                return (
                    f"the {kind} rule `{text}` is only about tools and hides all prompts and resources, which have no "
                    f"mcp.tool: write `{remedy}`"
                )
    if rules.allow and all(map(_only_tools, rules.allow)):
        return (
            "all allow rules are about tools, so prompts and resources are hidden: `has(mcp.prompt)` and "
            "`has(mcp.resource)` allow them"
        )
    return None
