# A step that asks a service by a unary gRPC call, and the request that waits for the answer; see consult.pyi.

from headgate_engine.context.request cimport RequestContext
from headgate_engine.link.grpc_call cimport GrpcCall, UnaryListener
from headgate_engine.steps.asking cimport AskingStep

from libc.stdint cimport int64_t

cdef class GrpcQuestion:
    # What a policy asks its service, and what it does with the answer.
    cdef readonly str path
    cdef readonly double timeout_s
    cdef readonly Py_ssize_t limit          # bytes of the answer
    cdef tuple callers                      # link.grpc_call.GrpcCaller of each endpoint
    cdef object order                       # returns an iterator over their indexes
    cdef object compose, conclude

cdef class ConsultStep(AskingStep):
    cdef GrpcQuestion question

cdef class Consultation(UnaryListener):
    cdef GrpcQuestion question
    cdef RequestContext ctx                 # None once the request has gone on, or is over
    cdef object exchange
    cdef object places                      # iterator over the endpoints that are left; None: there is one only
    cdef str name                           # of the step
    cdef bytes message
    cdef object note                        # what the policy keeps for the answer
    cdef GrpcCall call
    cdef bint suspended                     # the step has returned
    cdef object failure                     # what was raised before that
    cdef int verdict                        # until then: what it returns; -1: no answer yet

    cdef int ask(self, Py_ssize_t place) except -1
    cdef int conclude(self, bytes message, object failure) except -1
