"""Parts that policies of requests and of backends both have: rules, changes of headers, transformations."""

from __future__ import annotations

from headgate.cluster.translate.fragments import Json


def pairs(entries: list[Json]) -> Json:
    """Return `{name: value}` of entries with a name and a value."""
    return {one["name"]: one["value"] for one in entries}


def header_edits(value: Json) -> Json:
    """Return a header modifier of the file for `set`, `add` and `remove`."""
    found: Json = {action: pairs(value[action]) for action in ("set", "add") if value.get(action)}
    return found | ({"remove": list(value["remove"])} if value.get("remove") else {})


def transformation(value: Json) -> Json:
    """Return a transformation of the file for one without conditions."""
    found: Json = {}
    for side in ("request", "response"):
        if side in value:
            edits = {name: value[side][name] for name in ("body", "metadata") if name in value[side]}
            found[side] = header_edits(value[side]) | edits
    return found


def rules(value: Json) -> list[Json]:
    """Return the rules of an authorization."""
    kind = value.get("action", "Allow").lower()
    return [{kind: one} for one in value["policy"]["matchExpressions"]]
