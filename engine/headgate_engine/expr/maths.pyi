from collections.abc import Callable
from typing import Any

MANY: int
MAX_BIT_BYTES: int

FUNCTIONS: dict[tuple[str, bool], tuple[Callable[..., Any], int, int]]
