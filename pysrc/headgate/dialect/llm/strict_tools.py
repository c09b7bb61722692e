"""`strict` of tools at Claude and at Bedrock: calls whose arguments are what the schema says.

Sources: https://platform.claude.com/docs/en/build-with-claude/structured-outputs (models, limits of a request) and
https://docs.aws.amazon.com/bedrock/latest/userguide/structured-output.html. Where a vendor would refuse the request,
the tool goes without, and `strict` is told as lost.
"""

from __future__ import annotations

from typing import Any, Final

from headgate.dialect.llm import efforts
from headgate.dialect.llm.closed_schemas import closed
from headgate.dialect.llm.contract import Json

# The first version of Claude that has it.
FIRST: Final = (4, 5)
# An organization has to allow it there first, so that a request that asks for it is refused as a rule
# (https://docs.cloud.google.com/vertex-ai/generative-ai/docs/partner-models/claude/structured_outputs).
WITHOUT: Final = frozenset({"gcp.vertex_ai"})
BEDROCK: Final = "aws.bedrock"
# Vendors of Bedrock's models that have it, as they stand in the names of models.
AT_BEDROCK: Final = (
    "qwen.", "openai.", "deepseek.", "google.", "minimax.", "mistral.", "moonshot.", "moonshotai.", "nvidia.",
)  # fmt: skip
# Of all strict tools of a request: their number, members that may be missing, and members of several types.
MOST_TOOLS: Final = 20
MOST_OPTIONAL: Final = 24
MOST_UNIONS: Final = 16


def takes(model: str, vendor: str) -> bool:
    """Return whether a model takes strict tools at this vendor. Names of other models than Claude say nothing."""
    if vendor in WITHOUT:
        return False
    version = efforts.claude_version(model)
    if version is not None:
        return version >= FIRST
    return vendor != BEDROCK or any(name in model for name in AT_BEDROCK)


class StrictTools:
    """Makes the tools of one request strict, as far as its vendor takes them."""

    def __init__(self, model: str, vendor: str, dropped: list[str]) -> None:
        self.taken = takes(model, vendor)
        self.dropped = dropped
        self.tools = self.optional = self.unions = 0

    def schema(self, schema: Json, at: str) -> Json | None:
        """Return the schema of a strict tool, None if it cannot be one. `at`: the path of its `strict`.

        The schema is closed, and limits of its values are only described (closed_schemas).
        """
        optional, unions = _counted(schema)
        if (
            not self.taken or self.tools == MOST_TOOLS
            or self.optional + optional > MOST_OPTIONAL or self.unions + unions > MOST_UNIONS
        ):  # fmt: skip
            self.dropped.append(at)
            return None
        self.tools += 1
        self.optional += optional
        self.unions += unions
        return closed(schema, f"{at.rpartition('.')[0]}.parameters", self.dropped)


def _counted(schema: Any) -> tuple[int, int]:
    """Return how many members may be missing, and how many have several types, at any depth."""
    optional = unions = 0
    waiting = [schema]
    while waiting:
        one = waiting.pop()
        if isinstance(one, list):
            waiting += one
        elif isinstance(one, dict):
            members, needed = one.get("properties"), one.get("required")
            if isinstance(members, dict):
                names = needed if isinstance(needed, list) else []
                optional += sum(name not in names for name in members)
                waiting += members.values()
            unions += isinstance(one.get("type"), list) or "anyOf" in one or "oneOf" in one
            waiting += [one[name] for name in ("items", "anyOf", "oneOf", "allOf") if name in one]
            for name in ("$defs", "definitions"):
                named = one.get(name)
                waiting += named.values() if isinstance(named, dict) else ()
    return optional, unions
