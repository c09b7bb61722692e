# Samples of the memory that Python's allocator gives out: one on average for every `rate` bytes.
#
# Hooks sit in front of the allocators of objects and of Python's memory, which are called with the GIL held; while
# nothing is sampled they are not there at all. A sample keeps the C stack and the Python stack of its allocation. What
# C code takes from malloc() itself is not seen.
#
# Everything in here lies in malloc() memory, since it is used within an allocation.

from libc.stdint cimport int64_t, uint32_t, uint64_t

cdef enum:
    MAX_NATIVE = 48        # C frames of a stack
    MAX_FRAMES = 64        # Python frames of a stack
    MAX_STACKS = 4096      # different stacks; samples of further ones are put together

cdef extern from "Python.h":
    ctypedef struct PyCodeObject:
        pass

cdef struct Stack:
    uint64_t key
    uint32_t natives, frames
    void* native[MAX_NATIVE]
    PyCodeObject* code[MAX_FRAMES]      # a reference each
    int line[MAX_FRAMES]
    uint64_t alloc_objects, alloc_bytes, live_objects, live_bytes

cdef struct Live:
    void* block                         # NULL: a free cell
    uint64_t size
    Stack* stack
