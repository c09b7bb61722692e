# The messages to and from an external processor; see processing.pyi.

from headgate_engine.envoy.header_edits cimport HeaderEdits

cdef enum AnsweredPart:
    # Numbers of the fields of ProcessingResponse.
    ANSWERS_NOTHING = 0
    REQUEST_HEAD = 1
    RESPONSE_HEAD = 2
    REQUEST_BODY = 3
    RESPONSE_BODY = 4
    REQUEST_TRAILERS = 5
    RESPONSE_TRAILERS = 6
    ANSWERS_ITSELF = 7

cdef class ProcessorAnswer:
    cdef readonly int part                # AnsweredPart
    cdef readonly int status              # of CommonResponse
    cdef HeaderEdits wanted               # None: nothing is changed
    cdef bytes source
    cdef readonly Py_ssize_t body_at, body_size      # the mutation's body, in the source
    cdef readonly int mutation            # field of BodyMutation: 0 none, 1 body, 2 clear, 3 streamed
    cdef readonly bint last               # end_of_stream of a streamed body
    cdef readonly bint more               # it has what is read elsewhere: metadata, another mode, an answer to the client

    cdef int read(self, const char* p, Py_ssize_t n) except -1
    cdef int begin(self, int part) except -1
    cdef int read_common(self, const char* p, Py_ssize_t n) except -1
    cdef int note_body(self, const char* p, Py_ssize_t n) except -1
    cdef int read_body(self, const char* p, Py_ssize_t n) except -1
    cdef int read_edits(self, const char* p, Py_ssize_t n) except -1
