"""The messages of the guardrail protocol, as declared in `examples/mcp-guardrails/ext_mcp.proto`."""

from __future__ import annotations

from typing import Any, Final

from headgate.dialect.protobuf import STRUCT, MessageField, classes_of, file_of

PACKAGE: Final = "gateway.mcp.v1"
CODE: Final = "AuthorizationError.Code"
ASKED: Final = (
    MessageField(1, "service_names", "string", "repeated"),
    MessageField(2, "method", "string"),
    MessageField(3, "metadata_context", STRUCT),
)
DECIDED: Final = (
    MessageField(1, "pass", "Pass", "result"),
    MessageField(2, "mutated", "bytes", "result"),
    MessageField(3, "error", "AuthorizationError", "result"),
)
FILE: Final = file_of(
    "ext_mcp.proto",
    PACKAGE,
    {
        "McpRequest": (
            *ASKED,
            MessageField(4, "mcp_request", "bytes", "optional"),
            MessageField(5, "headers", "McpHeader", "repeated"),
        ),
        "McpResponse": (*ASKED, MessageField(4, "mcp_response", "bytes")),
        "McpRequestResult": (
            *DECIDED,
            MessageField(4, "header_mutation", "HeaderMutation"),
            MessageField(5, "metadata", STRUCT),
        ),
        "McpResponseResult": DECIDED,
        "HeaderMutation": (
            MessageField(1, "set", "McpHeader", "repeated"),
            MessageField(2, "remove", "string", "repeated"),
        ),
        "McpHeader": (MessageField(1, "key", "string"), MessageField(2, "value", "bytes")),
        "Pass": (),
        "AuthorizationError": (
            MessageField(1, "code", CODE),
            MessageField(2, "reason", "string"),
            MessageField(3, "mcp_error", "bytes", "optional"),
        ),
    },
    {CODE: ("UNKNOWN", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "INVALID")},
)
_CLASSES: Final = classes_of(FILE)
McpRequest: Any = _CLASSES["McpRequest"]
McpResponse: Any = _CLASSES["McpResponse"]
McpRequestResult: Any = _CLASSES["McpRequestResult"]
McpResponseResult: Any = _CLASSES["McpResponseResult"]
