# Work on request bodies that is left to `function` when they are long: beside the loop, so that others do not wait.

from headgate_engine.plan.step cimport AsyncStep

cdef class LongBodyStep(AsyncStep):
    cdef readonly Py_ssize_t limit
