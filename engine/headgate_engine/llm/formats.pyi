import re

DEFAULT_ROUTES: dict[str, str]
GOOGLE_NAME: re.Pattern[bytes]
GOOGLE_VERBS: tuple[bytes, ...]
BEDROCK_VERBS: tuple[bytes, ...]

class RouteMap:
    """Formats of clients by the end of their paths.

    routes: path suffix -> format; `*` is what no suffix fits, `completions` when it is not there. The longest suffix
    that fits counts; queries are not looked at. A path that none fits is tried once more as lenient servers read it:
    `/v1//chat/Completions/` and `/v1/chat/%63ompletions` are `/v1/chat/completions`. So is `/chat/completions`: a
    path that is a suffix without its `/v1`.
    """

    def __init__(self, routes: dict[str, str]) -> None: ...
    @property
    def suffixes(self) -> tuple[tuple[bytes, str], ...]: ...
    @property
    def rest(self) -> str: ...
    def format_of(self, path: str) -> str: ...

AT_DEPLOYMENTS: frozenset[bytes]
AT_RESOURCES: frozenset[bytes]
