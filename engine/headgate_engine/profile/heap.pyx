"""Samples of memory allocations; see heap.pxd."""

from cpython.ref cimport PyObject

from libc.math cimport log
from libc.stdint cimport int64_t, uint32_t, uint64_t, uintptr_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcmp, memcpy

import atexit
import secrets

cdef extern from "Python.h":
    ctypedef struct PyThreadState:
        pass
    ctypedef struct PyFrameObject:
        pass
    ctypedef enum PyMemAllocatorDomain:
        PYMEM_DOMAIN_MEM
        PYMEM_DOMAIN_OBJ
    ctypedef struct PyMemAllocatorEx:
        void* ctx
        void* (*malloc)(void*, size_t) noexcept nogil
        void* (*calloc)(void*, size_t, size_t) noexcept nogil
        void* (*realloc)(void*, void*, size_t) noexcept nogil
        void (*free)(void*, void*) noexcept nogil
    void PyMem_GetAllocator(PyMemAllocatorDomain, PyMemAllocatorEx*) noexcept nogil
    void PyMem_SetAllocator(PyMemAllocatorDomain, PyMemAllocatorEx*) noexcept nogil
    int PyFrame_GetLineNumber(PyFrameObject*) noexcept nogil
    PyCodeObject* PyFrame_GetCode(PyFrameObject*) noexcept nogil
    PyFrameObject* PyFrame_GetBack(PyFrameObject*) noexcept nogil
    PyFrameObject* PyThreadState_GetFrame(PyThreadState*) noexcept nogil
    int PyGC_Disable() noexcept nogil
    int PyGC_Enable() noexcept nogil

cdef extern from *:
    """
    #include <execinfo.h>
    #if PY_VERSION_HEX >= 0x030D0000
    #define HG_THREAD_STATE() PyThreadState_GetUnchecked()
    #else
    #define HG_THREAD_STATE() _PyThreadState_UncheckedGet()
    #endif
    #ifdef Py_GIL_DISABLED
    #define HG_GIL 0
    #else
    #define HG_GIL 1
    #endif
    #define HG_UNREF(o) Py_DECREF((PyObject*)(o))
    #define HG_REF(o) Py_INCREF((PyObject*)(o))
    """
    enum:
        HG_GIL
    PyThreadState* HG_THREAD_STATE() noexcept nogil
    void HG_UNREF(void*) noexcept nogil
    void HG_REF(void*) noexcept nogil
    int backtrace(void** addresses, int size) noexcept nogil

cdef PyMemAllocatorEx mem_below, obj_below
cdef bint sampling = False
cdef bint busy = False                 # a sample is being taken: its own allocations are not sampled
cdef uint64_t mean = 0
cdef int64_t until = 0                 # bytes to the next sample
cdef uint64_t random_state = 1
cdef Stack** stacks = NULL             # cells by key; a power of two, at most half full
cdef uint32_t stack_count = 0
cdef Live* lives = NULL                # cells by block; a power of two, at most half full
cdef uint64_t live_cells = 0
cdef uint64_t live_count = 0
cdef Stack* overflow = NULL            # counts all stacks beyond MAX_STACKS, without frames

cdef enum:
    STACK_CELLS = 2 * MAX_STACKS
    FIRST_CELLS = 4096


# -- choice of allocations ---------------------------------------------------------------------------------------------
cdef inline uint64_t next_random() noexcept nogil:
    """xorshift64* (https://doi.org/10.1145/2845077)."""
    global random_state
    random_state ^= random_state >> 12
    random_state ^= random_state << 25
    random_state ^= random_state >> 27
    return random_state * 2685821657736338717ULL


cdef int64_t next_distance() noexcept nogil:
    """Return an exponentially distributed distance: every byte is equally likely to be a sample."""
    cdef double u = ((next_random() >> 11) + 1) / 9007199254740993.0
    return <int64_t>(-log(u) * mean) + 1


# -- the live blocks: open addressing with linear probing; deletion moves later cells back -----------------------------
cdef inline uint64_t live_home(void* block) noexcept nogil:
    return ((<uint64_t><uintptr_t>block >> 4) * 11400714819323198485ULL) & (live_cells - 1)


cdef void live_put(Live* cells, uint64_t count, Live entry) noexcept nogil:
    cdef uint64_t i = ((<uint64_t><uintptr_t>entry.block >> 4) * 11400714819323198485ULL) & (count - 1)
    while cells[i].block != NULL:
        i = (i + 1) & (count - 1)
    cells[i] = entry


cdef bint live_grow() noexcept nogil:
    global lives, live_cells
    cdef uint64_t count = live_cells * 2
    cdef uint64_t i
    cdef Live* cells = <Live*>calloc(count, sizeof(Live))
    if cells == NULL:
        return False
    for i in range(live_cells):
        if lives[i].block != NULL:
            live_put(cells, count, lives[i])
    free(lives)
    lives = cells
    live_cells = count
    return True


