"""Schemas of a document as JSON Schema that stands alone.

References are replaced by what they name. Where that has no end, or would make a tool too large, they lead to `$defs`
of the tool instead.
"""

from __future__ import annotations

import re
from itertools import chain, count
from typing import Any, Final

from headgate.dialect.openapi.document import Json, OpenApiError, resolve

# Schemas within the tools of one document, references followed; what is unfolded in one tool before `$defs` are used.
MAX_SCHEMAS: Final = 400_000
MAX_UNFOLDED: Final = 4_000
# Keywords by what they hold: one schema, a list of them, a map of names to them.
SINGLE: Final = frozenset(
    ("items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames",
     "unevaluatedItems", "unevaluatedProperties", "additionalItems")
)  # fmt: skip
LISTS: Final = frozenset(("oneOf", "anyOf", "allOf", "prefixItems"))
MAPS: Final = frozenset(("properties", "patternProperties", "dependentSchemas", "$defs", "definitions"))
# Of OpenAPI's dialect, without meaning for who fills in the arguments.
DROPPED: Final = frozenset(("xml", "externalDocs", "discriminator", "nullable", "$schema", "$id"))
# What a `$ref` would have to escape.
UNPLAIN: Final = re.compile(r"[^A-Za-z0-9_.-]")


class Budget:
    """How many schemas the tools of a document may still have."""

    def __init__(self, left: int = MAX_SCHEMAS) -> None:
        self.left = left

    def spend(self, where: str) -> None:
        """Count one; raises OpenApiError when there were too many."""
        self.left -= 1
        if self.left < 0:
            raise OpenApiError(f"{where}: the schemas of the document are too large with their references followed")


class Unfolding:
    """The schemas of one tool. `defs`: what its `$ref`s lead to."""

    def __init__(self, document: Json, budget: Budget) -> None:
        self._document = document
        self._budget = budget
        self._old = str(document.get("openapi", "")).startswith("3.0")
        self._spent = 0
        self._names: dict[str, str] = {}
        self.defs: dict[str, Any] = {}

    def schema(self, value: object, where: str, inside: tuple[str, ...] = ()) -> Any:
        """Return a schema with its references followed; `inside` are those that it is part of."""
        if isinstance(value, bool):
            return value
        if not isinstance(value, dict):
            raise OpenApiError(f"{where}: a schema is a map")
        self._budget.spend(where)
        self._spent += 1
        reference = value.get("$ref")
        if isinstance(reference, str):
            return self._referred(value, reference, where, inside)
        found: Json = {}
        for key, entry in value.items():
            if key in SINGLE and isinstance(entry, dict):
                found[key] = self.schema(entry, where, inside)
            elif key in LISTS and isinstance(entry, list):
                found[key] = [self.schema(one, where, inside) for one in entry]
            elif key in MAPS and isinstance(entry, dict):
                found[key] = {name: self.schema(one, where, inside) for name, one in entry.items()}
            elif key not in DROPPED:
                found[key] = entry
        return self._modern(found, value.get("nullable") is True) if self._old else found

    def _referred(self, value: Json, reference: str, where: str, inside: tuple[str, ...]) -> Any:
        named = resolve(self._document, reference, where)
        # Beside a reference OpenAPI 3.0 ignores everything; a description is what people write there all the same.
        beside = {key: entry for key, entry in value.items() if key in ("description", "title", "default")}
        if reference in inside or self._spent > MAX_UNFOLDED or len(inside) >= 32:
            return {"$ref": self._defined(reference, named, where), **beside}
        found = self.schema(named, where, (*inside, reference))
        return {**found, **beside} if isinstance(found, dict) else found

    def _defined(self, reference: str, named: Json, where: str) -> str:
        """Return the `$ref` of a schema that stands in `defs`, put there when it is new."""
        name = self._names.get(reference)
        if name is None:
            plain = UNPLAIN.sub("_", reference.rpartition("/")[2])
            name = next(one for one in chain((plain,), (f"{plain}_{n}" for n in count(2))) if one not in self.defs)
            # Its own references to itself, and all further ones, find it there.
            self._names[reference] = name
            self.defs[name] = {}
            self.defs[name] = self.schema(named, where, (reference,))
        return f"#/$defs/{name}"

    @staticmethod
    def _modern(schema: Json, nullable: bool) -> Json:
        """Return a schema of OpenAPI 3.0 as JSON Schema has it today."""
        for limit, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
            if schema.get(exclusive) is True and limit in schema:
                schema[exclusive] = schema.pop(limit)
            elif isinstance(schema.get(exclusive), bool):
                del schema[exclusive]
        if nullable and isinstance(schema.get("type"), str):
            schema["type"] = [schema["type"], "null"]
            if isinstance(schema.get("enum"), list) and None not in schema["enum"]:
                schema["enum"] = [*schema["enum"], None]
        return schema
