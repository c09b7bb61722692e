"""Writes docs/crds.md from the tables of our custom resources: python ci/pages/crds.py > docs/crds.md

What a field means stands at more length in the reference of the file where that has the same field
(docs/configuration.md): the tables of resources take shapes and texts from the file's.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any, Final

from headgate.cluster.resources.explained import explained
from headgate.cluster.resources.kinds import KINDS, ResourceKind

# How deep a table goes; what lies deeper has its type alone.
DEPTH: Final = 4
# The longest list of words that a cell has.
MOST_WORDS: Final = 8
HEAD: Final = """# Custom resources

These are the custom resources of Headgate. This one, for example, serves a model:

```yaml
apiVersion: headgate.dev/v1alpha1
kind: GatewayModel
metadata: {name: gpt, namespace: shop}
spec:
  parentRefs: [{name: main, namespace: edge, sectionName: ai}]
  match: {model: gpt-*}
  provider: OpenAI
  policies: {auth: {secretRef: {name: openai}}}
```

Fields that the configuration file also has mean the same there ([configuration.md](configuration.md)).
[controller.md](controller.md) describes how resources become the configuration of a gateway. `kubectl explain
gatewaybackend.spec` shows this reference in a cluster. Rules in italics are checked by the API server. This page is
generated from the tables of the CRDs in `deploy/crds` (`make crds-page`).
"""


def kind_of(schema: dict[str, Any]) -> str:
    """Return the type of a field with its bounds, as a cell has it."""
    if schema.get("x-kubernetes-int-or-string"):
        found = "integer or string"
    elif schema.get("type") == "array":
        items = schema.get("items", {})
        found = f"list of {kind_of(items)}" + bounds(schema, "minItems", "maxItems")
    elif schema.get("type") == "object" and isinstance(schema.get("additionalProperties"), dict):
        found = f"map of {kind_of(schema['additionalProperties'])}"
    elif "enum" in schema:
        words = [f"`{word}`" for word in schema["enum"]]
        found = ", ".join(words[:MOST_WORDS]) + (
            f" and {len(words) - MOST_WORDS} more" if len(words) > MOST_WORDS else ""
        )
    else:
        found = str(schema.get("format") or schema.get("type") or "any value")
        found += bounds(schema, "minimum", "maximum") if schema.get("type") == "integer" else ""
    return found


def bounds(schema: dict[str, Any], least: str, most: str) -> str:
    """Return the bounds of a number or of a list."""
    low, high = schema.get(least), schema.get(most)
    return "" if low is None and high is None else f" ({'' if low is None else low}..{'' if high is None else high})"


def fields(schema: dict[str, Any], path: str, depth: int) -> Iterator[str]:
    """Yield a row for each field of an object and of the objects in it."""
    required = set(schema.get("required", ()))
    for name, one in schema.get("properties", {}).items():
        inner, mark = one, ""
        while inner.get("type") == "array" or isinstance(inner.get("additionalProperties"), dict):
            mark += "[]" if inner.get("type") == "array" else ".*"
            inner = inner.get("items") or inner["additionalProperties"]
        said = " ".join(str(one.get("description") or "").split())
        if "default" in one:
            said += f" Default: `{json.dumps(one['default'])}`."
        for rule in (
            *one.get("x-kubernetes-validations", ()),
            *(inner.get("x-kubernetes-validations", ()) if inner is not one else ()),
        ):
            said += f" *{rule['message']}*." if rule.get("message") else ""
        text = said.strip().replace("|", "\\|").replace("<", "&lt;")
        yield f"| `{path}{name}{mark}`{' (required)' if name in required else ''} | {kind_of(one)} | {text} |"
        if inner.get("properties") and depth < DEPTH:
            yield from fields(inner, f"{path}{name}{mark}.", depth + 1)


def section(kind: ResourceKind) -> Iterator[str]:
    """Yield the section of a kind."""
    columns = ", ".join(column.name for column in kind.columns) or "its age"
    yield from (f"## {kind.name}", "", kind.purpose, "")
    yield from (
        f"`kubectl get {kind.plural}` (`{kind.short}`) shows {columns}.",
        "",
    )
    rules = [rule["message"] for rule in kind.spec.get("x-kubernetes-validations", ()) if rule.get("message")]
    if rules:
        yield from (*(f"- {message}" for message in rules), "")
    spec = explained(kind.spec, (kind.name, "spec"))
    yield from ("| field of `spec` | type | |", "|---|---|---|", *fields(spec, "", 1), "")


def page() -> str:
    """Return the page."""
    return "\n".join([HEAD, *(line for kind in KINDS for line in section(kind))])


if __name__ == "__main__":
    sys.stdout.write(page())
