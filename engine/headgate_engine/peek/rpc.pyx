# cython: nonecheck=True
# cython: boundscheck=False
"""JSON-RPC 2.0 messages of MCP: finds a message's type and replaces parts of it without building its contents.

boundscheck is off: the spans are those of a scan over the same text.
"""

import enum
import json

from headgate_engine.peek.json cimport (
    R_ERROR, R_JSONRPC, R_META_CAPABILITIES, R_META_VERSION, R_METHOD, R_NAME, R_RESULT, R_RESULT_CURSOR,
    R_RESULT_TASK_ID, R_RESULT_TASK_OWN_ID, R_TASK, R_URI, R_VERSION, RpcPeek)
from headgate_engine.peek.scan cimport J_ARRAY, J_NULL, J_NUMBER, J_OBJECT, J_STRING

from headgate_engine.peek.json import PeekError

# JSON-RPC 2.0 section 5.1.
cdef enum:
    PARSE_ERROR = -32700
    INVALID_REQUEST = -32600
    INVALID_PARAMS = -32602

# Member of `params` that names the object of a request; MCP repeats it in the header `mcp-name`.
NAME_SOURCE = {
    "prompts/get": "name",
    "resources/read": "uri",
    "resources/subscribe": "uri",
    "resources/unsubscribe": "uri",
    "tasks/cancel": "taskId",
    "tasks/get": "taskId",
    "tasks/result": "taskId",
    "tasks/update": "taskId",
    "tools/call": "name",
}
cdef dict _name_fields = {
    method: {"name": R_NAME, "uri": R_URI, "taskId": R_TASK}[member] for method, member in NAME_SOURCE.items()
}


class RpcKind(enum.Enum):
    REQUEST = "request"
    NOTIFICATION = "notification"
    RESPONSE = "response"


cdef object A_REQUEST = RpcKind.REQUEST
cdef object A_NOTIFICATION = RpcKind.NOTIFICATION
cdef object A_RESPONSE = RpcKind.RESPONSE


class NotAMessage(ValueError):
    def __init__(self, code, reason, raw_id=None, method=None):
        super().__init__(reason)
        self.code = code
        self.raw_id = raw_id
        self.method = method


cdef class RpcMessage:
    def __init__(self):
        raise TypeError("a message comes of parse()")

    cdef bytes _between(self, Py_ssize_t start, Py_ssize_t stop, bytes piece):
        return self.text[:start] + piece + self.text[stop:]

    cdef int _name_field(self) except -1:
        """Return the field of RpcPeek that names the object of the message, 0 if its method has none."""
        return <int>_name_fields.get(self.method, 0)

    def with_id(self, bytes raw_id not None):
        return self._between(self.found.id_start, self.found.id_stop, raw_id)

    def with_params(self, bytes params not None):
        return self._between(self.found.params_start, self.found.params_stop, params)

    def with_name(self, str name not None):
        cdef int field = self._name_field()
        if field == 0 or self.found.found[field].kind != J_STRING:
            raise ValueError("the message is about nothing that has a name")
        return self._between(self.found.found[field].start, self.found.found[field].stop, quoted(name))

    def with_task(self, str task not None):
        cdef int field = R_RESULT_TASK_ID
        if self.found.found[field].kind != J_STRING:
            field = R_RESULT_TASK_OWN_ID
        if self.found.found[field].kind != J_STRING:
            raise ValueError("the result is about no task")
        return self._between(self.found.found[field].start, self.found.found[field].stop, quoted(task))

    @property
    def params(self):
        return self.text[self.found.params_start:self.found.params_stop]

    @property
    def name(self):
        cdef int field = self._name_field()
        return None if field == 0 else self.found._text_of(field)

    @property
    def uri(self):
        return self.found._text_of(R_URI)

    @property
    def protocol_version(self):
        return self.found._text_of(R_VERSION)

    @property
    def meta_version(self):
        return self.found._text_of(R_META_VERSION)

    @property
    def has_client_capabilities(self):
        return self.found.found[R_META_CAPABILITIES].kind == J_OBJECT

    @property
    def has_result_object(self):
        return self.found.found[R_RESULT].kind == J_OBJECT

    @property
    def has_error_object(self):
        return self.found.found[R_ERROR].kind == J_OBJECT

    @property
    def result_span(self):
        return self.found.found[R_RESULT].start, self.found.found[R_RESULT].stop

    @property
    def result_task(self):
        task = self.found._text_of(R_RESULT_TASK_ID)
        return self.found._text_of(R_RESULT_TASK_OWN_ID) if task is None else task

    @property
    def next_cursor(self):
        return self.found._text_of(R_RESULT_CURSOR)

    def decoded_params(self):
        try:
            params = json.loads(self.params or b"{}")
        except ValueError:
            # JSON allows an integer of thousands of digits; int() does not.
            return {}
        return params if isinstance(params, dict) else {}

    def __repr__(self):
        return f"Message({self.text!r})"


