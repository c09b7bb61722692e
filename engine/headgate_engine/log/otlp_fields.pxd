# The fields of a request as attributes of OTLP: of a span, or of a log record.

from headgate_engine.log.request_fields cimport RequestFields

cdef enum:
    # Where attributes stand: Span.attributes, LogRecord.attributes.
    SPAN_ATTRIBUTES = 0x4A
    LOG_ATTRIBUTES = 0x32

cdef class OtlpFields(RequestFields):
    cdef char tag                # of the attributes
    cdef list keys               # bytes of key_of(), for FIELDS
