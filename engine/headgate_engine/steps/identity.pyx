"""Authentication. Verified credentials are cached, so that the next request costs one look-up."""

import secrets
from hashlib import blake2b, sha256

from headgate_engine.clock cimport monotonic_ns
from headgate_engine.context.request cimport Reply, RequestContext
from headgate_engine.plan.step cimport CONTINUE, RESPOND, SUSPEND, AsyncStep
from headgate_engine.steps.location cimport CredentialLocation
from headgate_engine.steps.verified cimport VerifiedTokens

from libc.stdint cimport int64_t

DIGEST_KEY = secrets.token_bytes(32)
MODES = {"strict": STRICT, "optional": OPTIONAL, "permissive": PERMISSIVE}


cdef class Remembered:
    def __init__(self, value, int64_t until_ns):
        self.value = value
        self.until_ns = until_ns


cdef class IdentityStep(AsyncStep):
    """Authentication by one credential.

    `verify(step, ctx, credential)` is called for a credential that is not in the cache. It calls step.admit(), or returns a
    Reply or an awaitable of one. It is given the step so that it need not hold it: plans must be free of cycles.
    missing, invalid: the replies to requests without a credential, or with a bad one.
    """

    def __init__(self, str name, CredentialLocation location not None, str mode, verify, Reply missing, Reply invalid):
        self.name = name
        self.location = location
        self.mode = MODES[mode]
        self.function = verify
        self.missing = missing
        self.invalid = invalid
        self.remembered = {}

    cdef int run(self, RequestContext ctx) except -1:
        cdef bytes credential = self.location.find(ctx)
        cdef Remembered known
        if credential is None:
            if self.location.conflict:
                return self.refuse(ctx, self.invalid, False)
            return self.refuse(ctx, self.missing, True)
        key = self.key_of(credential)
        found = self.remembered.get(key)
        if found is not None:
            known = <Remembered>found
            if known.until_ns > monotonic_ns():
                self.accept(ctx, credential, known.value)
                return CONTINUE
            del self.remembered[key]
        return self.judge(ctx, credential)

    cdef bytes key_of(self, bytes credential):
        """Return the credential's key in the cache."""
        return credential

    def judge(self, RequestContext ctx, bytes credential):
        """Verify a credential that is not in the cache. Return a verdict."""
        found = self.function(self, ctx, credential)
        if found is None:
            return CONTINUE
        if isinstance(found, Reply):
            return self.refuse(ctx, found, False)
        ctx.exchange.wait_for(self.name, found, self.verdict_of)
        return SUSPEND

    def verdict_of(self, RequestContext ctx, found):
        """Return the verdict for the result of an awaited verify()."""
        if found is None:
            return CONTINUE
        if not isinstance(found, Reply):
            raise TypeError(f"step {self.name!r} gave {type(found).__name__}, not None or a Reply")
        return self.refuse(ctx, found, False)

    cdef int accept(self, RequestContext ctx, bytes credential, object value) except -1:
        raise NotImplementedError

    cdef int refuse(self, RequestContext ctx, Reply reply, bint absent) except -1:
        if self.mode == PERMISSIVE or absent and self.mode == OPTIONAL:
            return CONTINUE
        ctx.reply = reply
        return RESPOND

    # -- for verify() --------------------------------------------------------------------------------------------------
    def admit(self, RequestContext ctx, bytes credential, value, double seconds=0.0):
        """Accept a verified credential, and cache it for `seconds`."""
        if seconds > 0:
            if len(self.remembered) >= MAX_REMEMBERED:
                self.remembered.clear()
            self.remembered[self.key_of(credential)] = Remembered(value, monotonic_ns() + <int64_t>(seconds * 1e9))
        self.accept(ctx, credential, value)


cdef class JwtStep(IdentityStep):
    """jwtAuth: sets ctx.jwt to the claims and removes the token from the request.

    verify() records verified tokens in the tables that trust() sets.
    """

    def __cinit__(self, *_, **__):
        self.trusted = ()

    def trust(self, tuple trusted not None):
        """Set the verified tokens of each key set, with the checks that their claims must pass in this step."""
        for tokens, _ in trusted:
            if not isinstance(tokens, VerifiedTokens):
                raise TypeError("trusted holds pairs of VerifiedTokens and checks")
        self.trusted = trusted

    cdef int run(self, RequestContext ctx) except -1:
        cdef bytes credential = self.location.find(ctx)
        cdef dict claims
        cdef tuple pair
        if credential is None:
            if self.location.conflict:
                return self.refuse(ctx, self.invalid, False)
            return self.refuse(ctx, self.missing, True)
        for pair in self.trusted:
            claims = (<VerifiedTokens>pair[0]).accepted(credential, pair[1])
            if claims is not None:
                self.accept(ctx, credential, claims)
                return CONTINUE
        return self.judge(ctx, credential)

    cdef int accept(self, RequestContext ctx, bytes credential, object value) except -1:
        ctx.jwt = value
        ctx.jwt_token = credential
        self.location.drop(ctx)
        subject = (<dict>value).get("sub")
        if type(subject) is str:
            ctx.add_log_field("jwt.sub", subject)
        return 0


cdef class ChallengeStep(JwtStep):
    """JWT with a challenge: challenge(ctx, "") returns the Reply to a request without a token. What verify() returns is made
    by it, too."""

    def __init__(self, str name, CredentialLocation location not None, str mode, verify, challenge):
        IdentityStep.__init__(self, name, location, mode, verify, None, None)
        self.challenge = challenge

    cdef int refuse(self, RequestContext ctx, Reply reply, bint absent) except -1:
        if self.mode == PERMISSIVE or absent and self.mode == OPTIONAL:
            return CONTINUE
        ctx.reply = self.challenge(ctx, "") if reply is None else reply
        return RESPOND


cdef class ApiKeyStep(IdentityStep):
    """apiKey: keys maps SHA-256 digests to metadata and the models that the key may use (None: all).

    Look-ups by digest reveal nothing about a key by their duration.
    """

    def __init__(self, str name, CredentialLocation location not None, str mode, dict keys, Reply missing, Reply invalid):
        IdentityStep.__init__(self, name, location, mode, None, missing, invalid)
        self.keys = keys

    cdef int run(self, RequestContext ctx) except -1:
        cdef bytes credential = self.location.find(ctx)
        if credential is None:
            if self.location.conflict:
                return self.refuse(ctx, self.invalid, False)
            return self.refuse(ctx, self.missing, True)
        known = self.keys.get(sha256(credential).digest())
        if known is None:
            return self.refuse(ctx, self.invalid, False)
        if ctx.key_use is not None:
            known = ctx.key_use.narrowed(known)
        self.accept(ctx, credential, known)
        return CONTINUE

    cdef int accept(self, RequestContext ctx, bytes credential, object value) except -1:
        ctx.api_key, ctx.allowed_models = <tuple>value
        ctx.api_key_text = credential
        self.location.drop(ctx)
        return 0


cdef class BasicStep(IdentityStep):
    """basicAuth: sets ctx.basic_user to the name and removes the credential from the request.

    Passwords are not stored: the cache's key is a digest that only this process can compute.
    """

    cdef bytes key_of(self, bytes credential):
        return blake2b(credential, key=DIGEST_KEY, digest_size=16).digest()

    cdef int accept(self, RequestContext ctx, bytes credential, object value) except -1:
        ctx.basic_user = value
        self.location.drop(ctx)
        return 0
