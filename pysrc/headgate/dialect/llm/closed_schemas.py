"""JSON schemas of answers in the subset that Claude's vendors take: every object is closed, and values have no limits.

Source: https://platform.claude.com/docs/en/build-with-claude/structured-outputs#json-schema-limitations, and for
Converse https://docs.aws.amazon.com/bedrock/latest/userguide/structured-output.html.
"""

from __future__ import annotations

from typing import Any, Final

from headgate.dialect.llm.contract import Json, Untranslatable
from headgate.dialect.llm.schemas import MAX_DEPTH, MAX_NODES
from headgate_engine.llm.translate.writers import dump_json

KEPT: Final = frozenset(("type", "title", "description", "enum", "const", "default", "required"))
ONE: Final = ("items",)
LISTS: Final = ("anyOf", "allOf")
NAMED: Final = ("properties", "$defs", "definitions")
FORMATS: Final = frozenset((
    "date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid",
))  # fmt: skip
# Formats that only say how a value is kept, as Google's schemas have them.
WIDTHS: Final = frozenset(("int32", "int64", "float", "double", "enum"))
# Keywords that say nothing of values.
NOTES: Final = frozenset((
    "$schema", "$id", "$comment", "deprecated", "readOnly", "writeOnly", "discriminator", "propertyOrdering",
))  # fmt: skip
# Keywords that are as good in words.
EXAMPLES: Final = frozenset(("examples", "example"))


def closed(schema: Json, at: str, dropped: list[str]) -> Json:
    """Return the schema in the subset. What it cannot say is told in descriptions, as the vendor's own SDK does it.

    `at` is added to `dropped` when a limit is only described, or an object may no longer have other members.
    Raises Untranslatable for a schema that is too large.
    """
    work = _Closing(at)
    made: Json = work.node(schema, 0)
    if work.lossy:
        dropped.append(at)
    return made


class _Closing:
    def __init__(self, at: str) -> None:
        self.at = at
        self.nodes = 0
        self.lossy = False

    def node(self, schema: Any, depth: int) -> Any:
        self.nodes += 1
        if depth > MAX_DEPTH or self.nodes > MAX_NODES:
            raise Untranslatable(self.at, "is too deep or too large")
        if not isinstance(schema, dict):
            return schema
        out: Json = {}
        rest: Json = {}
        for name, value in schema.items():
            given = "anyOf" if (name == "oneOf" and "anyOf" not in schema) or _is_single(name, value, schema) else name
            if given in NAMED and isinstance(value, dict):
                out[given] = {key: self.node(one, depth + 1) for key, one in value.items()}
            elif given in LISTS and isinstance(value, list):
                out[given] = [self.node(one, depth + 1) for one in value]
            elif given in ONE and isinstance(value, dict):
                out[given] = self.node(value, depth + 1)
            elif given in KEPT or given == "$ref" or _is_kept(given, value):
                out[given] = value
            elif given not in NOTES and given != "additionalProperties" and not (given == "format" and value in WIDTHS):
                rest[given] = value
        if _is_object(schema):
            out["additionalProperties"] = False
            self.lossy = self.lossy or schema.get("additionalProperties", False) is not False
        if rest:
            self.lossy = self.lossy or not rest.keys() <= EXAMPLES
            told = ", ".join(f"{name}: {dump_json(value).decode()}" for name, value in rest.items())
            before = out.get("description")
            out["description"] = f"{before}\n\n{{{told}}}" if isinstance(before, str) and before else f"{{{told}}}"
        return out


def _is_single(name: str, value: Any, schema: Json) -> bool:
    """Return whether it is an `allOf` of one reference, which the vendor only takes under another name."""
    if name != "allOf" or "anyOf" in schema or "oneOf" in schema or not isinstance(value, list) or len(value) != 1:
        return False
    return isinstance(value[0], dict) and "$ref" in value[0]


def _is_kept(name: str, value: Any) -> bool:
    return (name == "format" and value in FORMATS) or (name == "minItems" and value in (0, 1))


def _is_object(schema: Json) -> bool:
    kind = schema.get("type")
    if kind is None:
        return "properties" in schema
    return "object" in kind if isinstance(kind, list) else kind == "object"
