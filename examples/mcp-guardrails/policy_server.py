"""A policy server for MCP guardrails: refuses and hides tools, changes arguments, takes secrets out of results.

    pip install grpcio grpcio-tools pyyaml
    python policy_server.py --listen 127.0.0.1:9000 --rules rules.yaml

It prints `listening <port>` when it takes calls, and ends with SIGTERM. The protocol is in ext_mcp.proto.
"""

from __future__ import annotations

import argparse
import asyncio
import fnmatch
import json
import logging
import re
import signal
import sys
from pathlib import Path
from typing import Any

import grpc
import yaml

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))  # where the compiler of the next line looks
messages, services = grpc.protos_and_services("ext_mcp.proto")

logger = logging.getLogger("policy")
# Results of 16 MiB pass the gateway.
MAX_MESSAGE = 24 * 1024 * 1024


class Rules:
    """What rules.yaml says."""

    def __init__(self, found: dict[str, Any]) -> None:
        self.denied = found.get("denyTools") or []
        self.arguments = found.get("setArguments") or {}
        self.headers = found.get("setHeaders") or {}
        self.secrets = [re.compile(text) for text in found.get("redact") or []]
        self.users = found.get("users")

    def denies(self, tool: str) -> bool:
        """Tell whether nobody may use a tool. Lists have the client's names, which may carry the target's."""
        return any(fnmatch.fnmatchcase(tool, pattern) for pattern in self.denied)

    def redacted(self, text: str) -> str:
        """Return a text without secrets."""
        for secret in self.secrets:
            text = secret.sub("[redacted]", text)
        return text

    def clean(self, value: Any) -> Any:
        """Return JSON without secrets in its texts; its keys and numbers stay."""
        if isinstance(value, str):
            return self.redacted(value)
        if isinstance(value, list):
            return [self.clean(one) for one in value]
        return {key: self.clean(one) for key, one in value.items()} if isinstance(value, dict) else value


class PolicyServer(services.ExtMcpServicer):
    """Answers the two questions of the gateway."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules

    async def CheckRequest(self, request: Any, context: grpc.aio.ServicerContext) -> Any:
        """Decide about a request before its server gets it."""
        del context
        user = request.metadata_context.fields["user"].string_value
        logger.info("request %s for %s of %s", request.method, list(request.service_names), user or "nobody")
        found = messages.McpRequestResult()
        found.metadata["user"] = user
        for name, value in self.rules.headers.items():
            found.header_mutation.set.add(key=name, value=str(value).encode())
        if self.rules.users is not None and user not in self.rules.users:
            return refusal(messages.McpRequestResult, f"{user or 'nobody'} may not use this")
        if request.method == "tools/call" and request.HasField("mcp_request"):
            params = json.loads(request.mcp_request)
            tool = params["name"]
            if self.rules.denies(tool):
                return refusal(messages.McpRequestResult, f"{tool} is not allowed", {"tool": tool})
            more = self.rules.arguments.get(tool)
            if more:
                params["arguments"] = {**(params.get("arguments") or {}), **more}
                found.mutated = json.dumps(params).encode()
                return found
        getattr(found, "pass").SetInParent()
        return found

    async def CheckResponse(self, request: Any, context: grpc.aio.ServicerContext) -> Any:
        """Decide about a result before the client gets it."""
        del context
        result = before = json.loads(request.mcp_response)
        if request.method == "tools/list":
            result = {**result, "tools": [one for one in result["tools"] if not self.rules.denies(one["name"])]}
        elif request.method in ("tools/call", "resources/read", "prompts/get"):
            result = self.rules.clean(result)
        if result != before:
            return messages.McpResponseResult(mutated=json.dumps(result).encode())
        found = messages.McpResponseResult()
        getattr(found, "pass").SetInParent()
        return found


def refusal(kind: Any, reason: str, more: Any = None) -> Any:
    """Return a refusal; `more` becomes the error's data."""
    found = kind()
    found.error.code = messages.AuthorizationError.PERMISSION_DENIED
    found.error.reason = reason
    if more is not None:
        found.error.mcp_error = json.dumps(more).encode()
    return found


async def serve(listen: str, rules: Rules) -> None:
    """Serve until SIGTERM."""
    limits = [("grpc.max_receive_message_length", MAX_MESSAGE), ("grpc.max_send_message_length", MAX_MESSAGE)]
    server = grpc.aio.server(options=limits)
    services.add_ExtMcpServicer_to_server(PolicyServer(rules), server)
    port = server.add_insecure_port(listen)
    await server.start()
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    print(f"listening {port}", flush=True)
    await ended.wait()
    await server.stop(5)


def main() -> None:
    """Read the arguments."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--listen", default="127.0.0.1:9000")
    parser.add_argument("--rules", type=Path, default=HERE / "rules.yaml")
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(name)s: %(message)s")
    asyncio.run(serve(arguments.listen, Rules(yaml.safe_load(arguments.rules.read_text()) or {})))


if __name__ == "__main__":
    main()
