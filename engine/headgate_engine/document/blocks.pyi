from collections.abc import Callable
from typing import Any

class UnusualYaml(Exception):
    """The text is not written the plain way, or it has a fault: a reader of all of YAML has to tell."""

def read_blocks(
    text: str,
    node: Callable[[Any, int, int], Any],
    entry: Callable[[int, int, Any], Any],
    resolve: Callable[[str], Any],
    expand: Callable[[Any, str], object] | None,
    most: int,
) -> Any:
    """Return the root of a document of YAML 1.2 that is written the plain way, ten times as fast as with libyaml.

    Plain are block maps and lists, lists and maps in brackets, scalars on one line (plain, or in quotes with common
    escapes), and comments. All else raises UnusualYaml: anchors, tags, block texts, scalars of several lines,
    tabs, keys given twice, everything that is a fault, and more than `most` values with their keys. What is returned is
    what document/read.py makes of the events of libyaml, places included.

    `node` makes a value of its content, line and column; `entry` one of a map of line and column of its key, and its
    value; `resolve` gives what a plain scalar means; `expand` is called with the node and text of each scalar that has
    a dollar sign, None where these mean nothing.
    """

class BlockReader:
    """The state of read_blocks(): where it stands in the text."""
