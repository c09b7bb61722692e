"""Agent runtimes of Amazon Bedrock AgentCore; see runtime.pxd.

Source: https://docs.aws.amazon.com/bedrock-agentcore/latest/APIReference/API_InvokeAgentRuntime.html. What the client sent
as a path says nothing there; the fields of its head go on, those of the session among them.
"""

from headgate_engine.context.headers cimport HEAD_CONNECT, MessageHead
from headgate_engine.link.backend cimport PoolBackend, REPLY, RoutedRequest
from headgate_engine.link.reasons cimport REPLY_INVALID_BACKEND
from headgate_engine.plan.plans cimport BackendPlan
from headgate_engine.steps.a2a cimport card_suffix

# Where the card of a runtime is (GetAgentCard), whichever of its paths the client knows.
CARD_PATH = b"/.well-known/agent-card.json"
cdef bytes _card_path = CARD_PATH


cdef class AgentRuntime(PoolBackend):
    """path: that of all requests. query: behind it, with its mark. cards: requests for the agent card (A2A) get that."""

    def __init__(self, bytes path not None, bytes query not None=b"", *, bint cards=False):
        if not path.startswith(b"/") or query and not query.startswith(b"?"):
            raise ValueError("not the parts of a request target")
        self.path = path
        self.query = query
        self.cards = cards

    cdef int dispatch(self, RoutedRequest request) except -1:
        cdef MessageHead head = request.ctx.head
        cdef BackendPlan plan = request.backend
        cdef bytes target = self.path + self.query
        if head.flags & HEAD_CONNECT:
            request.ctx.reply = request.worker.reply(REPLY_INVALID_BACKEND)
            return REPLY
        if self.cards and card_suffix(head.data + head.target_off, head.path_len):
            target = self.path + _card_path + self.query
        head.set_target(target, len(target))
        # The signature is that of this host, whatever the route says.
        head.set_authority(plan.authority, len(plan.authority))
        return PoolBackend.dispatch(self, request)
