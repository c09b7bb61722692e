"""Conversion of JSON schemas to Google's subset of OpenAPI 3.0, which has no references.

Source: https://ai.google.dev/api/caching#Schema.
"""

from __future__ import annotations

from typing import Any

from headgate.dialect.llm.contract import Json, Untranslatable

KEPT = (
    "title", "description", "nullable", "default", "minItems", "maxItems", "minLength", "maxLength", "pattern",
    "minimum", "maximum", "minProperties", "maxProperties", "required", "propertyOrdering", "example",
)  # fmt: skip
FORMATS = ("enum", "date-time")
# Limits beyond any real schema. Without them, references could expand to exponentially large trees.
MAX_DEPTH = 64
MAX_NODES = 10_000


def normalise(schema: Json, at: str = "schema") -> Json:
    """Return the schema in Google's subset. Raises Untranslatable if it is too large or has a broken reference."""
    return _Normaliser(schema, at).node(schema, (), 0)


def described(schema: Json, text: str | None) -> Json:
    """Return a schema with what is said of it beside it, for formats that have no other place. Its own words win."""
    return schema if not text or "description" in schema else {**schema, "description": text}


class _Normaliser:
    def __init__(self, root: Json, at: str) -> None:
        self.root = root
        self.at = at
        self.nodes = 0

    def node(self, schema: Any, seen: tuple[str, ...], depth: int) -> Json:
        self.nodes += 1
        if depth > MAX_DEPTH or self.nodes > MAX_NODES:
            raise Untranslatable(self.at, "is too deep or too large")
        if not isinstance(schema, dict):
            # `true` and `{}` accept any value.
            return {}
        if isinstance(schema.get("$ref"), str):
            ref = schema["$ref"]
            if ref in seen:
                return {"type": "object"}
            rest = {name: value for name, value in schema.items() if name != "$ref"}
            return self.node({**self.resolve(ref), **rest}, (*seen, ref), depth + 1)
        if isinstance(schema.get("allOf"), list):
            return self.node(self.merged(schema, seen), seen, depth + 1)
        out: Json = {name: schema[name] for name in KEPT if name in schema}
        self.kind(schema, out, seen, depth)
        self.members(schema, out, seen, depth)
        self.values(schema, out)
        if schema.get("format") in FORMATS:
            out["format"] = schema["format"]
        return out

    def resolve(self, ref: str) -> Json:
        """Return the target of a reference within the schema. Raises Untranslatable."""
        found: Any = self.root
        if not ref.startswith("#"):
            raise Untranslatable(self.at, f"refers to {ref!r}, which is outside of it")
        for part in ref[1:].split("/")[1:]:
            name = part.replace("~1", "/").replace("~0", "~")
            found = found.get(name) if isinstance(found, dict) else None
        if not isinstance(found, dict):
            raise Untranslatable(self.at, f"refers to {ref!r}, which does not exist")
        return found

    def merged(self, schema: Json, seen: tuple[str, ...]) -> Json:
        """Return the schema with `allOf` merged into it.

        `properties`, `required` and nested `allOf` are combined. Of any other keyword the first value is kept.
        """
        out = {name: value for name, value in schema.items() if name != "allOf"}
        for given in schema["allOf"]:
            if not isinstance(given, dict):
                continue
            part = given
            for _ in range(MAX_DEPTH):
                ref = part.get("$ref")
                if not isinstance(ref, str):
                    break
                # A reference to an enclosing schema adds nothing.
                part = {} if ref in seen else {**self.resolve(ref), **{k: v for k, v in part.items() if k != "$ref"}}
            for name, value in part.items():
                if name == "properties" and isinstance(value, dict):
                    out[name] = {**value, **out.get(name, {})}
                elif name == "required" and isinstance(value, list):
                    out[name] = list(dict.fromkeys([*out.get(name, []), *value]))
                elif name == "allOf" and isinstance(value, list):
                    out[name] = [*out.get(name, []), *value]
                else:
                    out.setdefault(name, value)
        return out

    def kind(self, schema: Json, out: Json, seen: tuple[str, ...], depth: int) -> None:
        """Set `type`, `nullable` and `anyOf`."""
        given = schema.get("type")
        kinds = [kind for kind in given if isinstance(kind, str)] if isinstance(given, list) else [given]
        if "null" in kinds:
            out["nullable"] = True
            kinds = [kind for kind in kinds if kind != "null"]
        others = schema.get("anyOf") or schema.get("oneOf")
        if isinstance(others, list) and others:
            real = [other for other in others if not (isinstance(other, dict) and other.get("type") == "null")]
            if len(real) < len(others):
                out["nullable"] = True
            found = [self.node(other, seen, depth + 1) for other in real]
            if len(found) == 1:
                out.update({name: value for name, value in found[0].items() if name not in out})
            elif found:
                out["anyOf"] = found
        elif len(kinds) > 1:
            rest = {name: value for name, value in schema.items() if name not in ("type", "description", "title")}
            out["anyOf"] = [self.node({**rest, "type": kind}, seen, depth + 1) for kind in kinds]
        elif kinds and isinstance(kinds[0], str):
            out["type"] = kinds[0]
        elif "properties" in schema:
            out["type"] = "object"
        elif "items" in schema:
            out["type"] = "array"

    def members(self, schema: Json, out: Json, seen: tuple[str, ...], depth: int) -> None:
        if "anyOf" in out:
            return
        properties = schema.get("properties")
        if isinstance(properties, dict) and out.get("type") == "object":
            out["properties"] = {name: self.node(value, seen, depth + 1) for name, value in properties.items()}
            if isinstance(out.get("required"), list):
                out["required"] = [name for name in out["required"] if isinstance(name, str) and name in properties]
        if not out.get("required") or out.get("type") != "object":
            out.pop("required", None)
        if out.get("type") == "array" and "items" not in out:
            items = schema.get("items", (schema.get("prefixItems") or [{}])[0])
            found = self.node(items, seen, depth + 1)
            out["items"] = found or {"type": "string"}

    def values(self, schema: Json, out: Json) -> None:
        """Set `enum`, which Google supports for strings only."""
        values = [schema["const"]] if "const" in schema else schema.get("enum")
        if not isinstance(values, list) or "anyOf" in out:
            return
        if None in values:
            out["nullable"] = True
        strings = [value for value in values if isinstance(value, str)]
        if strings and out.get("type") in (None, "string"):
            out["type"] = "string"
            out["enum"] = strings