cpdef bytes quoted(str text):
    """Return a string as JSON."""
    if text.isascii() and text.isprintable() and '"' not in text and "\\" not in text:
        return b'"' + text.encode("ascii") + b'"'
    return json.dumps(text, ensure_ascii=False).encode("utf-8", "surrogatepass")


cdef object _kind(RpcPeek peek):
    """Return the type of a message by its members (JSON-RPC 2.0 sections 4 and 5)."""
    if peek.has_method:
        if not peek.method_is_string:
            raise NotAMessage(INVALID_REQUEST, "the method is not a string")
        if not peek.has_id:
            return A_NOTIFICATION
        if peek.id_kind != J_STRING and peek.id_kind != J_NUMBER:
            raise NotAMessage(INVALID_REQUEST, "an id is a string or a number")
        return A_REQUEST
    if peek.has_result == peek.has_error:
        raise NotAMessage(INVALID_REQUEST, "neither a request nor a response")
    # An error that belongs to no request has a null id (section 5). Servers in use also leave the id out.
    if peek.has_error and (not peek.has_id or peek.id_kind == J_NULL):
        return A_RESPONSE
    if not peek.has_id or (peek.id_kind != J_STRING and peek.id_kind != J_NUMBER):
        raise NotAMessage(INVALID_REQUEST, "an id is a string or a number")
    return A_RESPONSE


cdef object _request_with(RpcPeek peek, bytes text, int code, str reason):
    """Return the error for a text with a usable id: the client of a request can receive it under that id."""
    cdef object raw_id = None
    cdef object method = None
    if peek.has_id and (peek.id_kind == J_STRING or peek.id_kind == J_NUMBER):
        raw_id = text[peek.id_start:peek.id_stop]
    if peek.has_method and peek.method_is_string:
        method = peek._text_of(R_METHOD)
    return NotAMessage(code, reason, raw_id if method is not None else None, method)


def parse(bytes text not None):
    """Return the message that `text` holds. Raises NotAMessage; batches (2025-03-26) are refused."""
    return message_of(text)


cdef RpcMessage message_of(bytes text):
    cdef RpcPeek peek = RpcPeek.__new__(RpcPeek)
    cdef RpcMessage message
    peek.max_depth = 64
    try:
        peek.scan(text, len(text))
    except PeekError as error:
        raise NotAMessage(PARSE_ERROR, f"Parse error: {error}") from None
    peek.kept = text
    if peek.kind == J_ARRAY:
        raise NotAMessage(INVALID_REQUEST, "batches are not supported")
    if peek.kind != J_OBJECT:
        raise NotAMessage(INVALID_REQUEST, "not a JSON-RPC message")
    if peek.duplicate:
        # The target could use the other one of two members with the same name.
        raise NotAMessage(INVALID_REQUEST, "a member stands twice")
    if peek.found[R_JSONRPC].kind != J_STRING or peek._text_of(R_JSONRPC) != "2.0":
        raise _request_with(peek, text, INVALID_REQUEST, 'jsonrpc is not "2.0"')
    message = RpcMessage.__new__(RpcMessage)
    message.kind = _kind(peek)
    message.text = text
    message.found = peek
    message.method = peek._text_of(R_METHOD) if peek.has_method else None
    message.raw_id = text[peek.id_start:peek.id_stop] if peek.has_id else None
    message.is_error = peek.has_error
    if peek.has_params and message.kind is not A_RESPONSE and text[peek.params_start] != 123:
        raise _request_with(peek, text, INVALID_PARAMS, "params is not an object")
    return message
