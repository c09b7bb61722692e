from collections.abc import Callable, Mapping
from typing import Any

def lost_below(
    nodes: Mapping[str, tuple[str, bool, Any]],
    holder: dict[str, Any],
    spared: dict[str, tuple[Any, ...]],
    unless: dict[str, Callable[[dict[str, Any]], bool]],
) -> list[str]:
    """Return the paths in an object whose values are lost, in the order of the tree.

    nodes: name -> (path in the table, "" if nothing is lost with the member itself; whether its value is an array; the
    nodes below). spared: by path, the values that say nothing. unless: by path, whether a holder makes an exception.
    """
