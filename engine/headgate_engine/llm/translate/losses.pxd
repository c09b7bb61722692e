# What a request says and the format of a provider cannot: a walk through its members, beside a tree of paths.

# Appends the paths that are lost in `holder` to `found`. nodes: name -> (path or "", whether its value is an array, nodes
# below). at: the path of the holder, with what joins it to a name. spared: values by path that say nothing. unless: by path,
# whether a holder makes an exception.
cdef int walk(dict nodes, dict holder, str at, list found, dict spared, dict unless) except -1
