from headgate_engine.context.request import Reply
from headgate_engine.plan.step import Step

DEFAULT_PORTS: dict[bytes, bytes]
PREFIX: str

class AuthorityChange:
    """A new authority: one of full, host, port (0: none). Raises ValueError if it is invalid."""

    def __init__(self, full: str | None = None, host: str | None = None, port: int = 0) -> None: ...

class PathChange:
    """A new path. full: the whole path. prefix: replaces the prefix that the route matched. The query stays.

    level: which of the routes that have delegated the request; below 0: the one that has it.
    """

    def __init__(self, full: str | None = None, prefix: str | None = None, level: int = -1) -> None: ...

class RewriteStep(Step):
    """urlRewrite. failed: the reply if there is no prefix to replace."""

    def __init__(self, authority: AuthorityChange | None, path: PathChange | None, failed: Reply) -> None: ...

class RedirectStep(Step):
    """requestRedirect: an absolute Location. scheme None keeps the request's. failed: as for RewriteStep."""

    def __init__(
        self,
        scheme: str | None,
        authority: AuthorityChange | None,
        path: PathChange | None,
        status: int,
        failed: Reply,
    ) -> None: ...
