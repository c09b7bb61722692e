from headgate_engine.http1.codec cimport Http1Codec

cdef class PythonCodec(Http1Codec):
    cdef bytes given                 # what receive() lent: alive until it is used up or copied
