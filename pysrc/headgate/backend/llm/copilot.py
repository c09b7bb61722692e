"""The formats that Copilot accepts for each model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Final

CLAUDE: Final = "claude-"
COMPLETIONS: Final = frozenset({"completions"})
RESPONSES: Final = frozenset({"responses"})
# Prefix of the model's name to its formats; the first match applies.
BY_START: Final = (
    (CLAUDE, frozenset({"messages", "completions"})),
    ("grok-", RESPONSES),
    ("mai-", RESPONSES),
    ("gpt-3", COMPLETIONS),
    ("gpt-4", COMPLETIONS),
    ("gpt-", RESPONSES),
    ("", COMPLETIONS),
)
BY_NAME: Final = dict.fromkeys(("gpt-5.4", "gpt-5-mini"), COMPLETIONS | RESPONSES)
# Tags of the cost catalog that override the table.
TAGS: Final = {"openai_completions": "completions", "openai_responses": "responses", "anthropic_messages": "messages"}
# The provider's name in the catalog.
PROVIDER: Final = "copilot"

Tags = Mapping[str, Iterable[str]]
# The formats of a family of models, and whether it is Claude, whose count of input tokens excludes cached ones.
Family = tuple[frozenset[str], bool]


def formats_of(model: str, tags: Iterable[str] = ()) -> frozenset[str]:
    """Return the formats of a model with these tags."""
    tagged = frozenset(TAGS[tag] for tag in tags if tag in TAGS)
    return tagged or BY_NAME.get(model) or next(found for start, found in BY_START if model.startswith(start))


def name_of(family: Family) -> str:
    """Return the engine's name of a family."""
    formats, claude = family
    return "+".join(sorted(formats)) + (" of Claude" if claude else "")


def families(tags: Tags) -> tuple[set[Family], Callable[[str], str]]:
    """Return all families, and a function from a model to the name of its family.

    `tags`: model to its tags in the cost catalog.
    """

    def of(model: str) -> Family:
        return formats_of(model, tags.get(model, ())), model.startswith(CLAUDE)

    @lru_cache(maxsize=256)
    def family(model: str) -> str:
        return name_of(of(model))

    known = {(formats, start == CLAUDE) for start, formats in BY_START}
    known |= {(formats, False) for formats in BY_NAME.values()}
    return known | {of(model) for model in tags}, family
