"""Ids of what clients keep at providers: files, batches, stored responses, vector stores, calls.

A client gets such an id sealed: the vendor's prefix, a mark, and encrypted the rest of the vendor's id with the account
at the provider and who got it. Nothing is kept in the gateway, so an id is good at every worker and replica, and after
a restart with the same key. Equal ids of the vendor are equal for a client, whatever request told them.
"""

from __future__ import annotations

import hashlib
import re
from typing import Final

from headgate.backend.caller import owner_of
from headgate.crypto.sealed import StableSealer
from headgate.ir.model import LlmModel
from headgate_engine.context.request import Reply, RequestContext
from headgate_engine.llm.replies import refused
from headgate_engine.llm.resources import MARK

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
    "skill_", "eval_", "evalrun_", "asst_", "thread_", "run_", "msgbatch_",
)  # fmt: skip
PROVIDER_ID: Final = re.compile(rb"(%s)([A-Za-z0-9_-]{4,200})" % "|".join(PREFIXES).encode())
_SEALED: Final = rb"((?:%s))%s([A-Za-z0-9_-]{32,900})" % ("|".join(PREFIXES).encode(), MARK)
# An id is a whole string in a body, and a whole segment or value in a target.
IN_BODY: Final = re.compile(rb'(?<=")' + _SEALED + rb'(?=")')
IN_TARGET: Final = re.compile(rb"(?<=[/=])" + _SEALED + rb"(?![A-Za-z0-9_%.~-])")

NOT_YOURS: Final = refused(404, "id_not_found", "the request has an id that this caller did not get from the gateway")
SEVERAL: Final = refused(400, "ids_of_several_providers", "the ids of the request belong to different providers")


class BoundIds:
    """Seals and opens ids. `sealer` has the key that all workers and replicas share."""

    def __init__(self, sealer: StableSealer) -> None:
        self._sealer = sealer

    def owner_of(self, ctx: RequestContext) -> bytes:
        """Return a digest of the caller, empty if no policy has told who that is."""
        return bytes.fromhex(owner_of(ctx))[:OWNER_BYTES]

    def place(self, ctx: RequestContext, account: bytes, guarded: bool) -> bytes:
        """Return what ids in the answer to a request are bound to. `guarded`: guards look at requests or answers."""
        return bytes((guarded,)) + (self.owner_of(ctx) or NOBODY) + account

    def seal(self, value: bytes, place: bytes) -> bytes | None:
        """Return the sealed id, None for what is no id of the kinds that are sealed."""
        found = PROVIDER_ID.fullmatch(value)
        if found is None or found[2].startswith(MARK):
            return None
        return found[1] + MARK + self._sealer.seal(place + found[2], found[1])

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
            content = self._sealer.open(found[2], found[1])
            if content is None:
                continue
            made_for, account = content[1:OWNER_END], content[OWNER_END:ACCOUNT_END]
            if made_for not in (NOBODY, owner):
                return NOT_YOURS
            if bound not in (None, account):
                return SEVERAL
            guarded, bound = guarded or content[0] != 0, account
            parts += (text[at : found.start()], found[1], content[ACCOUNT_END:])
            at = found.end()
        return b"".join((*parts, text[at:])), guarded, bound


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
