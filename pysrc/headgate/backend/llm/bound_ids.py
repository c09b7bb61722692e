"""Ids of what clients keep at providers: files, batches, stored responses, vector stores, calls.

A client gets such an id sealed: the vendor's prefix, a mark, and encrypted the rest of the vendor's id with the account
at the provider and who got it. Nothing is kept in the gateway, so an id is good at every worker and replica, and after
a restart with the same key. Equal ids of the vendor are equal for a client, whatever request told them.
"""

from __future__ import annotations

import base64
import hashlib
import re
from typing import Final

from headgate.backend.caller import owner_of
from headgate.crypto.sealed import StableSealer
from headgate.ir.model import LlmModel
from headgate_engine.context.request import Reply, RequestContext
from headgate_engine.llm.replies import refused
from headgate_engine.llm.resources import MARK, NAME_MARK

OWNER_BYTES: Final = 8
ACCOUNT_BYTES: Final = 6
NOBODY: Final = bytes(OWNER_BYTES)
# Offsets in what is sealed, behind one byte that tells whether guards look on.
OWNER_END: Final = 1 + OWNER_BYTES
ACCOUNT_END: Final = OWNER_END + ACCOUNT_BYTES
# How ids of what is kept begin: at OpenAI (https://platform.openai.com/docs/api-reference), which Azure and others
# follow, and at Anthropic (https://docs.anthropic.com/en/api). Ids of parts of answers (msg_, rs_) go with these.
PREFIXES: Final = (
    "file-", "file_", "batch_", "resp_", "conv_", "vs_", "vsfb_", "ftjob-", "upload_", "cntr_", "rtc_", "video_",
    "skill_", "eval_", "evalrun_", "asst_", "thread_", "run_", "msgbatch_", "chatcmpl-",
)  # fmt: skip
# What Google keeps has names (https://ai.google.dev/api/files), for its clients lower-case letters and digits.
COLLECTIONS: Final = ("files/", "cachedContents/", "batches/")
PROVIDER_ID: Final = re.compile(rb"(%s)([A-Za-z0-9_-]{4,200})" % "|".join(PREFIXES).encode())
_NAMES: Final = "|".join(COLLECTIONS).encode()
NAME: Final = re.compile(rb"(%s)([a-z0-9-]{1,63})" % _NAMES)
# The address of a file, which is an argument for Google alone: it stays one of Google's.
NAME_URL: Final = re.compile(rb"(https?://[^/?#]+(?:/[A-Za-z0-9._-]+)*/)(%s)([a-z0-9-]{1,63})([:?].*)?" % _NAMES)
# The address of what a client reads next (https://docs.anthropic.com/en/api/retrieving-message-batch-results): at the
# gateway, for it takes the gateway's key.
NEXT_URL: Final = re.compile(rb"https?://[^/?#]+((?:/[A-Za-z0-9._-]+)*/)([A-Za-z0-9._-]+)(/results)")
UPLOAD_URL: Final = re.compile(rb"https?://[^/?#]+(/.*)")
UPLOAD: Final = b"upload_id="
UPLOAD_ID: Final = re.compile(rb"(?<=[?&])upload_id=([^&]{1,500})")
_SEALED: Final = rb"((?:%s))%s([A-Za-z0-9_-]{32,900})" % ("|".join((*PREFIXES, UPLOAD.decode())).encode(), MARK)
_SEALED_NAME: Final = rb"((?:%s))%s([a-z2-7]{40,400})" % (_NAMES, NAME_MARK)
# An id is a whole string in a body, and a whole segment or value in a target; a name also ends an address.
IN_BODY: Final = re.compile(rb'(?:(?<=")%s|(?<=["/])%s)(?=")' % (_SEALED, _SEALED_NAME))
IN_TARGET: Final = re.compile(rb"(?:(?<=[/=?&])%s|(?<=/)%s)(?![A-Za-z0-9_%%.~-])" % (_SEALED, _SEALED_NAME))

NOT_YOURS: Final = refused(404, "id_not_found", "the request contains an id that was not given to this caller")
SEVERAL: Final = refused(400, "ids_of_several_providers", "the ids of the request belong to different providers")


