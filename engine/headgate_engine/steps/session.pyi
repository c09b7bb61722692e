from collections.abc import Awaitable, Callable

from headgate_engine.context.request import Reply, RequestContext
from headgate_engine.steps.identity import IdentityStep

class OidcStep(IdentityStep):
    """oidc: claims and ID token of a session go to ctx.jwt and ctx.jwt_token, the policy's cookies leave the request.

    session: name of the session cookie. login_prefix: how the cookies of logins under way begin. callback, logout:
    paths that `verify` answers, as everything without a session that is remembered; its credential is None without a
    cookie. Values given to admit() are pairs of claims and token.
    """

    def __init__(
        self,
        session: str,
        login_prefix: str,
        callback: str,
        logout: str,
        verify: Callable[[RequestContext, bytes | None], Awaitable[Reply | None] | Reply | None],
    ) -> None: ...
