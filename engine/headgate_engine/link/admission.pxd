# Who may connect (frontendPolicies.networkAuthorization): rules that are asked once for each connection, behind the PROXY
# protocol header and the TLS handshake and before anything else. A connection that they refuse ends without an answer.

from headgate_engine.context.request cimport RequestContext
from headgate_engine.link.face cimport ClientFace
from headgate_engine.plan.plans cimport BindPlan

# Asks the rules of a port about a connection of which ctx has the addresses. A refusal is in `error` and `reason`.
cdef bint permitted(BindPlan plan, RequestContext ctx) except -1
# What is asked behind the rules (steps.connection_check.ConnectionCheck.question); None: nobody.
cdef object question_of(BindPlan plan)
# Whether a connection that carries HTTP waits for a service to decide. It is read by link.asked_admission until then.
cdef bint waits(ClientFace face) except -1
# A context for a connection that carries HTTP.
cdef RequestContext context_of(ClientFace face)
# Logs and counts a connection that is refused; `error` and `reason` of ctx say why.
cdef int record_refused(ClientFace face, RequestContext ctx) except -1
# Counts a connection that carries HTTP, whose requests have contexts of their own, and asks the rules about it. A refusal is
# logged and counted.
cdef bint admitted(ClientFace face) except -1
