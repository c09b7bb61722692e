# Samples of the memory that Python's allocators return: on average one for every `rate` bytes.
#
# Hooks replace the allocators of the domains "obj" and "mem" (https://docs.python.org/3/c-api/memory.html), which are
# called with the GIL held. They are installed only while sampling is on. A sample has the C stack and the Python stack
# of its allocation. Memory that C code gets from malloc() is not sampled.
#
# All state is in memory from malloc(), as it is used during an allocation.

from libc.stdint cimport int64_t, uint32_t, uint64_t

cdef enum:
    MAX_NATIVE = 48        # C frames of a stack
    MAX_FRAMES = 64        # Python frames of a stack
    MAX_STACKS = 4096      # different stacks; samples of any other stack are counted together

cdef extern from "Python.h":
    ctypedef struct PyCodeObject:
        pass

cdef struct Stack:
    uint64_t key
    uint32_t natives, frames
    void* native[MAX_NATIVE]
    PyCodeObject* code[MAX_FRAMES]      # one reference each
    int line[MAX_FRAMES]
    uint64_t alloc_objects, alloc_bytes, live_objects, live_bytes

cdef struct Live:
    void* block                         # NULL: a free cell
    uint64_t size
    Stack* stack
