from collections.abc import Callable
from typing import Any

SPACES: str
MAX_PRECISION: int

FUNCTIONS: dict[tuple[str, bool], tuple[Callable[..., Any], int, int]]
