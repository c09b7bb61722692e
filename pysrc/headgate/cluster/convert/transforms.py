"""Changes of headers and transformations of the file as resources have them."""

from __future__ import annotations

from headgate.cluster.convert.conversion import Conversion, pairs
from headgate.cluster.convert.said import SaidMap
from headgate.cluster.translate.fragments import Json


def header_edits(value: SaidMap) -> Json:
    """Return `set`, `add` and `remove` as lists."""
    found: Json = {action: pairs(value[action]) for action in ("set", "add") if value.get(action)}
    return found | ({"remove": list(value["remove"])} if value.get("remove") else {})


def transformation(of: Conversion, value: SaidMap) -> Json:
    """Return a transformation without conditions."""
    found: Json = {}
    for side in ("request", "response"):
        if side in value:
            said = value[side]
            of.losses.rest(said, "set", "add", "remove", "body", "metadata")
            found[side] = header_edits(said) | {name: said[name] for name in ("body", "metadata") if name in said}
    return {side: one for side, one in found.items() if one}
