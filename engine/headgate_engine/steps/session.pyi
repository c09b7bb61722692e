from collections.abc import Awaitable, Callable

from headgate_engine.context.request import Reply, RequestContext
from headgate_engine.steps.identity import IdentityStep

class OidcStep(IdentityStep):
    """oidc: sets ctx.jwt and ctx.jwt_token to claims and ID token, removes the policy's cookies from the request.

    session: name of the session cookie. login_prefix: prefix of the cookies of unfinished logins. callback, logout:
    paths that `verify` answers, like all requests without a cached session; its credential is None without a cookie.
    Values given to admit() are pairs of claims and token.
    """

    def __init__(
        self,
        session: str,
        login_prefix: str,
        callback: str,
        logout: str,
        verify: Callable[[IdentityStep, RequestContext, bytes | None], Awaitable[Reply | None] | Reply | None],
    ) -> None: ...
