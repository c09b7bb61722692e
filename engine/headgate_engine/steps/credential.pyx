"""Static backend credentials. The value is sent only to the backend."""

from headgate_engine.context.headers cimport SPAN_SENSITIVE
from headgate_engine.context.request cimport RequestContext
from headgate_engine.plan.step cimport CONTINUE, Step


cdef class CredentialStep(Step):
    def __init__(self, str header, bytes value):
        """header: field name. value: whole field value.

        Raises ValueError, without the value, if it has control characters.
        """
        self.name = "backendAuth"
        self.header = header.lower().encode("ascii")
        if any(c < 32 or c == 127 for c in value):
            raise ValueError(f"the credential for header {header!r} has a control character in it")
        self.value = value

    def __repr__(self):
        return f"CredentialStep({self.header.decode()!r}, <redacted>)"

    cdef int run(self, RequestContext ctx) except -1:
        ctx.head.drop_field(self.header, len(self.header))
        ctx.head.add_field(self.header, len(self.header), self.value, len(self.value))
        ctx.head.spans[ctx.head.count - 1].flags |= SPAN_SENSITIVE
        return CONTINUE
