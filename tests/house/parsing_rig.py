"""For tests that parse all of the product's Python."""

from __future__ import annotations

import ast
import functools
import gc
from collections.abc import Iterator

import pytest

# Checks of a module go through the same files: their trees are kept until the last has.
parsed = functools.cache(ast.parse)


@pytest.fixture(scope="module", autouse=True)
def many_trees() -> Iterator[None]:
    """Keep trees for a module. The collector, which would look at all of them over and over, takes twice as long as the parser."""
    gc.disable()
    yield
    gc.enable()
    parsed.cache_clear()
