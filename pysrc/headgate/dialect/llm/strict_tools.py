"""`strict` of tools: calls whose arguments are what the schema says, as far as the vendor takes the schema.

Sources: https://platform.claude.com/docs/en/build-with-claude/structured-outputs (models, schemas, limits),
https://docs.aws.amazon.com/bedrock/latest/userguide/structured-output.html and
https://platform.openai.com/docs/guides/structured-outputs#supported-schemas. Where a vendor would refuse the request,
the tool goes without, and `strict` is told as lost.
"""

from __future__ import annotations

from typing import Any, Final

from headgate.dialect.llm import efforts, fields
from headgate.dialect.llm.closed_schemas import closed
from headgate.dialect.llm.contract import Json
from headgate.dialect.llm.schemas import MAX_NODES

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
# Of a request: strict tools, and in the schemas of these and of its answer members that may be missing, and members of
# several types.
MOST_TOOLS: Final = 20
MOST_OPTIONAL: Final = 24
MOST_UNIONS: Final = 16
# What OpenAI knows in schemas of strict tools.
_KNOWN: Final = frozenset((
    "type", "properties", "required", "additionalProperties", "items", "anyOf", "$ref", "$defs", "definitions", "enum",
    "const", "title", "description", "pattern", "format", "multipleOf", "minimum", "maximum", "exclusiveMinimum",
    "exclusiveMaximum", "minItems", "maxItems",
))  # fmt: skip
_FORMATS: Final = frozenset((
    "date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid",
))  # fmt: skip


def takes(model: str, vendor: str) -> bool:
    """Return whether a model takes strict tools at this vendor. Names of other models than Claude say nothing."""
    if vendor in WITHOUT:
        return False
    version = efforts.claude_version(model)
    if version is not None:
        return version >= FIRST
    return vendor != BEDROCK or any(name in model for name in AT_BEDROCK)


def asked(tool: Json, dropped: list[str]) -> bool | None:
    """Return `strict` of a tool of Messages as OpenAI takes it, None if it does not say. Raises Untranslatable."""
    wanted = fields.flag(tool, "strict", "tools")
    if wanted and not openai_takes(tool.get("input_schema")):
        dropped.append("tools[].strict")
        return False
    return wanted


def openai_takes(schema: Any) -> bool:
    """Return whether OpenAI takes a schema for a strict tool: all objects are closed and all members required."""
    if not isinstance(schema, dict) or schema.get("type") != "object":
        return False
    waiting: list[Any] = [schema]
    left = MAX_NODES
    while waiting:
        one = waiting.pop()
        left -= 1
        if left < 0 or not isinstance(one, dict) or not one.keys() <= _KNOWN or not _is_full(one):
            return False
        for name in ("properties", "$defs", "definitions"):
            waiting += one.get(name, {}).values()
        waiting += one.get("anyOf", ())
        waiting += [one["items"]] if "items" in one else []
    return True


def _is_full(one: Json) -> bool:
    """Return whether a node has no member that may be missing, no others, and a form that OpenAI knows."""
    members, needed, kind = one.get("properties", {}), one.get("required", []), one.get("type")
    if not all(isinstance(one.get(name, {}), dict) for name in ("properties", "$defs", "definitions")):
        return False
    if not isinstance(one.get("anyOf", []), list) or str(one.get("format", "date")) not in _FORMATS:
        return False
    if kind == "object" or (isinstance(kind, list) and "object" in kind) or members:
        closes = one.get("additionalProperties") is False and isinstance(needed, list)
        return closes and members.keys() <= set(map(str, needed))
    return True


class StrictTools:
    """Makes the tools of one request strict, as far as its vendor takes them. `answer`: the schema of its answer."""

    def __init__(self, model: str, vendor: str, dropped: list[str], answer: Any = None) -> None:
        self.taken = takes(model, vendor)
        self.dropped = dropped
        self.tools = 0
        self.optional, self.unions = _counted(answer)

    def schema(self, schema: Json, at: str) -> Json | None:
        """Return the schema of a strict tool, None if it cannot be one. `at`: the path of its `strict`.

        The schema is closed, and limits of its values are only described (closed_schemas).
        """
        optional, unions = _counted(schema)
        if (
            not self.taken or self.tools == MOST_TOOLS
            or self.optional + optional > MOST_OPTIONAL or self.unions + unions > MOST_UNIONS
            or is_refused(schema)
        ):  # fmt: skip
            self.dropped.append(at)
            return None
        self.tools += 1
        self.optional += optional
        self.unions += unions
        return closed(schema, f"{at.rpartition('.')[0]}.parameters", self.dropped)


def is_refused(schema: Json) -> bool:
    """Return whether Claude's vendors refuse a schema even when it is closed.

    They do if it is recursive, refers to another document or within `allOf`, or if an `enum` has lists or objects. A
    schema that is too large to tell counts as refused.
    """
    refers: dict[str, set[str]] = {}
    waiting: list[tuple[str, Any]] = [("", schema)]
    left = MAX_NODES
    while waiting:
        name, target = waiting.pop()
        found: set[str] = set()
        nodes = [target]
        while nodes:
            one = nodes.pop()
            left -= 1
            if left < 0 or _is_odd(one):
                return True
            if isinstance(one, dict):
                nodes += one.values()
                if isinstance(one.get("$ref"), str):
                    found.add(one["$ref"])
            elif isinstance(one, list):
                nodes += one
        refers[name] = found
        for other in found - refers.keys():
            if (meant := _meant(schema, other)) is None:
                return True
            refers[other] = set()
            waiting.append((other, meant))
    return _is_circular(refers)


def _is_odd(one: Any) -> bool:
    """Return whether a node of a schema has what no closed schema may have."""
    if not isinstance(one, dict):
        return False
    values, parts = one.get("enum"), one.get("allOf")
    if isinstance(values, list) and any(isinstance(value, list | dict) for value in values):
        return True
    if not isinstance(parts, list) or len(parts) == 1:
        return False
    return any(isinstance(part, dict) and "$ref" in part for part in parts)


def _is_circular(refers: dict[str, set[str]]) -> bool:
    """Return whether a name leads back to itself."""
    referring: dict[str, list[str]] = {name: [] for name in refers}
    for name, others in refers.items():
        for other in others:
            referring[other].append(name)
    count = {name: len(others) for name, others in refers.items()}
    ends = [name for name, others in refers.items() if not others]
    done = 0
    while ends:
        done += 1
        for name in referring[ends.pop()]:
            count[name] -= 1
            if not count[name]:
                ends.append(name)
    return done < len(refers)


def _meant(schema: Json, reference: str) -> Any:
    """Return what a reference within the schema means, None if there is nothing."""
    if not reference.startswith("#"):
        return None
    found: Any = schema
    for part in reference[1:].split("/")[1:]:
        found = found.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(found, dict) else None
    return found


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
