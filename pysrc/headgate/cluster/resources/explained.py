"""What fields of our resources mean, for `kubectl explain` and the reference.

The texts are in `descriptions/*.yaml`; of a field that the file has as well they are the file's. Only what writes the
definitions reads them, so nothing of them is in a controller that runs.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Final

import yaml

from headgate.cluster.resources.schema import Json, described
from headgate.config.field_text import texts

_OF_THE_FILE: Final = "="


@cache
def words() -> dict[str, str]:
    """Return all texts by the end of a path. Raises ValueError for one that stands twice, KeyError for a field of the
    file without a text."""
    found: dict[str, str] = {}
    folder = files("headgate.cluster.resources").joinpath("descriptions")
    for path in sorted(folder.iterdir(), key=lambda one: one.name):
        if path.name.endswith(".yaml"):
            said: dict[str, str] = yaml.safe_load(path.read_text(encoding="utf-8"))
            if twice := found.keys() & said.keys():
                raise ValueError(f"{path.name}: {', '.join(sorted(twice))} is described twice")
            found |= {name: _resolved(text) for name, text in said.items()}
    return found


def _resolved(text: str) -> str:
    """Return a text, or the first sentence that the file has about the field which it names."""
    if not text.startswith(_OF_THE_FILE):
        return text
    owner, _, name = text[len(_OF_THE_FILE) :].partition(".")
    return texts()[owner][name].partition(". ")[0].rstrip(".").replace("`", "") + "."


def key_of(path: tuple[str, ...]) -> str:
    """Return under which name the text about a field stands, the longest that fits; "" if there is none."""
    known = words()
    names = (".".join(path[start:]) for start in range(len(path)))
    return next((name for name in names if name in known), "")


def explained(schema: Json, path: tuple[str, ...]) -> Json:
    """Return a schema with a description of each field that has none. path: names of the objects around it."""
    found = dict(schema)
    if "properties" in schema:
        found["properties"] = {name: _field(one, (*path, name)) for name, one in schema["properties"].items()}
    for inner in ("items", "additionalProperties"):
        if isinstance(schema.get(inner), dict):
            found[inner] = explained(schema[inner], path)
    return found


def _field(schema: Json, path: tuple[str, ...]) -> Json:
    key = key_of(path)
    made = explained(schema, path)
    return made if "description" in schema or not key else described(made, words()[key])
