"""What the server lists: the suite's tools, prompts and resources, by the names that its scenarios use."""

from __future__ import annotations

import base64
import struct
import zlib
from typing import Any


def _png() -> str:
    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    parts = (
        chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)),
        chunk(b"IDAT", zlib.compress(b"\0\xff\0\0")),
        chunk(b"IEND", b""),
    )
    return base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"".join(parts)).decode()


def _wav() -> str:
    samples = bytes(8)
    head = struct.pack("<4sI4s4sIHHIIHH4sI", b"RIFF", 36 + len(samples), b"WAVE", b"fmt ", 16, 1, 1, 8000, 8000, 1, 8,
                       b"data", len(samples))  # fmt: skip
    return base64.b64encode(head + samples).decode()


PNG, WAV = _png(), _wav()
IMAGE = {"type": "image", "data": PNG, "mimeType": "image/png"}
AUDIO = {"type": "audio", "data": WAV, "mimeType": "audio/wav"}

SCHEMA_2020_12: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}


def _schema(*strings: str) -> dict[str, Any]:
    found: dict[str, Any] = {"type": "object", "properties": {name: {"type": "string"} for name in strings}}
    return {**found, "required": list(strings)} if strings else found


def _tool(name: str, description: str, *strings: str) -> dict[str, Any]:
    return {"name": name, "description": description, "inputSchema": _schema(*strings)}


TASK_TOOLS = ("greet", "slow_compute", "failing_job", "protocol_error_job", "confirm_delete", "multi_input",
              "test_tool_with_task")  # fmt: skip
TOOLS = [
    _tool("test_simple_text", "Returns a text"),
    _tool("test_image_content", "Returns an image"),
    _tool("test_audio_content", "Returns a sound"),
    _tool("test_embedded_resource", "Returns a resource"),
    _tool("test_multiple_content_types", "Returns text, image and resource"),
    _tool("test_tool_with_logging", "Logs while it runs"),
    _tool("test_logging_tool", "Logs where the request asks for it"),
    _tool("test_error_handling", "Always fails"),
    _tool("test_tool_with_progress", "Tells its progress"),
    _tool("test_sampling", "Asks the client's model", "prompt"),
    _tool("test_elicitation", "Asks the user", "message"),
    _tool("test_elicitation_sep1034_defaults", "Asks the user, with defaults"),
    _tool("test_elicitation_sep1330_enums", "Asks the user, with choices"),
    _tool("test_streaming_elicitation", "Asks the user in the midst of a stream"),
    _tool("test_missing_capability", "Needs a client with sampling"),
    _tool("test_reconnection", "Hangs up before it answers"),
    _tool("test_trigger_tool_change", "Changes the list of tools"),
    _tool("test_trigger_prompt_change", "Changes the list of prompts"),
    _tool("test_input_required_result_elicitation", "Wants input of the user"),
    _tool("test_input_required_result_sampling", "Wants input of the model"),
    _tool("test_input_required_result_list_roots", "Wants the client's roots"),
    _tool("test_input_required_result_request_state", "Wants its state back"),
    _tool("test_input_required_result_multiple_inputs", "Wants three things at once"),
    _tool("test_input_required_result_multi_round", "Wants one thing after another"),
    _tool("test_input_required_result_tampered_state", "Knows its state again"),
    _tool("test_input_required_result_capabilities", "Wants what the client can give"),
    *(_tool(name, "Becomes a task where the client has tasks") for name in TASK_TOOLS),
    {"name": "json_schema_2020_12_tool", "description": "Tool with JSON Schema 2020-12 features",
     "inputSchema": SCHEMA_2020_12},
    {"name": "test_x_mcp_header", "description": "Has an argument that a field repeats",
     "inputSchema": {"type": "object",
                     "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}},
]  # fmt: skip

PROMPTS = [
    {"name": "test_simple_prompt", "description": "A simple prompt"},
    {
        "name": "test_prompt_with_arguments",
        "description": "A prompt with arguments",
        "arguments": [
            {"name": "arg1", "description": "First test argument", "required": True},
            {"name": "arg2", "description": "Second test argument", "required": True},
        ],
    },
    {
        "name": "test_prompt_with_embedded_resource",
        "description": "A prompt with a resource",
        "arguments": [{"name": "resourceUri", "description": "URI of the resource", "required": True}],
    },
    {"name": "test_prompt_with_image", "description": "A prompt with an image"},
    {"name": "test_input_required_result_prompt", "description": "A prompt that wants input"},
]

RESOURCES = [
    {"uri": "test://static-text", "name": "Static text", "description": "A text", "mimeType": "text/plain"},
    {"uri": "test://static-binary", "name": "Static binary", "description": "An image", "mimeType": "image/png"},
    {"uri": "test://watched-resource", "name": "Watched", "description": "It changes", "mimeType": "text/plain"},
]
TEMPLATES = [
    {
        "uriTemplate": "test://template/{id}/data",
        "name": "Template",
        "description": "Data by its id",
        "mimeType": "application/json",
    }
]

DEFAULTS = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "description": "User name", "default": "John Doe"},
        "age": {"type": "integer", "description": "User age", "default": 30},
        "score": {"type": "number", "description": "User score", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "description": "Verification status", "default": True},
    },
    "required": [],
}
_TITLED = [{"const": f"value{n}", "title": f"{word} Option"} for n, word in enumerate(("First", "Second", "Third"), 1)]
_PLAIN = ["option1", "option2", "option3"]
ENUMS = {
    "type": "object",
    "properties": {
        "untitledSingle": {"type": "string", "enum": _PLAIN},
        "titledSingle": {"type": "string", "oneOf": _TITLED},
        "legacyEnum": {
            "type": "string",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": _PLAIN}},
        "titledMulti": {"type": "array", "items": {"anyOf": _TITLED}},
    },
    "required": [],
}


def form(message: str, **properties: str) -> dict[str, Any]:
    """Return the params of an `elicitation/create`."""
    schema = {
        "type": "object",
        "properties": {name: {"type": kind} for name, kind in properties.items()},
        "required": list(properties),
    }
    return {"message": message, "requestedSchema": schema}


def sample(text: str, tokens: int) -> dict[str, Any]:
    """Return the params of a `sampling/createMessage`."""
    return {"messages": [{"role": "user", "content": {"type": "text", "text": text}}], "maxTokens": tokens}
