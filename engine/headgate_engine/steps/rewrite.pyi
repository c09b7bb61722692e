from headgate_engine.context.request import Reply
from headgate_engine.plan.step import Step

DEFAULT_PORTS: dict[bytes, bytes]
PREFIX: str

class AuthorityChange:
    """One of full, host, port (0: none). ValueError for what is no authority."""

    def __init__(self, full: str | None = None, host: str | None = None, port: int = 0) -> None: ...

class PathChange:
    """full: the new path; prefix: what takes the place of the prefix that the route matched. The query stays."""

    def __init__(self, full: str | None = None, prefix: str | None = None) -> None: ...

class RewriteStep(Step):
    """urlRewrite. failed: the answer when there is no prefix to replace."""

    def __init__(self, authority: AuthorityChange | None, path: PathChange | None, failed: Reply) -> None: ...

class RedirectStep(Step):
    """requestRedirect: an absolute Location. scheme None keeps the request's. failed: as for a rewrite."""

    def __init__(
        self,
        scheme: str | None,
        authority: AuthorityChange | None,
        path: PathChange | None,
        status: int,
        failed: Reply,
    ) -> None: ...
