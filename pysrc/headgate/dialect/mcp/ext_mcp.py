"""The messages of the guardrail protocol, as declared in `examples/mcp-guardrails/ext_mcp.proto`."""

from __future__ import annotations

from typing import Any, Final

from headgate.dialect.protobuf import STRUCT, Field, classes_of, file_of

PACKAGE: Final = "gateway.mcp.v1"
CODE: Final = "AuthorizationError.Code"
ASKED: Final = (
    Field(1, "service_names", "string", "repeated"),
    Field(2, "method", "string"),
    Field(3, "metadata_context", STRUCT),
)
DECIDED: Final = (
    Field(1, "pass", "Pass", "result"),
    Field(2, "mutated", "bytes", "result"),
    Field(3, "error", "AuthorizationError", "result"),
)
FILE: Final = file_of(
    "ext_mcp.proto",
    PACKAGE,
    {
        "McpRequest": (
            *ASKED,
            Field(4, "mcp_request", "bytes", "optional"),
            Field(5, "headers", "McpHeader", "repeated"),
        ),
        "McpResponse": (*ASKED, Field(4, "mcp_response", "bytes")),
        "McpRequestResult": (
            *DECIDED,
            Field(4, "header_mutation", "HeaderMutation"),
            Field(5, "metadata", STRUCT),
        ),
        "McpResponseResult": DECIDED,
        "HeaderMutation": (Field(1, "set", "McpHeader", "repeated"), Field(2, "remove", "string", "repeated")),
        "McpHeader": (Field(1, "key", "string"), Field(2, "value", "bytes")),
        "Pass": (),
        "AuthorizationError": (
            Field(1, "code", CODE),
            Field(2, "reason", "string"),
            Field(3, "mcp_error", "bytes", "optional"),
        ),
    },
    {CODE: ("UNKNOWN", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "INVALID")},
)
_CLASSES: Final = classes_of(FILE)
McpRequest: Any = _CLASSES["McpRequest"]
McpResponse: Any = _CLASSES["McpResponse"]
McpRequestResult: Any = _CLASSES["McpRequestResult"]
McpResponseResult: Any = _CLASSES["McpResponseResult"]
