from collections.abc import Iterable, Sequence

from headgate_engine.plan.step import Step

DEFAULT_PORTS: dict[bytes, bytes]
MAX_KNOWN: int
VARY: tuple[bytes, bytes]

def normalised(origin: bytes) -> bytes:
    """Return an origin in lower case without its scheme's default port."""

class OriginRule:
    """`*`, or scheme://host[:port] with wildcards `*` in the host. Raises ValueError for anything else."""

    def __init__(self, text: str) -> None: ...
    def admits(self, origin: bytes) -> bool:
        """Return whether the rule matches an origin as a browser sends it."""

class CorsStep(Step):
    """origins: as for OriginRule. methods, headers, exposed: names; `*` allows the requested ones. max_age: seconds."""

    def __init__(
        self,
        origins: Iterable[str],
        methods: Sequence[str] = (),
        headers: Sequence[str] = (),
        exposed: Sequence[str] = (),
        credentials: bool = False,
        max_age: int | None = None,
    ) -> None: ...
