"""Rules of an authorization: those of one resource have one action."""

from __future__ import annotations

from itertools import groupby
from typing import Any, Final

from headgate.cluster.convert.conversion import word
from headgate.cluster.translate.fragments import Json

ONE_ACTION: Final = "the rules of one resource have one action: allow, deny or require"


def grouped(rules: list[Any]) -> list[Json]:
    """Return the sections that say the rules, in their order; a rule without a word allows."""
    plain = [("allow", one) if isinstance(one, str) else next(iter(one.items())) for one in rules]
    return [
        {"action": word(action), "policy": {"matchExpressions": [text for _, text in group]}}
        for action, group in groupby(plain, key=lambda one: one[0])
    ]
