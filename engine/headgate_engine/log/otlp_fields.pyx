"""The fields of a request as attributes of OTLP; see otlp_fields.pxd. Lengths of time are milliseconds, `duration_ms`."""

from libc.stdint cimport int64_t

from headgate_engine.context.request cimport RequestContext
from headgate_engine.log.fields cimport LogFields
from headgate_engine.log.protobuf cimport key_of, put_attribute, put_int_attribute, put_text_attribute
from headgate_engine.log.request_fields cimport F_DURATION, F_UPSTREAM, RequestFields
from headgate_engine.wire.buffer cimport ByteBuffer

from headgate_engine.log.keys import FIELDS, ORDER

cdef dict KEYS = {name: key_of(name) for name in ORDER}


cdef class OtlpFields(RequestFields):
    def __init__(self, remove=(), LogFields fields=None, *, bint span=False):
        RequestFields.__init__(self, remove, fields)
        self.tag = SPAN_ATTRIBUTES if span else LOG_ATTRIBUTES
        self.keys = [key_of(name + "_ms") if place in (F_DURATION, F_UPSTREAM) else KEYS[name]
                     for place, name in enumerate(FIELDS)]

    cdef int _extra(self, ByteBuffer out, str key, value) except -1:
        cdef bytes known = <bytes>KEYS.get(key)
        return put_attribute(out, self.tag, key_of(key) if known is None else known, value)

    cdef int _text(self, ByteBuffer out, int field, const char* p, Py_ssize_t n) except -1:
        return put_text_attribute(out, self.tag, <bytes>self.keys[field], p, n) if self.kept >> field & 1 else 0

    cdef int _count(self, ByteBuffer out, int field, int64_t value) except -1:
        return put_int_attribute(out, self.tag, <bytes>self.keys[field], value) if self.kept >> field & 1 else 0

    cdef int _span(self, ByteBuffer out, int field, int64_t ns) except -1:
        return put_attribute(out, self.tag, <bytes>self.keys[field], ns / 1e6) if self.kept >> field & 1 else 0

    # -- Python face ---------------------------------------------------------------------------------------------------
    def attributes(self, RequestContext ctx not None):
        cdef ByteBuffer out = ByteBuffer()
        try:
            self.write_fields(out, ctx, self._named(ctx))
        finally:
            self.kept = self.usual
        return out.take()
