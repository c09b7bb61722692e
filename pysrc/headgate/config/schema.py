"""The shape of the file as JSON schema (draft 2020-12): `python -m headgate.config.schema [path]`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Final

from headgate.config.field_text import field_text
from headgate.config.shape.root import ROOT
from headgate.config.shape.vocabulary import (
    Anything,
    Case,
    ListOf,
    MapOf,
    Object,
    ObjectField,
    Ref,
    Scalar,
    Shape,
    Union,
    WordChoice,
)

Json = dict[str, Any]

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
LATER: Final = "Known, but not supported yet: a configuration that sets it is refused."
# A scalar that is one whole variable may become a number or a bool; in a text it may stand anywhere.
WHOLE_VARIABLE: Final = r"^\$(?:\{[A-Za-z_][A-Za-z0-9_]*(?::-[^}]*)?\}|[A-Za-z_][A-Za-z0-9_]*)$"
ANY_VARIABLE: Final = r"\$(?:\{[A-Za-z_]|[A-Za-z_])"
_TYPES: Final = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    type(None): "null",
    list: "array",
    dict: "object",
}


class Exporter:
    """Collects the definitions of named shapes while it prints them."""

    def __init__(self) -> None:
        self.definitions: dict[str, Json] = {
            "WholeVariable": {"type": "string", "pattern": WHOLE_VARIABLE},
            "WithVariable": {"type": "string", "pattern": ANY_VARIABLE},
        }
        self.owners: dict[str, Shape] = {}

    def shape(self, shape: Shape) -> Json:
        """Return the schema of a shape: a reference when it has a name of its own."""
        match shape:
            case Ref():
                return self.shape(shape.target())
            case Scalar():
                return self.scalar(shape)
            case Anything():
                return {}
            case ListOf():
                return self.list(shape)
            case MapOf():
                return {"type": "object", "additionalProperties": self.shape(shape.item)}
            case WordChoice() | Object() | Union():
                return self.named(shape)

    def named(self, shape: WordChoice | Object | Union) -> Json:
        owner = self.owners.get(shape.name)
        if owner is None:
            self.owners[shape.name] = shape
            # Filled in after: a shape may lead back to itself.
            self.definitions[shape.name] = {}
            self.definitions[shape.name] = self.definition(shape)
        elif owner is not shape and owner != shape:
            raise ValueError(f"two shapes are named {shape.name}")
        return {"$ref": f"#/$defs/{shape.name}"}

    def definition(self, shape: WordChoice | Object | Union) -> Json:
        match shape:
            case WordChoice():
                words = {"enum": sorted(shape.spellings(), key=lambda word: (word not in shape.words, word))}
                return {"anyOf": [words, {"$ref": "#/$defs/WholeVariable"}]}
            case Union():
                return {"anyOf": self.cases(shape)}
            case Object():
                return self.object(shape)

    def cases(self, shape: Union) -> list[Json]:
        """Return the cases of a union; a map of any keys has none of those by which other cases are told."""
        taken = [{"required": [key]} for one in shape.cases if isinstance(one, Case) for key in one.has]
        found = [self.shape(one.shape if isinstance(one, Case) else one) for one in shape.cases]
        for one, case in zip(found, shape.cases, strict=True):
            if taken and isinstance(case, MapOf):
                one["not"] = {"anyOf": taken}
        return found

    def scalar(self, shape: Scalar) -> Json:
        types: list[str] = [_TYPES[kind] for kind in shape.types]
        if "number" in types:
            types = [name for name in types if name != "integer"]
        found: Json = {"type": types[0] if len(types) == 1 else types}
        facets = {key: value for key, value in shape.facets.items() if key != "writeOnly"}
        extra = {key: value for key, value in shape.facets.items() if key == "writeOnly"}
        if str not in shape.types and type(None) not in shape.types:
            return {"anyOf": [{**found, **facets}, {"$ref": "#/$defs/WholeVariable"}], **extra}
        if facets:
            return {"anyOf": [{**found, **facets}, {"$ref": "#/$defs/WithVariable"}], **extra}
        return {**found, **extra}

    def list(self, shape: ListOf) -> Json:
        found: Json = {"type": "array", "items": self.shape(shape.item)}
        if shape.least:
            found["minItems"] = shape.least
        if shape.most is not None:
            found["maxItems"] = shape.most
        if shape.unique:
            found["uniqueItems"] = True
        return found

    def field(self, owner: Object, name: str, entry: ObjectField) -> Json:
        found = self.shape(entry.shape)
        if entry.nullable:
            found = {"anyOf": [found, {"type": "null"}]}
        words = [field_text(owner, name), LATER if entry.later else ""]
        if any(words):
            found = {**found, "description": " ".join(filter(None, words))}
        if entry.deprecated:
            found = {**found, "deprecated": True}
        return found

    def object(self, shape: Object) -> Json:
        properties = {name: self.field(shape, name, entry) for name, entry in shape.fields.items()}
        for alias, name in shape.aliases.items():
            properties[alias] = {**properties[name], "description": field_text(shape, alias)}
        found: Json = {"type": "object", "properties": properties, "additionalProperties": False}
        needed = [name for name, entry in shape.fields.items() if entry.required]
        if needed:
            found["required"] = needed
        rules: list[Json] = []
        if shape.one_of:
            single: list[Json] = [{"required": [name]} for name in shape.one_of]
            none: Json = {"not": {"anyOf": single}}
            rules.append({"oneOf": [*single, none] if shape.one_of_optional else single})
        if shape.any_of:
            rules.append({"anyOf": [{"required": [name]} for name in shape.any_of]})
        pairs = (*shape.apart, *shape.aliases.items())
        rules.extend({"not": {"required": [one, other]}} for one, other in pairs)
        if rules:
            found["allOf"] = rules
        return found


def schema() -> Json:
    """Return the schema of the whole file."""
    exporter = Exporter()
    root = exporter.object(ROOT)
    names = sorted(exporter.definitions)
    return {
        "$schema": DIALECT,
        "title": "Headgate configuration",
        **root,
        "$defs": {name: exporter.definitions[name] for name in names},
    }


def printed() -> str:
    """Return the schema as the committed file holds it."""
    return json.dumps(schema(), indent=1, ensure_ascii=False) + "\n"


def main(arguments: list[str]) -> int:
    """Write the schema to the path given, else to standard output."""
    if arguments:
        Path(arguments[0]).write_text(printed(), encoding="utf-8")
    else:
        sys.stdout.write(printed())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
