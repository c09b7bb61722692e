# Names of models with one star at an end.

cdef class ModelPattern:
    cdef readonly str text
    cdef bytes exact, prefix, suffix     # all None: any model
    cdef bint fits(self, bytes model) noexcept
    # The pattern of what fits both (of a start and an end: `start*end`), None where nothing does.
    cdef str meet(self, ModelPattern other)
