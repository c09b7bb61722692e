"""Options of the form `name=value` that may be given several times."""

from __future__ import annotations

import click


def named_values(_ctx: click.Context, _parameter: click.Parameter, given: tuple[str, ...]) -> dict[str, str]:
    """Return the values by name; the last of a name counts. Raises BadParameter."""
    found = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise click.BadParameter(f"{text!r} is not name=value")
        found[name] = value
    return found
