"""Body edits of LLM requests, and their timeouts."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any, Final

from headgate.config.check import Record
from headgate.config.context import Context
from headgate.config.policy import prompt_enrichment, prompt_guard
from headgate.config.policy.expression import check_map
from headgate.document.lazy_dataclass import replace
from headgate.document.nodes import MapEntry
from headgate.errors import Problem
from headgate.ir.model import DEFAULT_CACHING, NO_CACHING, NO_EDITS, BodyEdits, PromptCaching, StreamTimeouts
from headgate_engine.llm.pattern import ModelPattern

PHASE: Final = "llm"
DEFAULT_TIMEOUTS: Final = StreamTimeouts()
# Names of formats in the file to those of the engine.
ENGINE_FORMATS: Final = {
    "anthropicTokenCount": "count_tokens",
    "generateContent": "gemini",
    "geminiCountTokens": "gemini_count_tokens",
    "textCompletions": "text",
}


def engine_format(name: str) -> str:
    """Return the engine's name of a format."""
    return ENGINE_FORMATS.get(name, name)


def _text(context: Context, record: Record, key: str) -> str:
    try:
        return json.dumps(record.get(key) or {}, sort_keys=True, allow_nan=False)
    except ValueError:
        context.fault(Problem.VALUE, record, key, "not a number in JSON")
        return "{}"


def _aliases(context: Context, record: Record) -> tuple[tuple[str, str], ...]:
    found: dict[str, str] = record.get("modelAliases") or {}
    for pattern, model in found.items():
        try:
            ModelPattern(pattern)
        except ValueError as error:
            context.fault(Problem.VALUE, record, "modelAliases", str(error))
        if not model:
            context.fault(Problem.VALUE, record, "modelAliases", f"the alias {pattern!r} has no model")
    return tuple(found.items())


def of_model(context: Context, record: Record) -> BodyEdits:
    """Return the edits of a model, or of the defaults of a provider."""
    found = BodyEdits(
        overrides=_text(context, record, "overrides"),
        defaults=_text(context, record, "defaults"),
        transformations=check_map(context, record, "transformation", PHASE),
        final=check_map(context, record, "finalTransformation", PHASE),
        guard=prompt_guard.parse(context, record.get("guardrails")),
        caching=_caching(record),
        unsupported=record.get("unsupportedParameters"),
    )
    return NO_EDITS if found == NO_EDITS else found


def of_policy(context: Context, record: Record) -> BodyEdits:
    """Return the edits of `policies.ai`."""
    routes: dict[str, Any] = record.get("routes") or {}
    for suffix in routes:
        if suffix != "*" and not suffix.startswith(("/", ":")):
            context.fault(Problem.VALUE, record, "routes", f"{suffix!r}: a path suffix must begin with / or :")
    return BodyEdits(
        overrides=_text(context, record, "overrides"),
        defaults=_text(context, record, "defaults"),
        transformations=check_map(context, record, "transformations", PHASE),
        final=check_map(context, record, "finalTransformations", PHASE),
        aliases=_aliases(context, record),
        routes=tuple((suffix, engine_format(kind)) for suffix, kind in routes.items() if kind is not None),
        enrichment=prompt_enrichment.parse(context, record.get("prompts")),
        guard=prompt_guard.parse(context, record.get("promptGuard")),
        caching=_caching(record),
        unsupported=record.get("unsupportedParameters"),
    )


def merged(weaker: BodyEdits, stronger: BodyEdits) -> BodyEdits:
    """Return both, key by key; `stronger` wins."""
    return BodyEdits(
        overrides=json.dumps(json.loads(weaker.overrides) | json.loads(stronger.overrides), sort_keys=True),
        defaults=json.dumps(json.loads(weaker.defaults) | json.loads(stronger.defaults), sort_keys=True),
        transformations=tuple((dict(weaker.transformations) | dict(stronger.transformations)).items()),
        final=tuple((dict(weaker.final) | dict(stronger.final)).items()),
        aliases=tuple((dict(weaker.aliases) | dict(stronger.aliases)).items()),
        routes=tuple((dict(weaker.routes) | dict(stronger.routes)).items()),
        enrichment=stronger.enrichment or weaker.enrichment,
        guard=stronger.guard or weaker.guard,
        caching=stronger.caching or weaker.caching,
        unsupported=stronger.unsupported or weaker.unsupported,
    )


def over(weaker: BodyEdits | None, stronger: BodyEdits | None) -> BodyEdits | None:
    """Return `policies.ai` of two levels: of each field the stronger one that sets it, whole."""
    if weaker is None or stronger is None:
        return weaker if stronger is None else stronger
    set_there = {one.name: getattr(stronger, one.name) for one in fields(stronger)}
    return replace(weaker, **{name: value for name, value in set_there.items() if value != getattr(NO_EDITS, name)})


def _caching(holder: Record) -> PromptCaching | None:
    """Return `promptCaching`; null switches off what a weaker level sets."""
    record = holder.get("promptCaching")
    if record is None:
        return NO_CACHING if isinstance(holder.at("promptCaching"), MapEntry) else None
    plain = DEFAULT_CACHING
    least = record.get("minTokens")
    return PromptCaching(
        system=record.get("cacheSystem", plain.system),
        messages=record.get("cacheMessages", plain.messages),
        tools=record.get("cacheTools", plain.tools),
        least_tokens=plain.least_tokens if least is None else least,
        offset=record.get("cacheMessageOffset", plain.offset),
    )


def timeouts(record: Record, default: StreamTimeouts = DEFAULT_TIMEOUTS) -> StreamTimeouts:
    """Return `streamTimeouts` of a record; 0 means no limit."""
    found = record.get("streamTimeouts")
    if found is None:
        return default
    first, words, stall = found.get("firstEvent"), found.get("firstWords"), found.get("stall")
    return StreamTimeouts(
        first_event_ms=default.first_event_ms if first is None else first,
        first_words_ms=default.first_words_ms if words is None else words,
        stall_ms=default.stall_ms if stall is None else stall,
    )
