# The clients' halves of stream translation: deltas in, events of the client's format out.
#
# A reader (readers.pxd) calls these for what the provider's stream says. Every delta goes out as it comes. One of
# finish() and fault() ends the stream; nothing is written after that.

from headgate_engine.llm.translate.counts cimport UsageCounts
from headgate_engine.llm.translate.evidence cimport Citation, RanTool
from headgate_engine.llm.translate.free_input cimport FreeInput
from headgate_engine.wire.buffer cimport ByteBuffer

cdef bytes dumps(object value)

# What a reply says piece by piece.
cdef enum BlockKind:
    BLOCK_TEXT
    BLOCK_REFUSAL
    BLOCK_THINKING
    BLOCK_SIGNATURE

cdef class OpenTool:
    # One tool call of the reply.
    cdef Py_ssize_t index
    cdef str id, name, item
    cdef list parts                      # argument deltas, in formats of blocks
    cdef bint any, closed
    cdef bint custom                     # the client is told of a custom tool, whose input is free text
    cdef bint free                       # the provider has called one: its arguments are free text
    cdef FreeInput input                 # reads the input out of a function's arguments; None: nothing has to
    cdef bint waits                      # for other calls to be written, in formats of blocks

cdef class Writer:
    cdef readonly bint started, finished
    cdef readonly UsageCounts usage            # set by the reader whenever it learns more
    cdef readonly str fault_message      # None: no fault was told
    # Of a fault that the provider tells: its own word for the kind, its code, the HTTP status that it means. None, None
    # and 0 of one that the gateway sees.
    cdef readonly str fault_kind, fault_code
    cdef readonly int fault_status
    cdef readonly bint spoke             # words, thoughts or calls were written: more than that the stream has begun
    cdef public str service_tier         # as the provider told it, in the client's words; None: not told
    cdef readonly str answered           # model that the provider named; None: none
    cdef ByteBuffer out                  # what was written since the last take()
    cdef str ident, model, id
    cdef long long created
    cdef dict names, tools
    cdef str stopped, sequence           # the stop; None until the provider gave one
    cdef bint refused                    # a refusal was written
    cdef bint ending                     # what is open ends because the reply does
    cdef bint signed                     # the thought being written has its signature: the next one is another
    cdef public bint untold              # something was left out: the client's format has no place for it
    cdef public object customs           # names of the client's custom tools; None: it has none
    cdef bint tells_customs              # the client's format has calls of custom tools
    cdef public bint probs_wanted        # the client wants log probabilities: events are looked at for them
    cdef Py_ssize_t said                 # characters of text that were written, for the places of citations

    # What readers call.
    cdef int start(self, str id, str model) except -1
    cdef int text(self, str delta) except -1
    # The same for deltas that are JSON strings, quotes included, which are written as they are. delta: decoded, or None for
    # a text without escapes.
    cdef int quoted_text(self, const char* p, Py_ssize_t n, str delta) except -1
    cdef int quoted_thinking(self, const char* p, Py_ssize_t n, str delta) except -1
    cdef int quoted_arguments(self, object key, const char* p, Py_ssize_t n, str delta) except -1
    cdef int refusal(self, str delta) except -1
    cdef int thinking(self, str delta) except -1
    cdef int signature(self, str delta) except -1
    cdef int redacted(self, str data) except -1
    cdef int cite(self, Citation citation) except -1    # of text that was written; None: nothing
    cdef int ran(self, RanTool tool) except -1         # the vendor has run it; None: nothing
    cdef int probs(self, list tokens) except -1         # log probabilities of text that was written (probs.pyi)
    cdef int image(self, str url) except -1             # url: a data URL, as a rule
    cdef int sound(self, str media_type, str data) except -1    # data: Base64 of a piece that can be played
    # key: whatever the provider tells its tool calls apart by. False: that key is open already.
    cdef bint tool(self, object key, str id, str name) except -1
    # The same for a call of a custom tool. Its arguments are free text.
    cdef bint custom_tool(self, object key, str id, str name) except -1
    cdef int arguments(self, object key, str delta) except -1
    cdef int sign_tool(self, object key, str signature) except -1   # of a call that was begun without it
    cdef int close(self, object key) except -1         # key of a tool call, or None for the block being written
    cdef int stop(self, str stop, str sequence) except -1
    cdef int finish(self) except -1
    cdef int fault(self, str kind, str message) except -1
    # fault() in the words of the provider. status: 0 when it tells none.
    cdef int failed(self, str kind, str code, int status, str message) except -1

    # What a format fills in. Each is called once the stream has begun, and never behind its end.
    cdef int configure(self, dict extra) except -1
    cdef int _begin(self, str id, str model) except -1
    # p: a delta that is not empty, as a JSON string. delta: the same decoded, or None if p has no escapes.
    cdef int _say(self, BlockKind kind, const char* p, Py_ssize_t n, str delta) except -1
    cdef int _redact(self, str data) except -1
    cdef int _cite(self, Citation citation) except -1
    cdef int _ran(self, RanTool tool) except -1
    cdef int _probs(self, list tokens) except -1
    cdef int _image(self, str url) except -1
    cdef int _sound(self, str media_type, str data) except -1
    cdef int _close_block(self) except -1                          # the one being written, if any
    cdef int _end_block(self) except -1                            # the provider has ended it
    cdef int _open_tool(self, OpenTool tool) except -1
    # delta: not empty. p: the same as a JSON string.
    cdef int _add_arguments(self, OpenTool tool, str delta, const char* p, Py_ssize_t n) except -1
    cdef int _close_tool(self, OpenTool tool) except -1
    cdef int _end(self, str stop) except -1
    cdef int _tell_fault(self, str kind, str message) except -1    # the stream need not have begun

    cdef bint _tool(self, object key, str id, str name, bint free) except -1
    cdef int _free_arguments(self, OpenTool tool, str text) except -1
    cdef int _tell(self, OpenTool tool, str text) except -1        # arguments as the client gets them
    cdef int _put(self, bytes piece) except -1
    cdef int _encode(self, BlockKind kind, str delta) except -1
    cdef int _ensure_started(self) except -1
    cdef int _close_all(self) except -1
    cdef int _event(self, str name, dict members) except -1
    cdef str _ended(self)

cdef class CompletionsWriter(Writer):
    cdef bint include_usage, first
    cdef bint one_signed                 # `reasoning_signature` was told
    cdef ByteBuffer call                 # a piece of a tool call, for the time of writing it
    cdef Py_ssize_t images               # that were told
    cdef object sound_of                 # sound_of(media_type, data): as the client wants it, None: it cannot be
    cdef list thoughts                   # pieces of the thought being told, for its block when the signature comes
    cdef bytes head
    cdef int _delta(self, bytes member, const char* p, Py_ssize_t n) except -1
