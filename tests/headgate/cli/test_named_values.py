"""Options of the form name=value."""

from __future__ import annotations

import click
import pytest

from headgate.cli.named_values import named_values

CONTEXT = click.Context(click.Command("any"))
OPTION = click.Option(["--tag"])


def test_values_by_name() -> None:
    assert named_values(CONTEXT, OPTION, ()) == {}
    assert named_values(CONTEXT, OPTION, ("a=1", "b=", "c=x=y", "a=2")) == {"a": "2", "b": "", "c": "x=y"}


@pytest.mark.parametrize("text", ["a", "=1", ""])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(click.BadParameter, match="is not name=value"):
        named_values(CONTEXT, OPTION, (text,))