class BoundIds:
    """Seals and opens ids. `sealer` has the key that all workers and replicas share."""

    def __init__(self, sealer: StableSealer) -> None:
        self._sealer = sealer

    def owner_of(self, ctx: RequestContext) -> bytes:
        """Return a digest of the caller, empty if no policy has identified it."""
        return bytes.fromhex(owner_of(ctx))[:OWNER_BYTES]

    def place(self, ctx: RequestContext, account: bytes, guarded: bool) -> bytes:
        """Return what ids in the answer to a request are bound to. `guarded`: guards look at requests or answers."""
        return bytes((guarded,)) + (self.owner_of(ctx) or NOBODY) + account

    def seal(self, value: bytes, place: bytes, origin: bytes | None = None) -> bytes | None:
        """Return the sealed id, None for what is no id of the kinds that are sealed.

        In addresses the id is sealed, too; one that a client is to read next leads to `origin`, the gateway's own.
        """
        found = PROVIDER_ID.fullmatch(value)
        if found is not None:
            if found[2].startswith(MARK):
                return None
            return found[1] + MARK + self._sealer.seal(place + found[2], found[1])
        if (found := NAME.fullmatch(value)) is not None:
            return self._named(found[1], found[2], place)
        if not value.startswith(b"http"):
            return None
        if (found := NAME_URL.fullmatch(value)) is not None:
            named = self._named(found[2], found[3], place)
            return None if named is None else found[1] + named + (found[4] or b"")
        found = NEXT_URL.fullmatch(value) if origin is not None else None
        sealed = None if found is None else self.seal(found[2], place)
        return None if found is None or sealed is None else (origin or b"") + found[1] + sealed + found[3]

    def _named(self, collection: bytes, name: bytes, place: bytes) -> bytes | None:
        if name.startswith(NAME_MARK):
            return None
        whole = base64.urlsafe_b64decode(_padded(self._sealer.seal(place + name, collection), 4))
        return collection + NAME_MARK + base64.b32encode(whole).rstrip(b"=").lower()

    def upload(self, url: bytes, place: bytes, origin: bytes) -> bytes:
        """Return the address for the pieces of an upload at the gateway's `origin`, bound like an id."""
        found = UPLOAD_URL.fullmatch(url)
        if found is None:
            return url

        def bound(value: re.Match[bytes]) -> bytes:
            return UPLOAD + MARK + self._sealer.seal(place + value[1], UPLOAD)

        return origin + UPLOAD_ID.sub(bound, found[1])

    def opened(
        self, text: bytes, ctx: RequestContext, quoted: bool, bound: bytes | None
    ) -> tuple[bytes, bool, bytes | None] | Reply:
        """Return the text with the provider's ids, whether one was made where guards look on, and the account of all.

        `quoted`: the text is JSON, not the target of a request. `bound`: the account of ids elsewhere in the request.
        Ids that cannot be opened stay. The reply refuses ids of another caller or of several accounts.
        """
        owner = self.owner_of(ctx) or NOBODY
        parts: list[bytes] = []
        guarded, at = False, 0
        for found in (IN_BODY if quoted else IN_TARGET).finditer(text):
            prefix = found[1] or found[3]
            content = self._sealer.open(found[2] or _base64(found[4]), prefix)
            if content is None:
                continue
            made_for, account = content[1:OWNER_END], content[OWNER_END:ACCOUNT_END]
            if made_for not in (NOBODY, owner):
                return NOT_YOURS
            if bound not in (None, account):
                return SEVERAL
            guarded, bound = guarded or content[0] != 0, account
            parts += (text[at : found.start()], prefix, content[ACCOUNT_END:])
            at = found.end()
        return b"".join((*parts, text[at:])), guarded, bound


def _padded(text: bytes, size: int) -> bytes:
    return text + b"=" * (-len(text) % size)


def _base64(name: bytes) -> bytes:
    """Return the text that StableSealer opens for a name; what is no Base32 opens nowhere."""
    try:
        whole = base64.b32decode(_padded(name, 8).upper())
    except ValueError:
        return b""
    if base64.b32encode(whole).rstrip(b"=").lower() != name:
        return b""  # another spelling of the same bytes
    return base64.urlsafe_b64encode(whole).rstrip(b"=")


def account_of(model: LlmModel) -> bytes:
    """Return what tells a provider's account from others: its name in `providers`, else its address and key."""
    provider = model.provider
    if model.account:
        told = f"name {model.account}"
    else:
        auth = model.policies.auth
        key = None if auth is None else auth.fixed_header
        secret = "" if key is None else key.key.secret.reveal()
        told = f"at {provider.kind} {provider.endpoint.address} {provider.path_prefix} {provider.azure} {secret}"
    return hashlib.blake2b(told.encode(), digest_size=ACCOUNT_BYTES).digest()
