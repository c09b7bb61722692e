# The clients' halves of stream translation whose replies are lists of blocks.

from headgate_engine.llm.translate.writers cimport BlockKind, OpenTool, Writer

cdef class BlockWriter(Writer):
    # Formats whose replies are a list of blocks, of which text and thinking are written one after the other.
    cdef Py_ssize_t count                # blocks opened
    cdef bint writing                    # a block of text is open
    cdef bint resting                    # the provider has ended it; whether it is complete shows later
    cdef BlockKind kind                       # its kind, and where it is
    cdef Py_ssize_t index
    cdef OpenTool current                    # the call being written, None: none is
    cdef list waiting                    # calls whose turn has not come
    cdef int _begin_tool(self, OpenTool tool) except -1
    cdef int _go_on(self) except -1
    cdef int _open_block(self, BlockKind kind) except -1
    cdef Py_ssize_t _next(self) except -1
    # What a format fills in besides.
    cdef int _block_opened(self) except -1
    cdef int _block_closed(self) except -1
    cdef int _tool_opened(self, OpenTool tool) except -1
    cdef int _tell_arguments(self, OpenTool tool, const char* p, Py_ssize_t n) except -1    # p: as a JSON string
    cdef int _tool_closed(self, OpenTool tool) except -1

cdef class MessagesWriter(BlockWriter):
    cdef int _block_delta(self, Py_ssize_t index, bytes member, const char* p, Py_ssize_t n) except -1
    cdef int _stop_block(self, Py_ssize_t index) except -1
    cdef dict _counted(self)

cdef class ResponsesWriter(BlockWriter):
    cdef int _told(self, bytes name, str item, Py_ssize_t index, bytes member, const char* p, Py_ssize_t n) except -1
    cdef long long sequence_number
    cdef public object seal              # seal(signature, redacted=False): how signatures are told; None: not at all
    cdef str sealed                      # the signature of the thought being written, None: it has none
    cdef dict echo                       # what the reply repeats of the request
    cdef dict items                      # finished output items by their index
    cdef list parts                      # deltas of the block being written
    cdef str item
    cdef list tokens                     # log probabilities of it
    cdef list annotations                # of the text being written
    cdef Py_ssize_t base                 # where it begins, in characters of the whole reply's text
    cdef dict _part(self, str text)
    cdef str _item_status(self)
    cdef str _call_status(self, OpenTool tool)
    cdef dict _custom_item(self, OpenTool tool, str input)
    cdef int _item_done(self, Py_ssize_t index, dict item) except -1
    cdef dict _response(self, str status)
    cdef list _output(self)
