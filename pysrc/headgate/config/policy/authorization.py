"""`authorization` to the IR and back."""

from __future__ import annotations

from typing import Any

from headgate.config.check import Record
from headgate.config.context import Context
from headgate.config.policy.expression import check
from headgate.ir.policy.authorization import Authorization


def parse(context: Context, record: Record, phase: str = "") -> Authorization:
    """Return the rules; a plain text allows. `phase`: of their expressions, if it is not that of the level."""
    found: dict[str, list[str]] = {"allow": [], "deny": [], "require": []}
    for index, rule in enumerate(record.get("rules") or ()):
        if isinstance(rule, Record):
            for kind, texts in found.items():
                if kind in rule and check(context, rule, kind, rule[kind], phase or context.phase):
                    texts.append(rule[kind])
        elif check(context, Record(record.node, f"{record.path}.rules[{index}]", {}), "", rule, phase or context.phase):
            found["allow"].append(rule)
    return Authorization(**{kind: tuple(texts) for kind, texts in found.items()})


def dump(rules: Authorization) -> dict[str, Any]:
    """Return the form of the configuration dump."""
    kinds = (("deny", rules.deny), ("require", rules.require), ("allow", rules.allow))
    return {"rules": [{kind: text} for kind, texts in kinds for text in texts]}
