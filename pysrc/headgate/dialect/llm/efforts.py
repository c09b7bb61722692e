"""Levels of reasoning effort, and how models are told of them: by a budget of tokens, by a level, or not at all.

Sources: https://platform.claude.com/docs/en/build-with-claude/adaptive-thinking, .../effort, .../extended-thinking.
"""

from __future__ import annotations

import functools
import re

from headgate.dialect.llm import fields
from headgate.dialect.llm.contract import Json, Untranslatable

# Budgets in tokens for levels of reasoning effort. The vendors do not publish numbers.
BUDGETS = {"minimal": 1024, "low": 1024, "medium": 2048, "high": 4096, "xhigh": 8192, "max": 16384}
# Anthropic's minimum budget.
LEAST_BUDGET = 1024
# Levels of `output_config.effort`.
LEVELS = {"minimal": "low", "low": "low", "medium": "medium", "high": "high", "xhigh": "xhigh", "max": "max"}
# The first version of Claude that thinks.
THINKS = (3, 7)
# The first version of Claude that refuses budgets and sampling parameters with 400.
ADAPTIVE_ONLY = (4, 7)
# Tokens that a reply has at least beside its thinking.
LEAST_ANSWER = 1024
# From this version of GPT on, a chat completions request may mark the places up to which the prompt is cached.
CACHE_BREAKPOINTS = (5, 6)
# The smallest limit of output tokens of all models that have budgets (Claude Opus 4 and 4.1).
SMALLEST_LIMIT = 32_000

# Names in use: claude-opus-4-7, claude-sonnet-4-5@20250929, us.anthropic.claude-3-7-sonnet-20250219-v1:0,
# anthropic/claude-4.7-opus, claude-mythos-preview, claude-v2:1.
_CLAUDE = re.compile(r"(?<![a-z0-9])claude-(?P<rest>[a-z0-9.@:_-]+)", re.IGNORECASE)
_GPT = re.compile(r"gpt-(\d+)(?:\.(\d+))?(?=$|[-@:])")
_GEMINI = re.compile(r"gemini-(\d{1,2})(?!\d)")
_VERSION = re.compile(r"(?:^|[-_])v?(\d{1,2})(?:[-._](\d{1,2}))?(?![0-9])")


@functools.lru_cache(maxsize=256)
def claude_version(model: str) -> tuple[int, int] | None:
    """Return the version of a Claude model by its name, None for any other model.

    A name without a version (`claude-mythos-preview`, `claude-opus-latest`) is one of the newest, that of Claude
    Instant the oldest.
    """
    named = _CLAUDE.search(model)
    if named is None:
        return None
    rest = named["rest"].lower()
    if rest.startswith("instant"):
        return (1, 0)
    found = _VERSION.search(rest)
    return (99, 0) if found is None else (int(found[1]), int(found[2] or 0))


@functools.lru_cache(maxsize=256)
def gpt_version(model: str) -> tuple[int, int] | None:
    """Return the version of a `gpt-*` model, None for any other model."""
    found = _GPT.match(model.rpartition("/")[2])
    return (int(found[1][:6]), int((found[2] or "0")[:6])) if found else None


def is_adaptive(model: str) -> bool:
    """Return whether a model thinks as much as it wants to: it refuses a budget, and sampling parameters too."""
    version = claude_version(model)
    return version is not None and version >= ADAPTIVE_ONLY


def is_third(model: str) -> bool:
    """Return whether a Gemini model is of generation 3 or later, with thinking levels and mandatory signatures."""
    found = _GEMINI.match(model.rpartition("/")[2])
    return found is not None and int(found[1]) >= 3


def thinks(model: str) -> bool:
    """Return whether a model may be asked to think. Only some versions of Claude are known not to."""
    version = claude_version(model)
    return version is None or version >= THINKS


def known(effort: object) -> str | None:
    """Return the level of effort, None if thinking stays off. Raises Untranslatable for an unknown level."""
    if effort is None or effort == "none":
        return None
    if not isinstance(effort, str) or effort not in BUDGETS:
        raise Untranslatable("reasoning_effort", "must be one of none, " + ", ".join(BUDGETS))
    return effort


def own_budget(body: Json) -> int | None:
    """Return the budget in `thinking` of a chat completions request, as LiteLLM's clients send it; None if it is off.

    Adaptive thinking has none of its own: it is as much as for the level `high`. Raises Untranslatable.
    """
    thinking = fields.obj(body, "thinking") or {}
    kind = fields.text(thinking, "type", "thinking")
    if kind not in (None, "enabled", "adaptive", "disabled"):
        raise Untranslatable("thinking.type", "must be one of enabled, adaptive, disabled")
    if kind in (None, "disabled"):
        return None
    budget = fields.integer(thinking, "budget_tokens", "thinking")
    return BUDGETS["high"] if budget is None else max(budget, LEAST_BUDGET)


def level_of(budget: int) -> str:
    """Return the lowest level of effort whose budget is at least this one."""
    return next((level for level, tokens in BUDGETS.items() if level != "minimal" and budget <= tokens), "max")


def room_for(budget: int, limit: int) -> int:
    """Return the limit of output tokens with a thinking budget: raised if it would leave too little for the reply."""
    if limit - budget >= LEAST_ANSWER:
        return limit
    return max(min(budget + limit, SMALLEST_LIMIT), budget + LEAST_ANSWER)


def adapt(out: Json, level: str, thinking: bool = True) -> None:
    """Set the level of effort in a Messages request, and have the model think.

    `display` has it tell its thoughts, which models with budgets do unasked.
    """
    if thinking:
        out["thinking"] = {"type": "adaptive", "display": "summarized"}
    out["output_config"] = {**(out.get("output_config") or {}), "effort": LEVELS[level]}
