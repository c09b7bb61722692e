"""See the .pyi."""

cdef frozenset PLAIN = frozenset((str, int, float, bytes, bool, type(None)))


def write_values(values, dict kinds not None, learn, list out not None):
    for value in values:
        write(value, kinds, learn, out)


cdef int write(object value, dict kinds, object learn, list out) except -1:
    cdef object kind = type(value), one
    if value is None:
        out.append("None")
        return 0
    if kind is tuple:
        return write_tuple(<tuple>value, kinds, learn, out)
    if kind in PLAIN:
        out.append(repr(value))
        return 0
    found = kinds.get(kind)
    if found is None:
        found = kinds[kind] = learn(kind)
    reader, whole = <tuple?>found
    if whole:
        out.append(<str?>reader(value))
        return 0
    out.append(kind.__name__)
    for one in <tuple?>reader(value):
        write(one, kinds, learn, out)
    out.append(";")
    return 0


cdef int write_tuple(tuple values, dict kinds, object learn, list out) except -1:
    out.append("(")
    for value in values:
        write(value, kinds, learn, out)
    out.append(")")
    return 0
