"""Agent cards; see card.pxd. Only what is a URL of the agent is replaced, where it stands: the rest stays as it is,
byte for byte.

A card that was changed is not what its author has signed, so its signatures go (A2A 0.3 section 5.5.6, RFC 7515).
"""

from libc.stdint cimport int64_t, uint8_t

from headgate_engine.a2a.place cimport AgentPlace
from headgate_engine.context.headers cimport H_CONTENT_ENCODING, H_CONTENT_LENGTH, HEAD_IS_HEAD, MessageHead
from headgate_engine.context.request cimport Reply, RequestContext
from headgate_engine.link.response cimport with_detail
from headgate_engine.peek.agent cimport (
    A_ADDITIONAL, A_SIGNATURES, A_SUPPORTED, A_URL, CardPeek, I_URL, InterfacePeek)
from headgate_engine.peek.items cimport value_end
from headgate_engine.peek.rpc cimport quoted
from headgate_engine.peek.scan cimport J_ARRAY, J_NONE, J_NULL, J_OBJECT, J_STRING, Found, skip_blanks
from headgate_engine.plan.tap cimport ResponseTap
from headgate_engine.steps.a2a cimport note
from headgate_engine.wire.buffer cimport ByteBuffer
from headgate_engine.wire.coding cimport coding_of, decoded

from headgate_engine.peek.json import PeekError
from headgate_engine.wire.coding import CodingError

# Interfaces of a card, at most.
MAX_INTERFACES = 256
TOO_LONG = "the agent card is too long"
ODD_CODING = "the content coding of the agent card is not one of gzip, deflate, br, zstd"
NOT_AN_OBJECT = "the agent card is not a JSON object"
NO_URL = "the agent card has neither `url` nor `supportedInterfaces`"
# Fields that describe the bytes of the answer: ranges (RFC 9110 section 14.3) and digests (RFC 9530, RFC 3230, RFC 1864).
OF_BYTES = (b"accept-ranges", b"content-digest", b"repr-digest", b"digest", b"content-md5")
cdef tuple _of_bytes = OF_BYTES
cdef bytes ETAG = b"etag"
SIGNATURES_REMOVED = "a2a.card.signatures_removed"


class CardError(ValueError):
    """The text is not an agent card whose URLs can be replaced."""


cdef class _Edits:
    """Replacements in a text, in the order of their places."""

    cdef bytes text
    cdef list found                      # (start, stop, new text)

    cdef bytes applied(self):
        cdef list parts = []
        cdef Py_ssize_t at = 0, start, stop
        self.found.sort()
        for start, stop, piece in self.found:
            parts.append(self.text[at:start])
            parts.append(piece)
            at = stop
        parts.append(self.text[at:])
        return b"".join(parts)


cdef tuple rewritten(bytes text, AgentPlace place):
    """Return the card with the client's URLs, and how many signatures it had. Raises CardError."""
    cdef CardPeek card = CardPeek.__new__(CardPeek)
    cdef _Edits edits = _Edits.__new__(_Edits)
    cdef Py_ssize_t signatures = 0
    try:
        card.scan(text, len(text))
    except PeekError as error:
        raise CardError(f"the agent card is not JSON: {error}") from None
    if card.kind != J_OBJECT:
        raise CardError(NOT_AN_OBJECT)
    if card.duplicate:
        # The client could use the one that was not replaced.
        raise CardError("a member of the agent card stands twice")
    edits.text, edits.found = text, []
    if card.found[A_URL].kind == J_STRING:
        _replace(edits, card.string_at(card.found[A_URL].start, card.found[A_URL].stop), card.found[A_URL].start,
                 card.found[A_URL].stop, place, True)
    elif card.found[A_SUPPORTED].kind == J_NONE:
        raise CardError(NO_URL)
    _interfaces(edits, &card.found[A_SUPPORTED], place, True)
    _interfaces(edits, &card.found[A_ADDITIONAL], place, False)
    if edits.found and card.found[A_SIGNATURES].kind == J_ARRAY:
        signatures = len(_items(text, &card.found[A_SIGNATURES]))
        if signatures:
            edits.found.append((card.found[A_SIGNATURES].start, card.found[A_SIGNATURES].stop, b"[]"))
    return edits.applied() if edits.found else text, signatures


cdef int _replace(_Edits edits, bytes url, Py_ssize_t start, Py_ssize_t stop, AgentPlace place, bint base) except -1:
    cdef str told = url.decode("utf-8", "replace")
    cdef str found = place.url_for(told, base)
    if found != told:
        edits.found.append((start, stop, quoted(found)))
    return 0