cdef void forget(void* block) noexcept nogil:
    """Remove the sample of a freed block."""
    global live_count
    cdef uint64_t mask = live_cells - 1
    cdef uint64_t i = live_home(block)
    cdef uint64_t j, home
    while lives[i].block != block:
        if lives[i].block == NULL:
            return
        i = (i + 1) & mask
    lives[i].stack.live_objects -= 1
    lives[i].stack.live_bytes -= lives[i].size
    live_count -= 1
    j = i
    while True:
        j = (j + 1) & mask
        if lives[j].block == NULL:
            break
        home = live_home(lives[j].block)
        if (j - home) & mask >= (j - i) & mask:
            lives[i] = lives[j]
            i = j
    lives[i].block = NULL


# -- stacks ------------------------------------------------------------------------------------------------------------
cdef uint64_t mixed(uint64_t key, uint64_t value) noexcept nogil:
    key = (key ^ value) * 1099511628211ULL
    return key ^ (key >> 29)


cdef bint same_stack(Stack* a, Stack* b) noexcept nogil:
    return (a.key == b.key and a.natives == b.natives and a.frames == b.frames
            and memcmp(a.native, b.native, a.natives * sizeof(void*)) == 0
            and memcmp(a.code, b.code, a.frames * sizeof(PyCodeObject*)) == 0
            and memcmp(a.line, b.line, a.frames * sizeof(int)) == 0)


cdef void capture(Stack* found) noexcept nogil:
    """Fill in the stacks of the current thread.

    The references to code objects are borrowed, as the frames hold them.
    """
    # Our own frames come first. The code that resolves the addresses drops them.
    cdef int n = backtrace(found.native, MAX_NATIVE)
    cdef PyThreadState* state = HG_THREAD_STATE()
    cdef PyFrameObject* frame
    cdef PyFrameObject* back
    cdef uint64_t key = 14695981039346656037ULL
    cdef uint32_t i
    cdef int collecting
    found.natives = <uint32_t>max(n, 0)
    found.frames = 0
    for i in range(found.natives):
        key = mixed(key, <uint64_t><uintptr_t>found.native[i])
    if state != NULL:
        # This creates frame objects. Before Python 3.12 that could start a garbage collection during an allocation.
        collecting = PyGC_Disable()
        frame = PyThreadState_GetFrame(state)
        while frame != NULL:
            if found.frames < MAX_FRAMES:
                found.code[found.frames] = PyFrame_GetCode(frame)
                found.line[found.frames] = PyFrame_GetLineNumber(frame)
                key = mixed(mixed(key, <uint64_t><uintptr_t>found.code[found.frames]), found.line[found.frames])
                HG_UNREF(found.code[found.frames])
                found.frames += 1
                back = PyFrame_GetBack(frame)
            else:
                back = NULL
            HG_UNREF(frame)
            frame = back
        if collecting:
            PyGC_Enable()
    found.key = key


cdef Stack* known(Stack* seen) noexcept nogil:
    """Return the stored stack that equals this one."""
    global stack_count
    cdef uint64_t i = seen.key & (STACK_CELLS - 1)
    cdef uint32_t j
    cdef Stack* found
    while stacks[i] != NULL:
        if same_stack(stacks[i], seen):
            return stacks[i]
        i = (i + 1) & (STACK_CELLS - 1)
    if stack_count >= MAX_STACKS:
        return overflow
    found = <Stack*>malloc(sizeof(Stack))
    if found == NULL:
        return overflow
    memcpy(found, seen, sizeof(Stack))
    found.alloc_objects = found.alloc_bytes = found.live_objects = found.live_bytes = 0
    for j in range(found.frames):
        HG_REF(found.code[j])
    stacks[i] = found
    stack_count += 1
    return found


cdef void sample(void* block, size_t size) noexcept nogil:
    global busy, until, live_count
    cdef Stack seen
    cdef Live entry
    busy = True
    until = next_distance()
    capture(&seen)
    if 2 * (live_count + 1) <= live_cells or live_grow():
        entry.block = block
        entry.size = size
        entry.stack = known(&seen)
        entry.stack.alloc_objects += 1
        entry.stack.alloc_bytes += size
        entry.stack.live_objects += 1
        entry.stack.live_bytes += size
        live_put(lives, live_cells, entry)
        live_count += 1
    busy = False


cdef inline void taken(void* block, size_t size) noexcept nogil:
    global until
    if block != NULL and not busy:
        until -= <int64_t>size
        if until <= 0:
            sample(block, size)


