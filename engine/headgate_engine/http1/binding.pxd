from headgate_engine.http1.codec cimport Http1Codec

cdef class PythonCodec(Http1Codec):
    cdef bytes given                 # argument of receive(): referenced until it is consumed or copied
