"""What the fields of the file mean, in a sentence or two each: for the schema, which editors show, and the reference.

The texts are in `descriptions/*.yaml`: for each object of `headgate.config.shape` those of its fields. `anywhere` has
the fields that mean the same in all objects. Only tools read them, so nothing of them is in a gateway that runs.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Final

import yaml

from headgate.config.shape.vocabulary import Object

ANYWHERE: Final = "anywhere"
Texts = dict[str, dict[str, str]]


@cache
def texts() -> Texts:
    """Return all texts, by object and field. Raises ValueError for an object that two files describe."""
    found: Texts = {}
    for path in sorted(files("headgate.config").joinpath("descriptions").iterdir(), key=lambda one: one.name):
        if path.name.endswith(".yaml"):
            one: Texts = yaml.safe_load(path.read_text(encoding="utf-8"))
            if twice := found.keys() & one.keys():
                raise ValueError(f"{path.name}: {', '.join(sorted(twice))} is described twice")
            found |= one
    return found


def field_text(owner: Object, name: str) -> str:
    """Return what a field means, in Markdown; an empty text if nothing says so."""
    if name in owner.aliases:
        return f"Another spelling of `{owner.aliases[name]}`."
    known = texts()
    return known.get(owner.name, {}).get(name) or known[ANYWHERE].get(name, "")
