from collections.abc import Callable
from typing import Any

UNRESERVED: str
PADDING: tuple[bytes, ...]

FUNCTIONS: dict[tuple[str, bool], tuple[Callable[..., Any], int, int]]
