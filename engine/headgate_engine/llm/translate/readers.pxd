# The providers' halves of stream translation: events of the provider's format in, calls of a Writer out.

from headgate_engine.llm.translate.writers cimport Writer
from headgate_engine.peek.delta cimport DeltaPeek

# JSON of any length; raises Garbage.
cdef object loads(object text)
# Members of foreign objects; Garbage for a wrong type, null is as good as missing.
cdef dict an_object(dict holder, str name)
cdef list a_list(dict holder, str name)
cdef str a_text(dict holder, str name)
cdef object a_key(dict holder, str name)
cdef str text_or_none(object holder, str name)
cdef bint is_first(dict choice) except -1
cdef bint first_number(const char* data, DeltaPeek peek) noexcept

cdef class EventReader:
    cdef readonly Writer writer
    cdef readonly bint failed            # the stream is broken and the client has been told
    cdef bint stopped                    # the provider said why it ended: an end of the body is no cut any more
    cdef DeltaPeek peek                  # recognises plain deltas, which are then not decoded; None: nothing does
    # Translates one event into the writer. name: of the event, NULL: it has none and is called `message`.
    cdef int take_event(self, const char* name, Py_ssize_t name_len, const char* data, Py_ssize_t n) except -1
    # Ends the stream in the writer, see end().
    cdef int close(self, str fault) except -1
    # Writes an event that says nothing but one delta. False: it is something else.
    cdef bint _plain(self, const char* name, Py_ssize_t name_len, const char* data, Py_ssize_t n) except -1
    cdef bint _first(self, const char* data) noexcept
    cdef object _call(self, const char* data)
    cdef int _thinks(self) except -1
    # Reads counts that were put by.
    cdef int count(self) except -1
    cdef int _event(self, str name, object event) except -1
    # Ends the stream with a fault that the gateway sees.
    cdef int _fail(self, str kind, str message) except -1
    # Ends it with one that the provider tells. code: its code, or the HTTP status as a number; None: not told.
    cdef int _failed(self, str kind, object code, str message) except -1
    cdef int _refused(self, object error) except -1

# The error type of a vendor's error object, "" if it has none.
cdef str error_type(object error)
# What it says; `other` if it says nothing.
cdef str error_text(object error, str other)

cdef class CompletionsReader(EventReader):
    cdef dict keys                       # index -> (id, key) of the tool call that writes there now
    cdef dict signatures                 # id of a tool call that is to come -> signature of its thought
    cdef dict unnamed                    # index -> [id, arguments...] of calls whose name has not come
    cdef int _tool_call(self, dict call, Py_ssize_t position) except -1
    cdef int _details(self, list details, bint texts) except -1
    cdef int _sign(self, str id, str signature) except -1
    cdef int _beside(self, dict delta) except -1
    cdef int _thought(self, dict delta) except -1
    cdef int _content(self, object content) except -1

cdef class MessagesReader(EventReader):
    cdef dict usage
    cdef dict uses                       # index -> [block, pieces of its input] of a tool that the vendor runs
    cdef list cited                      # citations of the block being read
    cdef Py_ssize_t block_from           # where its text begins
    cdef int _tell_uses(self, str id, dict result) except -1
    cdef int _block_start(self, dict event) except -1
    cdef int _block_delta(self, dict event) except -1
    cdef int _count(self, object usage) except -1
