"""The messages declared here are those of the .proto that policy servers are built from."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from google.protobuf.descriptor_pb2 import FileDescriptorSet

from headgate.dialect.mcp.ext_mcp import FILE, McpRequest
from headgate.ir.mcp_guardrails import CHECK_REQUEST, CHECK_RESPONSE

FOLDER = Path(__file__).parents[4] / "examples" / "mcp-guardrails"


def test_the_proto_says_the_same(tmp_path: Path) -> None:
    out = tmp_path / "set"
    command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{FOLDER}", f"-o{out}", "ext_mcp.proto"]
    subprocess.run(command, check=True)
    [found] = FileDescriptorSet.FromString(out.read_bytes()).file
    [service] = found.service
    paths = [f"/{found.package}.{service.name}/{method.name}" for method in service.method]
    assert paths == [CHECK_REQUEST, CHECK_RESPONSE]
    found.ClearField("service")
    for message in found.message_type:
        for field in message.field:
            field.ClearField("json_name")
    assert found == FILE


def test_absent_is_not_empty() -> None:
    assert not McpRequest.FromString(McpRequest().SerializeToString()).HasField("mcp_request")
    assert McpRequest.FromString(McpRequest(mcp_request=b"").SerializeToString()).HasField("mcp_request")