# -- the hooks: `ctx` is the original allocator ------------------------------------------------------------------------
cdef void* hook_malloc(void* ctx, size_t size) noexcept nogil:
    cdef PyMemAllocatorEx* below = <PyMemAllocatorEx*>ctx
    cdef void* block = below.malloc(below.ctx, size)
    taken(block, size)
    return block


cdef void* hook_calloc(void* ctx, size_t count, size_t size) noexcept nogil:
    cdef PyMemAllocatorEx* below = <PyMemAllocatorEx*>ctx
    cdef void* block = below.calloc(below.ctx, count, size)
    taken(block, count * size)
    return block


cdef void* hook_realloc(void* ctx, void* old, size_t size) noexcept nogil:
    cdef PyMemAllocatorEx* below = <PyMemAllocatorEx*>ctx
    cdef void* block = below.realloc(below.ctx, old, size)
    if block != NULL and old != NULL and live_count:
        forget(old)
    taken(block, size)
    return block


cdef void hook_free(void* ctx, void* block) noexcept nogil:
    cdef PyMemAllocatorEx* below = <PyMemAllocatorEx*>ctx
    if block != NULL and live_count:
        forget(block)
    below.free(below.ctx, block)


cdef void put_hook(PyMemAllocatorDomain domain, PyMemAllocatorEx* below) noexcept:
    cdef PyMemAllocatorEx hook
    PyMem_GetAllocator(domain, below)
    hook.ctx = below
    hook.malloc = hook_malloc
    hook.calloc = hook_calloc
    hook.realloc = hook_realloc
    hook.free = hook_free
    PyMem_SetAllocator(domain, &hook)


# -- Python interface --------------------------------------------------------------------------------------------------
class HeapSample:
    __slots__ = ("native", "frames", "alloc_objects", "alloc_bytes", "live_objects", "live_bytes")


def start(uint64_t rate):
    global sampling, mean, until, random_state, stacks, lives, live_cells, live_count, stack_count, overflow
    cdef void* addresses[4]
    if not HG_GIL:
        raise RuntimeError("allocations are sampled under the GIL only")
    if rate < 1:
        raise ValueError("rate must be 1 byte or more")
    if sampling:
        raise RuntimeError("allocations are sampled already")
    backtrace(addresses, 4)            # loads the unwinder, which allocates
    stacks = <Stack**>calloc(STACK_CELLS, sizeof(Stack*))
    lives = <Live*>calloc(FIRST_CELLS, sizeof(Live))
    overflow = <Stack*>calloc(1, sizeof(Stack))
    if stacks == NULL or lives == NULL or overflow == NULL:
        free(stacks)
        free(lives)
        free(overflow)
        raise MemoryError
    live_cells = FIRST_CELLS
    live_count = 0
    stack_count = 0
    mean = rate
    random_state = secrets.randbits(63) | 1
    until = next_distance()
    put_hook(PYMEM_DOMAIN_MEM, &mem_below)
    put_hook(PYMEM_DOMAIN_OBJ, &obj_below)
    sampling = True


def stop():
    global sampling, mean, live_count, stack_count, stacks, lives, overflow
    cdef Stack** old = stacks
    cdef uint32_t i, j
    if not sampling:
        return
    PyMem_SetAllocator(PYMEM_DOMAIN_MEM, &mem_below)
    PyMem_SetAllocator(PYMEM_DOMAIN_OBJ, &obj_below)
    sampling = False
    mean = 0
    live_count = 0
    stack_count = 0
    stacks = NULL
    free(lives)
    lives = NULL
    free(overflow)
    overflow = NULL
    for i in range(<uint32_t>STACK_CELLS):
        if old[i] != NULL:
            for j in range(old[i].frames):
                HG_UNREF(old[i].code[j])
            free(old[i])
    free(old)


def rate():
    return mean


def samples():
    global busy
    cdef uint32_t i
    found = []
    if not sampling:
        return found
    busy = True                        # no new stacks are added; blocks may still be freed
    try:
        for i in range(<uint32_t>STACK_CELLS):
            if stacks[i] != NULL:
                found.append(sample_of(stacks[i]))
        if overflow.alloc_objects:
            found.append(sample_of(overflow))
    finally:
        busy = False
    return found


cdef object sample_of(Stack* stack):
    cdef uint32_t i
    found = HeapSample()
    found.native = tuple([<uintptr_t>stack.native[i] for i in range(stack.natives)])
    frames = []
    for i in range(stack.frames):
        code = <object><PyObject*>stack.code[i]
        frames.append((code.co_qualname, code.co_filename, stack.line[i]))
    found.frames = tuple(frames)
    found.alloc_objects = stack.alloc_objects
    found.alloc_bytes = stack.alloc_bytes
    found.live_objects = stack.live_objects
    found.live_bytes = stack.live_bytes
    return found


# Objects outlive this module: freeing them must not call a hook that no longer exists.
atexit.register(stop)
