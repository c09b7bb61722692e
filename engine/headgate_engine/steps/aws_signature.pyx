"""AWS Signature Version 4 in headers; see aws_signature.pxd.

Source: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html. The signed fields
are host, content-type, date and those that begin with x-amz- or x-amzn-, except the trace id, which proxies change.
"""

import hmac
import time
from hashlib import sha256
from urllib.parse import unquote_to_bytes

from headgate_engine.context.headers cimport SPAN_DROPPED, SPAN_SENSITIVE, HeaderSpan, MessageHead
from headgate_engine.context.request cimport BODY_PREFIX, RequestContext
from headgate_engine.plan.step cimport CONTINUE, Step

from cpython.bytearray cimport PyByteArray_AS_STRING
from libc.stdint cimport int64_t
from libc.stdio cimport snprintf
from libc.time cimport time_t, tm

cdef extern from "<time.h>" nogil:
    tm* gmtime_r(const time_t* clock, tm* out)

cdef bytes ALGORITHM = b"AWS4-HMAC-SHA256"
# Size of the cache of signing keys for the days, regions and services of one secret.
cdef int MAX_DERIVED = 64
# Services that sign the path as it is sent, and need a field with the hash of the body.
cdef frozenset PLAIN_PATHS = frozenset((b"s3", b"s3-outposts", b"s3-object-lambda", b"s3express"))
# Values that an S3 client may send instead of the hash; they describe how the body is framed.
UNSIGNED = (b"UNSIGNED-PAYLOAD", b"STREAMING-UNSIGNED-PAYLOAD-TRAILER")
cdef bytes HASH_FIELD = b"x-amz-content-sha256"
cdef bytes TOKEN_FIELD = b"x-amz-security-token"
cdef bytes TRACE_FIELD = b"x-amzn-trace-id"
cdef const unsigned char* HEX = b"0123456789ABCDEF"


cdef class AwsKeys:
    """Keys for signatures. access: the key id. token: the session token of temporary credentials.

    Raises ValueError, without the values, if one is invalid in a header.
    """

    def __init__(self, bytes access not None, bytes secret not None, bytes token=None):
        if any(c <= 32 or c >= 127 for c in access + (token or b"")):
            raise ValueError("an AWS key id or session token has a character in it that cannot stand in a header")
        self.access = access
        self.secret = secret
        self.token = token
        self.derived = {}

    def __repr__(self):
        return "AwsKeys(<redacted>)"

    def __reduce__(self):
        raise TypeError("a credential stays in its process")

    cdef bytes signing_key(self, bytes day, bytes region, bytes service):
        key = (day, region, service)
        found = self.derived.get(key)
        if found is None:
            if len(self.derived) >= MAX_DERIVED:
                self.derived.clear()
            found = b"AWS4" + self.secret
            for part in (day, region, service, b"aws4_request"):
                found = hmac.digest(found, part, "sha256")
            self.derived[key] = found
        return found


cdef bytes canonical_path(bytes path, bytes service):
    """Return the canonical path: RFC 3986 section 5.2.4 without empty segments, escaped once more; for S3 as sent."""
    if service in PLAIN_PATHS:
        return path
    if b"/." in path or b"//" in path:
        kept = []
        for segment in path.split(b"/"):
            if segment == b"..":
                if kept:
                    kept.pop()
            elif segment and segment != b".":
                kept.append(segment)
        path = b"/" + b"/".join(kept) + (b"/" if kept and path.endswith(b"/") else b"")
    return escaped(path, True)


cdef bytes canonical_query(bytes query):
    pairs = []
    for part in query.split(b"&"):
        if part:
            name, _, value = part.partition(b"=")
            pairs.append((escaped(unescaped(name), False), escaped(unescaped(value), False)))
    pairs.sort()
    return b"&".join([name + b"=" + value for name, value in pairs])


cdef bytes unescaped(bytes text):
    return unquote_to_bytes(text.replace(b"+", b" ")) if b"%" in text or b"+" in text else text


cdef bytes escaped(bytes text, bint slashes):
    """Escape all characters except letters, digits, -_.~ and, with `slashes`, slashes."""
    cdef const unsigned char* p = text
    cdef Py_ssize_t n = len(text), i, at = 0
    cdef bytearray out = bytearray(3 * n)
    cdef unsigned char* o = <unsigned char*>PyByteArray_AS_STRING(out)
    cdef unsigned char c
    for i in range(n):
        c = p[i]
        if 97 <= c <= 122 or 65 <= c <= 90 or 48 <= c <= 57 or c in b"-_.~" or slashes and c == 47:
            o[at] = c
            at += 1
        else:
            o[at] = 37
            o[at + 1] = HEX[c >> 4]
            o[at + 2] = HEX[c & 15]
            at += 3
    return text if at == n else (<char*>o)[:at]


cdef bint is_signed(bytes name):
    if name.startswith(b"x-amz"):
        return (name.startswith(b"x-amz-") or name.startswith(b"x-amzn-")) and name != TRACE_FIELD
    return name == b"content-type" or name == b"date"


