# What a reply rests on: citations of its text, and tools that the vendor has run itself.

cdef class Citation:
    # One citation. start, end: of the characters of the reply's text that it stands for.
    cdef readonly str url, title, quoted      # url: "" for a document of the request
    cdef readonly Py_ssize_t start, end
    cdef readonly dict place                  # in such a document, as Messages tell it; None: it is a URL

cdef class RanTool:
    # One tool that has run. sources: [(URL, title)] that it found; output: what it printed.
    cdef readonly str id, name
    cdef public str server               # of an MCP tool: the label of its server; "" for any other
    cdef readonly dict input
    cdef readonly list sources
    cdef readonly str output
    cdef readonly bint failed
