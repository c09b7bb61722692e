"""Write the reference of the configuration file: `python ci/config_reference.py > docs/configuration.md`.

Fields, types and texts come from the tables that the loader reads files with. Examples are parts of the files below
`examples/` and of the documents, all of which tests load.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import yaml

from headgate.config.field_text import field_text
from headgate.config.schema import LATER
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

HOME: Final = Path(__file__).parents[1]
# The longest example of an object, in lines.
LONGEST_EXAMPLE: Final = 14
WORDS: Final = {
    "Bool": "`true` or `false`", "Number": "number", "Null": "`null`", "Expression": "CEL expression",
    "Duration": "duration", "Interval": "duration", "ByteSize": "size in bytes, such as `2Mi`",
    "Regex": "regular expression", "HeaderName": "header name", "HeaderMatchName": "header name",
    "Hostname": "host name", "HostPort": "`host:port`", "HostUrl": "URL or `host:port`", "Url": "URL",
    "Origin": "origin", "SecretText": "text, secret", "HiddenText": "text, secret", "KeyOrFile": "text, or file",
    "Port": "port", "Status": "status", "Sampling": "number or CEL expression", "TextOrInteger": "text or number",
    "GrpcMethod": "`/package.Service/Method`",
}  # fmt: skip
INTRODUCTION: Final = """# Configuration

The configuration file is YAML or JSON. This page lists every field with its type, default and meaning. Other pages
describe how fields work together, such as [policies.md](policies.md). Editors can show the same from
`docs/schema/config.schema.json` while you type.

- `$NAME`, `${NAME}` and `${NAME:-default}` in any value are replaced by environment variables.
- Durations are written as `1h30m`, `10s` or `250ms`.
- Fields marked **Required** must be set. All others are optional.
"""


def resolved(shape: Shape | Case) -> Shape:
    """Return a shape without references and cases."""
    while isinstance(shape, Ref | Case):
        shape = shape.target() if isinstance(shape, Ref) else shape.shape
    return shape


def objects(shape: Shape | Case, found: dict[str, Object]) -> None:
    """Add the objects below a shape to `found`, in the order in which a reader meets them."""
    match resolved(shape):
        case Object() as one if one.name not in found:
            found[one.name] = one
            for entry in one.fields.values():
                objects(entry.shape, found)
        case ListOf() | MapOf() as many:
            objects(many.item, found)
        case Union() as union:
            for case in union.cases:
                objects(case, found)


def kind(shape: Shape | Case) -> str:
    """Return the type of a shape, in Markdown."""
    match resolved(shape):
        case Object() as one:
            return f"[{one.name}](#{one.name.lower()})" if one.fields else "`{}`"
        case ListOf() as many:
            return f"list of {kind(many.item)}"
        case MapOf() as many:
            return f"map of {kind(many.item)}"
        case WordChoice() as choice:
            return ", ".join(f"`{word}`" for word in choice.words)
        case Union() as union:
            return " or ".join(dict.fromkeys(kind(case) for case in union.cases))
        case Scalar() as scalar:
            low, high = scalar.facets.get("minimum"), scalar.facets.get("maximum")
            return WORDS.get(scalar.name) or ("text" if low is None else f"integer {low} to {high}")
        case _:
            return "any value"


def row(owner: Object, name: str, entry: ObjectField) -> str:
    """Return the row of a field in the table of its object."""
    needed = "**Required.** " if entry.required else ""
    text = " ".join(filter(None, [field_text(owner, name), LATER if entry.later else ""]))
    return f"| `{name}` | {kind(entry.shape)} | {needed}{text} |".replace("||", r"\|\|")


def rules(owner: Object) -> Iterator[str]:
    """Yield sentences about fields that go together or not."""

    def listed(names: tuple[str, ...]) -> str:
        return ", ".join(f"`{name}`" for name in names)

    if owner.one_of:
        yield f"{'At most' if owner.one_of_optional else 'Exactly'} one of {listed(owner.one_of)}."
    if owner.any_of:
        yield f"At least one of {listed(owner.any_of)}."
    for pair in owner.apart:
        yield f"Not both of {listed(pair)}."


def told_by(case: Case, value: dict[str, Any]) -> bool:
    """Return whether a map is of a case by its keys."""
    return any(key in value for key in case.has) or bool(case.key and value.get(case.key) == case.value)


def narrowed(shape: Shape | Case, value: Any) -> Shape:
    """Return the case of a union that a value is of, as the loader finds it."""
    shape = resolved(shape)
    if not isinstance(shape, Union):
        return shape
    kinds: list[Shape] = []
    for case in shape.cases:
        inner = resolved(case)
        if isinstance(value, dict) and isinstance(case, Case) and told_by(case, value):
            return narrowed(inner, value)
        if isinstance(value, dict) == isinstance(inner, Object | MapOf | Anything | Union):
            kinds.append(inner)
    return narrowed(kinds[-1], value) if kinds else Anything()


def parts(shape: Shape | Case, value: Any) -> Iterator[tuple[Object, dict[str, Any]]]:
    """Yield the objects of a document, each with its value."""
    match narrowed(shape, value):
        case Object() as one if isinstance(value, dict):
            yield one, value
            for name, below in value.items():
                entry = one.fields.get(one.aliases.get(name, name))
                if entry is not None:
                    yield from parts(entry.shape, below)
        case ListOf() as many if isinstance(value, list):
            for below in value:
                yield from parts(many.item, below)
        case MapOf() as many if isinstance(value, dict):
            for below in value.values():
                yield from parts(many.item, below)


def documents() -> Iterator[Any]:
    """Yield the configurations of the documents and of the examples."""
    for page in sorted((HOME / "docs").glob("*.md")):
        for block in re.findall(r"^```yaml\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL):
            yield from read(block)
    for path in sorted((HOME / "examples").rglob("*.yaml")):
        yield from read(path.read_text())


class TimesAsText(yaml.SafeLoader):
    """Reads times as text, as the gateway does."""

    yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in found if tag != "tag:yaml.org,2002:timestamp"]
        for first, found in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


def read(text: str) -> Iterator[Any]:
    """Yield a document, unless it is something else than a configuration."""
    try:
        found = yaml.load(text, TimesAsText)
    except yaml.YAMLError:
        return
    if isinstance(found, dict) and found.keys() <= ROOT.fields.keys():
        yield found


def examples() -> dict[str, str]:
    """Return an example of each object that has one: the one with most fields among those that are short."""
    best: dict[str, tuple[int, int, str]] = {}
    for document in documents():
        for owner, value in parts(ROOT, document):
            text = yaml.safe_dump(value, sort_keys=False, width=100, allow_unicode=True, default_flow_style=None)
            lines = text.count("\n")
            if value and lines <= LONGEST_EXAMPLE:
                best[owner.name] = max(best.get(owner.name, (0, 0, "")), (len(value), -lines, text))
    return {name: text for name, (_, _, text) in best.items()}


def page() -> str:
    """Return the page."""
    found: dict[str, Object] = {}
    objects(ROOT, found)
    shown = examples()
    lines = [INTRODUCTION]
    for owner in found.values():
        if not owner.fields:
            continue
        lines.append(f"## {owner.name}\n")
        if example := shown.get(owner.name):
            lines.append(f"```yml\n{example}```\n")
        lines += ["| Field | Type | |", "|---|---|---|"]
        lines += [row(owner, name, entry) for name, entry in owner.fields.items()]
        lines += [f"| `{name}` | | {field_text(owner, name)} |" for name in owner.aliases]
        lines.append("")
        if said := " ".join(rules(owner)):
            lines.append(said + "\n")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.stdout.write(page())