cdef tuple canonical_fields(MessageHead head):
    """Return (lines of the signed fields, their names)."""
    cdef HeaderSpan* span
    cdef int i
    cdef dict found = {b"host": [head.data[head.authority_off:head.authority_off + head.authority_len]]}
    for i in range(head.count):
        span = &head.spans[i]
        # All other signed names begin with c, d or x.
        if span.flags & SPAN_DROPPED or head.data[span.name_off] not in b"cdxCDX":
            continue
        name = head.data[span.name_off:span.name_off + span.name_len].lower()
        if is_signed(name):
            value = head.data[span.value_off:span.value_off + span.value_len]
            found.setdefault(name, []).append(b" ".join(value.split()))
    names = sorted(found)
    lines = b"".join([name + b":" + b",".join(found[name]) + b"\n" for name in names])
    return lines, b";".join(names)


cdef int put(MessageHead head, bytes name, bytes value, bint secret) except -1:
    head.drop_field(name, len(name))
    head.add_field(name, len(name), value, len(value))
    if secret:
        head.spans[head.count - 1].flags |= SPAN_SENSITIVE
    return 0


cdef bytes payload_hash(MessageHead head, bytes body, bytes service):
    cdef int i
    cdef bytes told
    if service in PLAIN_PATHS:
        i = head.find(HASH_FIELD, len(HASH_FIELD), 0)
        if i >= 0:
            told = head.data[head.spans[i].value_off:head.spans[i].value_off + head.spans[i].value_len]
            if told in UNSIGNED:
                return told
    return sha256(b"" if body is None else body).hexdigest().encode()


cdef int sign_head(MessageHead head, bytes body, AwsKeys keys, bytes region, bytes service, int64_t now) except -1:
    cdef char text[32]
    cdef time_t clock = <time_t>now
    cdef tm at
    cdef bytes stamp, day, hashed, scope, lines, names, signature
    cdef bytes target = head.data[head.target_off:head.target_off + head.target_len]
    cdef bytes method = head.data[head.method_off:head.method_off + head.method_len]
    gmtime_r(&clock, &at)
    snprintf(text, 32, "%04d%02d%02dT%02d%02d%02dZ", at.tm_year + 1900, at.tm_mon + 1, at.tm_mday, at.tm_hour,
             at.tm_min, at.tm_sec)
    stamp = text[:16]
    day = stamp[:8]
    hashed = payload_hash(head, body, service)
    put(head, b"x-amz-date", stamp, False)
    head.drop_field(TOKEN_FIELD, len(TOKEN_FIELD))
    head.drop_field(HASH_FIELD, len(HASH_FIELD))
    head.drop_field(b"authorization", 13)
    if keys.token is not None:
        put(head, TOKEN_FIELD, keys.token, True)
    if service in PLAIN_PATHS:
        put(head, HASH_FIELD, hashed, False)
    lines, names = canonical_fields(head)
    canonical = b"\n".join((method, canonical_path(target[:head.path_len] or b"/", service),
                            canonical_query(target[head.path_len + 1:]), lines, names, hashed))
    scope = b"/".join((day, region, service, b"aws4_request"))
    told = b"\n".join((ALGORITHM, stamp, scope, sha256(canonical).hexdigest().encode()))
    signature = hmac.digest(keys.signing_key(day, region, service), told, "sha256").hex().encode()
    return put(head, b"authorization", b"".join((
        ALGORITHM, b" Credential=", keys.access, b"/", scope, b", SignedHeaders=", names, b", Signature=", signature)),
        True)


cdef class AwsSignatureStep(Step):
    def __init__(self, HeldCredential held, *, str region not None, str service not None):
        self.name = "backendAuth"
        self.held = held
        self.region = region.encode("ascii")
        self.service = service.encode("ascii")

    def __repr__(self):
        return "AwsSignatureStep(<redacted>)"

    cdef int run(self, RequestContext ctx) except -1:
        keys = ctx.signing_keys if self.held is None else self.held.value
        if keys is None:
            raise RuntimeError("a request is signed before there are keys")
        if ctx.body_state == BODY_PREFIX:
            raise RuntimeError("a request is signed before its body is there")
        sign_head(ctx.head, ctx.body, <AwsKeys?>keys, self.region, self.service, <int64_t>time.time())
        return CONTINUE


def sign(str method, str target, str authority, headers, bytes body, AwsKeys keys not None, *, str region, str service,
         now=None):
    """Return the headers of a request with those of its signature, for requests that Python code sends.

    AWS Signature Version 4. The path is encoded once more, as all services except S3 require. now: Unix time.
    """
    cdef MessageHead head = MessageHead()
    head.set_request(method, target, authority)
    for name, value in headers:
        head.add(name, value)
    sign_head(head, body, keys, region.encode("ascii"), service.encode("ascii"),
              <int64_t>(time.time() if now is None else now))
    return head.items()
