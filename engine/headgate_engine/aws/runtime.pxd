# Agent runtimes of Amazon Bedrock AgentCore, as a backend.

from headgate_engine.link.backend cimport PoolBackend

cdef class AgentRuntime(PoolBackend):
    cdef readonly bytes path         # of all requests
    cdef readonly bytes query        # with its mark; b"": none
    cdef readonly bint cards         # the well-known paths of agent cards stay behind the path
