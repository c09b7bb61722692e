"""Whether the models of two configurations are the same, names of their own aside.

A GatewayModel that a virtual one stands for is a model of its own there, which no client can ask for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from headgate.document.lazy_dataclass import replace
from headgate.ir.model import LlmModel, LlmRouter, VirtualTarget

# Tells where two values differ, below a path.
Different = Callable[[Any, Any, str], list[str]]


def router_differences(before: LlmRouter, after: LlmRouter, path: str, different: Different) -> Iterator[str]:
    """Yield where the models of a place differ."""
    yield from different(before.resources, after.resources, f"{path}.resources")
    yield from different(before.routes, after.routes, f"{path}.routes")
    ours, theirs = ({one.pattern: one for one in router.models} for router in (before, after))
    if len(ours) < len(before.models) or ours.keys() != theirs.keys() or _turned(before.models, list(theirs)):
        yield f"{path}.models"
        return
    for name, one in ours.items():
        yield from different(_plain(one), _plain(theirs[name]), f"{path}.models {name}")
    virtual, others = ({one.name: one for one in router.virtual_models} for router in (before, after))
    if virtual.keys() != others.keys():
        yield f"{path}.virtualModels"
        return
    for name, group in virtual.items():
        targets, other = map(_target, group.targets), map(_target, others[name].targets)
        place = f"{path}.virtualModels {name}"
        yield from different((group.kind, *targets), (others[name].kind, *other), place)


def _plain(model: LlmModel) -> LlmModel:
    return replace(model, key="", pattern="", index=0, account="")


def _target(target: VirtualTarget) -> VirtualTarget:
    return replace(target, model=_plain(target.model), others=tuple(map(_plain, target.others)))


def _turned(before: tuple[LlmModel, ...], after: list[str]) -> bool:
    """Tell whether of two patterns of one length that may both fit a name the other one would be taken."""
    wild = [one.pattern for one in before if "*" in one.pattern]
    return any(
        len(one) == len(other) and one.endswith("*") != other.endswith("*") and after.index(one) > after.index(other)
        for number, one in enumerate(wild)
        for other in wild[number + 1 :]
    )
