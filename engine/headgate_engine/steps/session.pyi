from collections.abc import Awaitable, Callable

from headgate_engine.context.request import Reply, RequestContext
from headgate_engine.steps.identity import IdentityStep

class OidcStep(IdentityStep):
    """oidc: sets ctx.jwt and ctx.jwt_token to claims and ID token. It reads the session from ctx.own_cookies.

    session: name of the session cookie. callback, logout: paths that `verify` answers, like all requests without a
    cached session; its credential is None without a cookie, and with two that differ.
    Values given to admit() are pairs of claims and token.
    """

    def __init__(
        self,
        session: str,
        callback: str,
        logout: str,
        verify: Callable[[IdentityStep, RequestContext, bytes | None], Awaitable[Reply | None] | Reply | None],
    ) -> None: ...
