# cython: boundscheck=False
"""A2A messages; see agent.pxd. boundscheck is off: all spans come from the scan of the same text.

Sources: https://a2a-protocol.org/v0.3.0/specification/, https://a2a-protocol.org/v1.0.0/specification/.
"""

from libc.stdint cimport uint8_t
from libc.string cimport memset

from headgate_engine.peek.json cimport FIELDS, ObjectPeek, fill_table
from headgate_engine.peek.scan cimport (
    DEPTH_LIMIT, F_EARLY_END, F_NONE, J_NONE, J_NULL, J_NUMBER, J_STRING, Field, Scan, scan_text)

# Members of calls.
cdef enum:
    M_METHOD = 1

# Members of answers. Those of one kind stand beside each other, and the first that there is counts.
cdef enum:
    O_ERROR = 1
    O_CODE
    O_RESULT
    O_KIND
    O_TASK
    O_MESSAGE
    O_STATUS
    O_TASK_STATUS
    O_STATE
    O_TASK_STATE
    O_CONTEXT
    O_TASK_CONTEXT
    O_MESSAGE_CONTEXT
    O_ALL

# Bytes of a value in the log, at most.
MAX_TEXT = 256
# Digits of an error code.
MAX_CODE = 18

CARD_FIELDS = {
    A_URL: ("url",),
    A_ADDITIONAL: ("additionalInterfaces",),
    A_SUPPORTED: ("supportedInterfaces",),
    A_SIGNATURES: ("signatures",),
}
INTERFACE_FIELDS = {I_URL: ("url",)}
CALL_FIELDS = {M_METHOD: ("method",)}


def _outcome_table(*outer):
    return {
        O_ERROR: ("error",),
        O_CODE: ("error", "code"),
        O_RESULT: ("result",),
        O_KIND: (*outer, "kind"),
        O_TASK: (*outer, "task"),
        O_MESSAGE: (*outer, "message"),
        O_STATUS: (*outer, "status"),
        O_TASK_STATUS: (*outer, "task", "status"),
        O_STATE: (*outer, "status", "state"),
        O_TASK_STATE: (*outer, "task", "status", "state"),
        O_CONTEXT: (*outer, "contextId"),
        O_TASK_CONTEXT: (*outer, "task", "contextId"),
        O_MESSAGE_CONTEXT: (*outer, "message", "contextId"),
    }


OUTCOME_FIELDS = _outcome_table("result")
BARE_OUTCOME_FIELDS = _outcome_table()

cdef Field card_fields[FIELDS]
cdef Field interface_fields[FIELDS]
cdef Field call_fields[FIELDS]
cdef Field outcome_fields[2][FIELDS]       # within `result`, at the top
fill_table(CARD_FIELDS, card_fields)
fill_table(INTERFACE_FIELDS, interface_fields)
fill_table(CALL_FIELDS, call_fields)
fill_table(OUTCOME_FIELDS, outcome_fields[0])
fill_table(BARE_OUTCOME_FIELDS, outcome_fields[1])


cdef class CardPeek(ObjectPeek):
    def __cinit__(self):
        self.fields = card_fields
        self.count = A_SIGNATURES + 1


cdef class InterfacePeek(ObjectPeek):
    def __cinit__(self):
        self.fields = interface_fields
        self.count = I_URL + 1


cdef class CallPeek(ObjectPeek):
    def __cinit__(self):
        self.fields = call_fields
        self.count = M_METHOD + 1

    cdef str method_of(self, const char* p, Py_ssize_t n, bint cut):
        cdef Scan s
        memset(self.found, 0, self.count * sizeof(self.found[0]))
        s.text = <const uint8_t*>p
        s.length = n
        s.fields, s.count, s.max_depth, s.found = self.fields, self.count, DEPTH_LIMIT, self.found
        s.duplicate = s.empty = False
        s.fault = F_NONE
        # What was found before the text was cut is a whole member.
        if scan_text(&s) < 0 and not (cut and s.fault == F_EARLY_END) or self.found[M_METHOD].kind != J_STRING:
            return None
        self.text = p
        return _short(self.string_at(self.found[M_METHOD].start, self.found[M_METHOD].stop))

    def method(self, bytes text not None, bint cut=False):
        """Return the method of a call, None without one. cut: the text is the beginning of a longer one."""
        return self.method_of(text, len(text), cut)


cdef class OutcomePeek(ObjectPeek):
    def __cinit__(self):
        self.look(False)

    cdef void look(self, bint bare) noexcept:
        self.fields = outcome_fields[bare]
        self.count = O_ALL
        self.max_depth = DEPTH_LIMIT

    cdef bint _there(self, int field) noexcept:
        return self.found[field].kind != J_NONE and self.found[field].kind != J_NULL

    cdef list fields_of(self, bint failed):
        cdef list told = []
        cdef str text
        if failed or self._there(O_ERROR):
            told.append(("a2a.response.outcome", "error"))
        elif self._there(O_RESULT) or self.fields == outcome_fields[1]:
            told.append(("a2a.response.outcome", "success"))
        else:
            told.append(("a2a.response.outcome", "unknown"))
        if self.found[O_CODE].kind == J_NUMBER and self.found[O_CODE].stop - self.found[O_CODE].start <= MAX_CODE:
            raw = self.text[self.found[O_CODE].start:self.found[O_CODE].stop]
            if raw.lstrip(b"-").isdigit():
                told.append(("a2a.response.error_code", int(raw)))
        text = self._told(O_KIND, O_KIND)
        if text is None and self._there(O_TASK):
            text = "task"
        elif text is None and self._there(O_MESSAGE) and self.found[O_MESSAGE].kind != J_STRING:
            text = "message"
        if text is not None:
            told.append(("a2a.result.kind", text))
        text = self._told(O_STATE, O_TASK_STATE)
        if text is not None:
            told.append(("a2a.task.state", text))
        text = self._told(O_CONTEXT, O_MESSAGE_CONTEXT)
        if text is not None:
            told.append(("a2a.context.id", text))
        return told

    cdef str _told(self, int first, int last):
        """Return the first of these members that is a string, None without one."""
        cdef int i
        for i in range(first, last + 1):
            if self.found[i].kind == J_STRING:
                return _short(self.string_at(self.found[i].start, self.found[i].stop))
        return None

    def outcome(self, bytes text not None, bint bare=False, bint failed=False):
        """Return (key, value) of what the log says of an answer. Raises PeekError if the text is not JSON.

        bare: the result is the whole text, not its member `result`. failed: the status says that it is an error.
        """
        self.look(bare)
        self.scan(text, len(text))
        self.kept = text
        return self.fields_of(failed)


cdef str _short(bytes text):
    return text[:MAX_TEXT].decode("utf-8", "replace")
