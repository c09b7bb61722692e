# MCP calls that need no Python. Everything else goes to the handler in Python, at any time before the client has got
# anything.
#
#   who answers                      when
#   DirectCall (mcp/call)            POST, a plain head (mcp/fields), a known session, nobody traces it, and the target
#                                    answers with 2xx
#     DirectBackend                  any request but `initialize`; the answer is one JSON message or a stream of events
#     FederatedBackend               `tools/call` and `prompts/get` of a target over StreamableHTTP; the answer is one JSON
#                                    message and the response to the request
#   Python, from the beginning       all others
#   Python, with the call begun      a refusal, a failure, a time-out, an answer in a content coding, another session id

from headgate_engine.context.request cimport RequestContext
from headgate_engine.link.backend cimport Backend, RoutedRequest
from headgate_engine.mcp.call cimport DirectCall
from headgate_engine.mcp.fields cimport ClientHead
from headgate_engine.mcp.sessions cimport SessionEntry
from headgate_engine.mcp.settings cimport CallSettings, DirectTarget
from headgate_engine.peek.rpc cimport RpcMessage

cdef class DirectBackend(Backend):
    cdef CallSettings settings
    cdef readonly DirectTarget target
    cdef ClientHead client_head
    cdef dict owners                 # who asks -> owner of sessions
    cdef DirectCall _plain(self, RoutedRequest exchange)
    # The call of a plain request, None for one that Python serves.
    cdef DirectCall _aimed(self, RoutedRequest exchange, RpcMessage message, SessionEntry session)
    cdef str _owner(self, RequestContext ctx)

cdef class FederatedBackend(DirectBackend):
    cdef dict targets                # by name; those that can be called so
    cdef bint prefixed               # names carry their target
