"""Which formats Copilot takes for a model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Final

CLAUDE: Final = "claude-"
COMPLETIONS: Final = frozenset({"completions"})
RESPONSES: Final = frozenset({"responses"})
# By the beginning of a model's name, the first that fits.
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
# Tags of the cost catalog that say it in place of the table.
TAGS: Final = {"openai_completions": "completions", "openai_responses": "responses", "anthropic_messages": "messages"}
# The provider's name in the catalog.
PROVIDER: Final = "copilot"

Tags = Mapping[str, Iterable[str]]
# What tells families of models apart: their formats, and whether they are Claude's, whose input counts no cache.
Family = tuple[frozenset[str], bool]


def formats_of(model: str, tags: Iterable[str] = ()) -> frozenset[str]:
    """Return the formats of a model that has these tags."""
    tagged = frozenset(TAGS[tag] for tag in tags if tag in TAGS)
    return tagged or BY_NAME.get(model) or next(found for start, found in BY_START if model.startswith(start))


def name_of(family: Family) -> str:
    """Return what the engine calls a family."""
    formats, claude = family
    return "+".join(sorted(formats)) + (" of Claude" if claude else "")


def families(tags: Tags) -> tuple[set[Family], Callable[[str], str]]:
    """Return all families there are, and what tells the name of that of a model. tags: of models in the catalog."""

    def of(model: str) -> Family:
        return formats_of(model, tags.get(model, ())), model.startswith(CLAUDE)

    @lru_cache(maxsize=256)
    def family(model: str) -> str:
        return name_of(of(model))

    known = {(formats, start == CLAUDE) for start, formats in BY_START}
    known |= {(formats, False) for formats in BY_NAME.values()}
    return known | {of(model) for model in tags}, family
