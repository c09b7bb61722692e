# The clients' halves of stream translation whose replies are lists of blocks.

from headgate_engine.llm.translate.writers cimport Tool, Writer

cdef class BlockWriter(Writer):
    # Formats whose replies are a list of blocks, of which text and thinking are written one after the other.
    cdef Py_ssize_t count                # blocks opened
    cdef str kind                        # of the block being written, "" for none
    cdef int _open(self, str kind) except -1
    cdef int _close(self) except -1
    cdef int _close_tool(self, Tool tool) except -1
    cdef int _close_all(self) except -1

cdef class MessagesWriter(BlockWriter):
    cdef Py_ssize_t index                # of the block being written
    cdef int _block_delta(self, Py_ssize_t index, bytes kind, bytes member, str delta) except -1
    cdef dict _counted(self)

cdef class ResponsesWriter(BlockWriter):
    cdef long long sequence_number
    cdef dict echo                       # what the reply repeats of the request
    cdef list items, parts               # finished output items; deltas of the block being written
    cdef Py_ssize_t index
    cdef str item
    cdef int _event(self, str kind, dict members) except -1
    cdef int _delta(self, bytes kind, str delta) except -1
    cdef dict _response(self, str status)