cdef list _items(bytes text, const Found* array):
    """Return (start, stop) of the items of an array. Raises CardError."""
    cdef const uint8_t* p = <const uint8_t*><const char*>text
    cdef Py_ssize_t n = len(text)
    cdef Py_ssize_t at = skip_blanks(p, array.start + 1, n)
    cdef Py_ssize_t end
    cdef list found = []
    while p[at] != 93:
        if len(found) == MAX_INTERFACES:
            raise CardError(f"a list of the agent card has more than {MAX_INTERFACES} entries")
        end = value_end(p, at, n)
        found.append((at, end))
        at = skip_blanks(p, end, n)
        if p[at] == 44:
            at = skip_blanks(p, at + 1, n)
    return found


cdef int _interfaces(_Edits edits, const Found* array, AgentPlace place, bint wanted) except -1:
    """Replace the URLs of a list. wanted: the version that has it demands that it is one."""
    cdef InterfacePeek item
    cdef bytes raw
    cdef Py_ssize_t start, stop
    if array.kind != J_ARRAY:
        if array.kind != J_NONE and not (array.kind == J_NULL and not wanted):
            raise CardError("the interfaces of the agent card are not a list")
        return 0
    for start, stop in _items(edits.text, array):
        raw = edits.text[start:stop]
        item = InterfacePeek.__new__(InterfacePeek)
        item.scan(raw, len(raw))
        if item.kind == J_OBJECT and item.duplicate:
            raise CardError("an interface of the agent card has two URLs")
        if item.kind == J_OBJECT and item.found[I_URL].kind == J_STRING:
            _replace(edits, item.string_at(item.found[I_URL].start, item.found[I_URL].stop),
                     start + item.found[I_URL].start, start + item.found[I_URL].stop, place, False)
    return 0


cdef CardTap card_tap(AgentPlace place, int64_t limit, Reply failed):
    cdef CardTap tap = CardTap.__new__(CardTap)
    tap.place, tap.limit, tap.failed = place, limit, failed
    return tap


cdef class CardTap(ResponseTap):
    cdef bint begin(self, RequestContext ctx, MessageHead head) except -1:
        """Responses that are not a card are not changed: a challenge, an error, "not modified"."""
        if not 200 <= head.status < 300 or head.status == 204:
            if head.status == 304:
                self._settle_head(head)
            return False
        if head.find_id(H_CONTENT_ENCODING, 0) >= 0 and not ctx.head.flags & HEAD_IS_HEAD:
            self.coding = coding_of(head.get("content-encoding"))
            if self.coding == "":
                self.fault = ODD_CODING
        elif head.content_length > self.limit:
            self.fault = TOO_LONG
        self._settle_head(head)
        head.drop_id(H_CONTENT_ENCODING)
        if ctx.head.flags & HEAD_IS_HEAD:
            # The length of the card that a GET would get is not known.
            head.drop_id(H_CONTENT_LENGTH)
            head.content_length = -1
            return False
        self.whole = self.rewrites = True
        self.kept = ByteBuffer()
        return True

    cdef int _settle_head(self, MessageHead head) except -1:
        """What said something of the agent's bytes says it of the gateway's no longer."""
        cdef int i = head.find(ETAG, len(ETAG), 0)
        cdef bytes tag
        for name in _of_bytes:
            head.drop_field(<bytes>name, len(<bytes>name))
        if i >= 0:
            tag = head.data[head.spans[i].value_off:head.spans[i].value_off + head.spans[i].value_len]
            if not tag.startswith(b"W/"):
                # Equal tags still mean equal cards, but not equal bytes (RFC 9110 section 8.8.1).
                tag = b"W/" + tag
                head.drop_field(ETAG, len(ETAG))
                head.add_field(ETAG, len(ETAG), tag, len(tag))
        return 0

    cdef bint feed(self, const char* p, Py_ssize_t n, ByteBuffer out) except -1:
        if self.kept.length + n > self.limit:
            self.kept.release()
            self.fault = TOO_LONG
        else:
            self.kept.append(p, n)
        return True

    cdef int finish(self, RequestContext ctx, ByteBuffer out) except -1:
        cdef bytes text = self.kept.take()
        cdef Py_ssize_t signatures
        if self.fault is not None:
            return 0
        try:
            if self.coding is not None:
                text = decoded(self.coding, text, self.limit)
            text, signatures = rewritten(text, self.place)
        except (CardError, CodingError) as error:
            self.reply = with_detail(self.failed, str(error))
            return 0
        if signatures:
            note(ctx, SIGNATURES_REMOVED, signatures)
        return out.append(text, len(text))

    cdef Reply refusal(self, RequestContext ctx):
        return with_detail(self.failed, self.fault)
