"""Authentication: a credential that was verified is remembered, so that the next request costs a look into a table."""

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
    """One credential. `verify(ctx, credential)` judges one that is not remembered: it calls admit() or gives a Reply,
    at once or awaited. missing, invalid: the answers when there is none, or a bad one.
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
        """What a credential is remembered by."""
        return credential

    def judge(self, RequestContext ctx, bytes credential):
        """Has an unknown credential verified."""
        found = self.function(ctx, credential)
        if found is None:
            return CONTINUE
        if isinstance(found, Reply):
            return self.refuse(ctx, found, False)
        ctx.exchange.wait_for(self.name, found, self.verdict_of)
        return SUSPEND

    def verdict_of(self, RequestContext ctx, found):
        """The verdict of what an awaited verify() came to."""
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
        """Accepts a verified credential, and remembers it for so long."""
        if seconds > 0:
            if len(self.remembered) >= MAX_REMEMBERED:
                self.remembered.clear()
            self.remembered[self.key_of(credential)] = Remembered(value, monotonic_ns() + <int64_t>(seconds * 1e9))
        self.accept(ctx, credential, value)

    @property
    def bad(self):
        """The answer to a bad credential."""
        return self.invalid


cdef class JwtStep(IdentityStep):
    """jwtAuth: the claims go to ctx.jwt, the token leaves the request. verify() remembers what it finds good in the tables
    that trust() names.
    """

    def __cinit__(self, *_, **__):
        self.trusted = ()

    def trust(self, tuple trusted not None):
        """The tokens that each key set has verified, with the checks that their claims must pass here."""
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
    """JWT whose refusal says where the client finds its way: challenge(ctx) gives the Reply to every bad or missing
    token.
    """

    def __init__(self, str name, CredentialLocation location not None, str mode, verify, challenge):
        IdentityStep.__init__(self, name, location, mode, verify, None, None)
        self.challenge = challenge

    cdef int refuse(self, RequestContext ctx, Reply reply, bint absent) except -1:
        if self.mode == PERMISSIVE or absent and self.mode == OPTIONAL:
            return CONTINUE
        ctx.reply = self.challenge(ctx)
        return RESPOND


cdef class ApiKeyStep(IdentityStep):
    """apiKey: keys maps SHA-256 digests to metadata and the models that the key may use (None: all), so that no
    comparison tells how much of a guess was right.
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
        self.accept(ctx, credential, known)
        return CONTINUE

    cdef int accept(self, RequestContext ctx, bytes credential, object value) except -1:
        ctx.api_key, ctx.allowed_models = <tuple>value
        ctx.api_key_text = credential
        self.location.drop(ctx)
        return 0


cdef class BasicStep(IdentityStep):
    """basicAuth: the name goes to ctx.basic_user, the credential leaves the request. Passwords are not kept: what was
    verified is remembered by a digest that only this process can make.
    """

    cdef bytes key_of(self, bytes credential):
        return blake2b(credential, key=DIGEST_KEY, digest_size=16).digest()

    cdef int accept(self, RequestContext ctx, bytes credential, object value) except -1:
        ctx.basic_user = value
        self.location.drop(ctx)
        return 0
