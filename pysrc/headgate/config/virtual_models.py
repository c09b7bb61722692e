"""`llm.virtualModels`: names that stand for other models."""

from __future__ import annotations

from headgate.config.check import Record
from headgate.config.context import Context
from headgate.config.policy.expression import checked
from headgate.document.lazy_dataclass import replace
from headgate.errors import Problem
from headgate.ir.model import LlmModel, VirtualModel, VirtualTarget
from headgate_engine.llm.pattern import ModelPattern

MAX_GROUPS = 8


def parse(context: Context, records: list[Record], models: tuple[LlmModel, ...]) -> tuple[VirtualModel, ...]:
    """Return the virtual models; `models` are all others, public or not, most specific first."""
    names: set[str] = set()
    found = []
    for record in records:
        name = record.get("name")
        if name is None:
            continue
        if not name or "*" in name:
            context.fault(Problem.VALUE, record, "name", "a virtual model has a name without *")
        elif name in names:
            context.fault(Problem.CONFLICT, record, "name", f"virtual model {name!r} is declared twice")
        names.add(name)
        one = _virtual(context, record, name, models)
        if one is not None:
            found.append(one)
    return tuple(found)


def _virtual(context: Context, record: Record, name: str, models: tuple[LlmModel, ...]) -> VirtualModel | None:
    routing = record.get("routing")
    if routing is None:
        return None
    for kind in ("weighted", "failover", "conditional"):
        section = routing.get(kind)
        if section is None:
            continue
        entries = section.records("targets")
        targets = [_target(context, entry, name, models) for entry in entries]
        _check(context, section, kind, entries)
        ready = tuple(target for target in targets if target is not None)
        return VirtualModel(name=name, kind=kind, targets=ready) if ready else None
    context.fault(Problem.MISSING, record, "routing", "one of weighted, failover and conditional is wanted")
    return None


def _check(context: Context, section: Record, kind: str, entries: list[Record]) -> None:
    if not entries:
        context.fault(Problem.VALUE, section, "targets", "at least one target is wanted")
    elif kind == "weighted" and not any(entry.get("weight", 1) for entry in entries):
        context.fault(Problem.VALUE, section, "targets", "one target needs a weight over 0")
    elif kind == "failover" and len({entry.get("priority") for entry in entries}) > MAX_GROUPS:
        context.fault(Problem.VALUE, section, "targets", f"at most {MAX_GROUPS} priorities")
    elif kind == "conditional":
        for entry in entries[:-1]:
            if entry.get("when") is None:
                context.fault(Problem.VALUE, entry, "when", "only the last target may have no condition")


def _target(context: Context, record: Record, name: str, models: tuple[LlmModel, ...]) -> VirtualTarget | None:
    wanted = record.get("model")
    when = checked(context, record, "when", "llm") if "when" in record else None
    if wanted is None:
        return None
    found = []
    for model in models:
        if ModelPattern(model.pattern).matches(wanted):
            pinned = model.pinned_model if model.pinned_model is not None else wanted
            found.append(replace(model, pinned_model=pinned))
            if not model.matches and model.rules is None:
                break
    if found:
        return VirtualTarget(
            model=found[0],
            others=tuple(found[1:]),
            weight=record.get("weight", 1),
            priority=record.get("priority", 0),
            when=when,
        )
    message = f"no model of llm.models fits {wanted!r}" + (", a virtual model cannot be one" if wanted == name else "")
    context.fault(Problem.REFERENCE, record, "model", message)
    return None
