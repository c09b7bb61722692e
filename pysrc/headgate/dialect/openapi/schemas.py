"""Conversion of the schemas of a document to self-contained JSON Schema.

References are replaced by their targets. If a reference is recursive, or a tool would become too large, the target is
put into `$defs` of the tool instead. Source: https://json-schema.org/draft/2020-12/json-schema-core.
"""

from __future__ import annotations

import re
from itertools import chain, count
from typing import Any, Final

from headgate.dialect.openapi.document import Json, OpenApiError, resolve

# MAX_SCHEMAS bounds the schemas of all tools of a document with references replaced. A tool with more than MAX_UNFOLDED
# schemas uses `$defs` for all further references.
MAX_SCHEMAS: Final = 400_000
MAX_UNFOLDED: Final = 4_000
# Keywords whose value is one schema, a list of schemas, or a map of names to schemas.
SINGLE: Final = frozenset(
    ("items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames",
     "unevaluatedItems", "unevaluatedProperties", "additionalItems")
)  # fmt: skip
LISTS: Final = frozenset(("oneOf", "anyOf", "allOf", "prefixItems"))
MAPS: Final = frozenset(("properties", "patternProperties", "dependentSchemas", "$defs", "definitions"))
# Keywords that are omitted, because they do not help a client to fill in arguments.
DROPPED: Final = frozenset(("xml", "externalDocs", "discriminator", "nullable", "$schema", "$id"))
# Characters that would have to be escaped in a `$ref`.
UNPLAIN: Final = re.compile(r"[^A-Za-z0-9_.-]")


class SchemaBudget:
    """The number of schemas that the tools of a document may still have."""

    def __init__(self, left: int = MAX_SCHEMAS) -> None:
        self.left = left

    def spend(self, where: str) -> None:
        """Count one schema. Raises OpenApiError if there are too many."""
        self.left -= 1
        if self.left < 0:
            raise OpenApiError(f"{where}: the schemas of the document are too large with references resolved")


class Unfolding:
    """Converts the schemas of one tool. `defs` are the schemas that its `$ref`s refer to."""

    def __init__(self, document: Json, budget: SchemaBudget) -> None:
        self._document = document
        self._budget = budget
        self._old = str(document.get("openapi", "")).startswith("3.0")
        self._spent = 0
        self._names: dict[str, str] = {}
        self.defs: dict[str, Any] = {}

    def schema(self, value: object, where: str, inside: tuple[str, ...] = ()) -> Any:
        """Return a schema with its references replaced. `inside` are the references that enclose it.

        Raises OpenApiError.
        """
        if isinstance(value, bool):
            return value
        if not isinstance(value, dict):
            raise OpenApiError(f"{where}: a schema must be a map")
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
        # OpenAPI 3.0 ignores everything beside `$ref`, but many documents have a description there.
        beside = {key: entry for key, entry in value.items() if key in ("description", "title", "default")}
        if reference in inside or self._spent > MAX_UNFOLDED or len(inside) >= 32:
            return {"$ref": self._defined(reference, named, where), **beside}
        found = self.schema(named, where, (*inside, reference))
        return {**found, **beside} if isinstance(found, dict) else found

    def _defined(self, reference: str, named: Json, where: str) -> str:
        """Return the `$ref` of a schema in `defs`. A new schema is added first."""
        name = self._names.get(reference)
        if name is None:
            plain = UNPLAIN.sub("_", reference.rpartition("/")[2])
            name = next(one for one in chain((plain,), (f"{plain}_{n}" for n in count(2))) if one not in self.defs)
            # The name is stored before the conversion, so that recursive references find it.
            self._names[reference] = name
            self.defs[name] = {}
            self.defs[name] = self.schema(named, where, (reference,))
        return f"#/$defs/{name}"

    @staticmethod
    def _modern(schema: Json, nullable: bool) -> Json:
        """Return a schema of OpenAPI 3.0 in the form of JSON Schema 2020-12."""
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
