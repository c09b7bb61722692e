# The compiled form of an expression: a tree of nodes, each of which gives its value for one request.

from headgate_engine.context.request cimport RequestContext

cdef enum:
    BUDGET = 100000            # members visited by all comprehensions of one evaluation
    UNKNOWN = 2                # of truth(): a key is absent

cdef object ABSENT

# What one evaluation works with.
cdef class Frame:
    cdef RequestContext ctx    # None: only `bindings` have values
    cdef dict bindings         # names given from outside (tests, custom functions), or None
    cdef list slots            # values of the variables that comprehensions and with() bind
    cdef int budget
    cdef str missing           # the key that the last ABSENT stands for
    cdef int spend(self) except -1
    # Raises NoSuchKey for `missing`.
    cdef int raise_absent(self) except -1

cdef class Node:
    cdef object eval(self, Frame frame)
    # The same, but ABSENT (with Frame.missing) where eval() would raise NoSuchKey for a key that requests often lack:
    # who can go on without it is spared an exception.
    cdef object probe(self, Frame frame)
    # 1 true, 0 false, UNKNOWN where a value is absent; raises where the value is no bool.
    cdef int truth(self, Frame frame) except -1
    # The same, but NoSuchKey in the place of UNKNOWN.
    cdef int decided(self, Frame frame) except -1

cdef class Const(Node):
    cdef readonly object value

cdef class Local(Node):
    cdef readonly int slot

cdef class Select(Node):
    cdef Node operand
    cdef str field

cdef object select(object holder, str field)
