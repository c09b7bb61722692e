"""Lost members of a request; see losses.pxd."""


cdef int walk(dict nodes, dict holder, str at, list found, dict spared, dict unless) except -1:
    cdef dict below
    cdef str path
    for name, (path, many, below) in nodes.items():
        value = holder.get(name)
        if value is None:
            continue
        if path and value not in spared.get(path, ()):
            exception = unless.get(path)
            if exception is None or not exception(holder):
                found.append(at + <str>name)
        if not below:
            continue
        if not many:
            if type(value) is dict:
                walk(below, <dict>value, f"{at}{name}.", found, spared, unless)
        elif type(value) is list:
            walk_all(below, <list>value, f"{at}{name}", found, spared, unless)
    return 0


cdef int walk_all(dict nodes, list values, str at, list found, dict spared, dict unless) except -1:
    """Walk through the entries of an array. The path of one is written only when something is lost in it."""
    cdef Py_ssize_t index
    cdef list here = []
    for index in range(len(values)):
        value = values[index]
        if type(value) is dict:
            walk(nodes, <dict>value, "", here, spared, unless)
            if here:
                found += [f"{at}[{index}].{one}" for one in here]
                here.clear()
    return 0


def lost_below(dict nodes not None, dict holder not None, dict spared not None, dict unless not None):
    cdef list found = []
    walk(nodes, holder, "", found, spared, unless)
    return found
