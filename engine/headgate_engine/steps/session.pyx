"""Browser sessions. Verified session cookies are cached; all other requests go to the policy in Python."""

from headgate_engine.clock cimport monotonic_ns
from headgate_engine.context.headers cimport MessageHead
from headgate_engine.context.request cimport RequestContext
from headgate_engine.plan.step cimport CONTINUE
from headgate_engine.steps.identity cimport STRICT, IdentityStep, Remembered
from headgate_engine.steps.location cimport CredentialLocation

from libc.string cimport memcmp


cdef class OidcStep(IdentityStep):
    """oidc: sets ctx.jwt and ctx.jwt_token to claims and ID token. It reads the session from ctx.own_cookies.

    session: name of the session cookie. callback, logout: paths that `verify` answers, like all requests without a
    cached session; its credential is None without a cookie, and with two that differ.
    Values given to admit() are pairs of claims and token.
    """

    def __init__(self, str session, str callback, str logout, verify):
        self.name = "oidc"
        self.location = CredentialLocation("cookie", session)
        self.mode = STRICT
        self.function = verify
        self.remembered = {}
        self.session = session.encode() + b"="
        self.callback = callback.encode()
        self.logout = logout.encode()

    cdef int run(self, RequestContext ctx) except -1:
        cdef bytes credential
        cdef Remembered known
        if is_preflight(ctx.head):
            return CONTINUE
        credential = self.found(ctx)
        if credential is None or self.own_path(ctx.head):
            return self.judge(ctx, credential)
        found = self.remembered.get(credential)
        if found is not None:
            known = <Remembered>found
            if known.until_ns > monotonic_ns():
                self.accept(ctx, credential, known.value)
                return CONTINUE
            del self.remembered[credential]
        return self.judge(ctx, credential)

    cdef bytes found(self, RequestContext ctx):
        cdef bytes value = None, part
        if ctx.own_cookies is None:
            return None
        for part in ctx.own_cookies:
            if part.startswith(self.session):
                if value is not None and value != part[len(self.session):]:
                    return None
                value = part[len(self.session):]
        return value or None

    cdef bint own_path(self, MessageHead head) except -1:
        cdef const char* path = head.data + head.target_off
        if head.path_len == len(self.callback) and memcmp(path, <const char*>self.callback, head.path_len) == 0:
            return True
        return head.path_len == len(self.logout) and memcmp(path, <const char*>self.logout, head.path_len) == 0

    cdef int accept(self, RequestContext ctx, bytes credential, object value) except -1:
        ctx.jwt, ctx.jwt_token = <tuple>value
        subject = ctx.jwt.get("sub")
        if type(subject) is str:
            ctx.add_log_field("jwt.sub", subject)
        return 0


cdef bint is_preflight(MessageHead head) noexcept:
    """Return whether it is a CORS preflight (https://fetch.spec.whatwg.org/#cors-preflight-request).

    A preflight has no cookies, so it cannot have a session.
    """
    return (head.method_len == 7 and memcmp(head.data + head.method_off, b"OPTIONS", 7) == 0
            and head.find(b"origin", 6, 0) >= 0 and head.find(b"access-control-request-method", 29, 0) >= 0)