# Members of Google's schemas that hold one schema, a list of schemas, or schemas by name.
_ONE, _LIST, _NAMED = ("items",), ("anyOf", "any_of", "prefixItems"), ("properties",)
_NAMES = {"any_of": "anyOf", "min_items": "minItems", "max_items": "maxItems", "min_length": "minLength",
          "max_length": "maxLength"}  # fmt: skip


def lower_types(schema: Any, depth: int = 0) -> Json:
    """Return Google's schema as JSON schema: types in small letters, `nullable` as a type. Raises Untranslatable."""
    if not isinstance(schema, dict):
        return {}
    if depth > MAX_DEPTH:
        raise Untranslatable("schema", "is too deep")
    out: Json = {}
    for name, value in dict[str, Any](schema).items():
        made: Any = value
        if name == "type" and isinstance(value, str):
            made = value.lower()
        elif name in _ONE:
            made = lower_types(value, depth + 1)
        elif name in _LIST and isinstance(value, list):
            made = [lower_types(one, depth + 1) for one in value]
        elif name in _NAMED and isinstance(value, dict):
            made = {key: lower_types(one, depth + 1) for key, one in value.items()}
        elif name in ("nullable", "propertyOrdering", "property_ordering"):
            continue
        elif name.lower().startswith(("min", "max")) and isinstance(value, str) and value.isdigit():
            # int64 is a string in Google's JSON.
            made = int(value)
        out[_NAMES.get(name) or name] = made
    if schema.get("nullable") is True and isinstance(out.get("type"), str):
        out["type"] = [out["type"], "null"]
    return out
