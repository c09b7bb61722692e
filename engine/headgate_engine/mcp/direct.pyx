"""MCP backends whose plain calls the engine forwards by itself; see direct.pxd. The rules for plain calls are those of
headgate.backend.mcp.front.Front.handle and its services.
"""

from libc.string cimport memcmp

from headgate_engine.context.headers cimport MessageHead
from headgate_engine.context.request cimport RequestContext
from headgate_engine.link.backend cimport Backend, RoutedRequest, TAKEN
from headgate_engine.link.handler cimport HandlerBackend
from headgate_engine.mcp.call cimport DirectCall, new_call
from headgate_engine.mcp.fields cimport ClientHead
from headgate_engine.mcp.sessions cimport SessionEntry, TargetSession
from headgate_engine.mcp.settings cimport CallSettings, DirectTarget
from headgate_engine.peek.rpc cimport RpcMessage, message_of

from headgate_engine.peek.rpc import RpcKind, NotAMessage

# Methods of federated calls and the lists that tell whose a name is.
LISTS = {"tools/call": "tools/list", "prompts/get": "prompts/list"}
# A session at one of several targets has an id of its own, and the revision that the target agreed to.
OWN_FIELDS = (b"mcp-session-id", b"last-event-id")
OWN_FIELDS_AND_VERSION = (*OWN_FIELDS, b"mcp-protocol-version")
# Owners that are remembered.
MAX_OWNERS = 4096
cdef dict _lists = LISTS
cdef tuple _own_fields = OWN_FIELDS, _own_fields_and_version = OWN_FIELDS_AND_VERSION
cdef object A_REQUEST = RpcKind.REQUEST


cdef class DirectBackend(Backend):
    """Calls of one target; `handler` answers those that are not plain."""

    def __init__(self, HandlerBackend handler not None, DirectTarget target not None, service not None):
        self.target = target
        self._begin(handler, service, False)

    def _begin(self, HandlerBackend handler, service, bint federated):
        self.settings = CallSettings(handler, service, federated)
        self.client_head = ClientHead.__new__(ClientHead)
        self.owners = {}
        self.wants_body = True

    cdef int dispatch(self, RoutedRequest request) except -1:
        cdef DirectCall call
        request.start_own_attempt()
        call = self._plain(request)
        if call is None:
            request.call = self.settings.handler.begin(request)
        else:
            request.call = call
            call.launch()                # which may hand over at once
        return TAKEN

    cdef DirectCall _plain(self, RoutedRequest exchange):
        cdef RequestContext ctx = exchange.ctx
        cdef MessageHead head = ctx.head
        cdef ClientHead client_head = self.client_head
        cdef RpcMessage message
        cdef SessionEntry session
        if ctx.trace is not None or exchange.bind.metric_labels is not None or not ctx.body:
            return None
        if head.method_len != 4 or memcmp(head.data + head.method_off, b"POST", 4) or (
                head.path_len == 4 and memcmp(head.data + head.target_off, b"/sse", 4) == 0):
            return None
        client_head.read(head)
        if not client_head.plain:
            return None
        try:
            message = message_of(ctx.body)
        except NotAMessage:
            return None
        if message.kind is not A_REQUEST or message.method == "initialize" or message.meta_version is not None:
            return None
        session = self.settings.sessions.look_up(client_head.session_id, self._owner(ctx))
        return None if session is None else self._aimed(exchange, message, session)

    cdef DirectCall _aimed(self, RoutedRequest exchange, RpcMessage message, SessionEntry session):
        cdef DirectCall call = new_call(self.settings, exchange, message, session, self.target)
        call.place_there = <TargetSession?>session.server
        call.body = message.text
        return call if call.make_head(message.name, ()) else None

    cdef str _owner(self, RequestContext ctx):
        """The owner whose sessions a request may use (headgate.backend.mcp.session.owner_of)."""
        cdef dict claims = ctx.jwt
        cdef object issuer = None, subject = None
        cdef tuple key
        if claims is None and ctx.basic_user is None and ctx.api_key_text is None:
            return ""
        if claims is not None:
            # `1` and `true` are one to a dict, and two in JSON: only texts are remembered.
            issuer, subject = claims.get("iss"), claims.get("sub")
            if type(subject) is not str or issuer is not None and type(issuer) is not str:
                return self.settings.service.owner_of(ctx)
        key = (issuer, subject, ctx.basic_user, ctx.api_key_text)
        owner = self.owners.get(key)
        if owner is None:
            owner = self.settings.service.owner_of(ctx)
            if len(self.owners) >= MAX_OWNERS:
                self.owners.clear()
            self.owners[key] = owner
        return owner


cdef class FederatedBackend(DirectBackend):
    """Calls of several targets behind one session; `handler` answers those that are not plain. `targets`: by name, those
    whose calls the engine can make; `prefixed`: names carry their target.
    """

    def __init__(self, HandlerBackend handler not None, dict targets not None, service not None, *, bint prefixed):
        for name, target in targets.items():
            if type(name) is not str or not isinstance(target, DirectTarget):
                raise TypeError("targets are a dict of str and DirectTarget")
        self.targets = targets
        self.prefixed = prefixed
        self._begin(handler, service, True)

    cdef DirectCall _aimed(self, RoutedRequest exchange, RpcMessage message, SessionEntry session):
        cdef DirectCall call
        cdef DirectTarget target
        cdef TargetSession there
        cdef object listing = _lists.get(message.method)
        cdef str name, target_name
        cdef bytes body = message.text
        if listing is None:
            return None
        name = message.name
        if not name:
            return None
        group = session.server
        if self.prefixed:
            target_name, _, name = name.partition("_")
            if not name:
                return None
            body = message.with_name(name)
        else:
            target_name = (<dict>group.owners).get((listing, name))
        target = self.targets.get(target_name)
        link = (<dict>group.links).get(target_name)
        if target is None or link is None:
            return None
        there = link.direct
        if there is None:
            return None
        call = new_call(self.settings, exchange, message, session, target)
        call.target_name, call.plain_name = target_name, name
        call.place_there = there
        call.body = body
        return call if call.make_head(name, _own_fields if there.version_field is None else _own_fields_and_version) else None
