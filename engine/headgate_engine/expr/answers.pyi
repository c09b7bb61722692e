from collections.abc import Callable
from typing import Any

from headgate_engine.context.request import RequestContext

AT_THE_END: frozenset[str]
BY_NAME: frozenset[str]
READERS: dict[str, Callable[[RequestContext], Any]]
