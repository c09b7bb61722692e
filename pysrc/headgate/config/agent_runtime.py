"""`aws.agentCore`: agent runtimes of Amazon Bedrock AgentCore, to the IR and back.

Source: https://docs.aws.amazon.com/bedrock-agentcore/latest/APIReference/API_InvokeAgentRuntime.html.
"""

from __future__ import annotations

import re
from typing import Any, Final, Protocol

from headgate.config.check import Record
from headgate.config.context import Context
from headgate.config.extras import check_cloud
from headgate.config.policy_values import BackendOptions
from headgate.document.fields import ConnectTarget
from headgate.errors import Problem
from headgate.ir.backend import AgentRuntimeBackend
from headgate.ir.endpoint import HTTPS_PORT, Endpoint
from headgate.ir.policy.backend_auth import BackendAuth
from headgate.ir.policy.cloud_auth import AwsAuth

ARN: Final = re.compile(
    r"arn:aws:bedrock-agentcore:(?P<region>[a-z0-9-]{1,63}):[0-9]{12}:runtime/[A-Za-z0-9_-]{1,128}"
)
QUALIFIER: Final = re.compile(r"[\x21-\x7e]{1,128}")
# Requests are signed with the keys of the environment, for the region and service that the host names.
AMBIENT: Final = BackendAuth(main=AwsAuth())


class EndpointMaker(Protocol):
    """What makes endpoints: headgate.config.backends.Backends."""

    context: Context

    def endpoint(self, target: ConnectTarget, options: BackendOptions, *, infers: bool = False) -> Endpoint: ...


def parse(backends: EndpointMaker, record: Record, name: str, options: BackendOptions) -> AgentRuntimeBackend | None:
    """Return the backend of an `aws` record. `name` is empty for an inline one. None is returned after an error."""
    found: Record = record["agentCore"]
    arn, qualifier = found["agentRuntimeArn"], found.get("qualifier")
    fits = ARN.fullmatch(arn)
    if fits is None:
        what = "not the ARN of an agent runtime: arn:aws:bedrock-agentcore:<region>:<account>:runtime/<id>"
        backends.context.fault(Problem.VALUE, found, "agentRuntimeArn", what)
    if qualifier is not None and not QUALIFIER.fullmatch(qualifier):
        backends.context.fault(Problem.VALUE, found, "qualifier", "a qualifier must have 1 to 128 visible characters")
    if fits is None:
        return None
    if options.auth is None:
        check_cloud(backends.context, record, "agentCore", AMBIENT.main)
    host = f"bedrock-agentcore.{fits['region']}.amazonaws.com"
    endpoint = backends.endpoint(ConnectTarget(host, HTTPS_PORT, None, "https"), options, infers=True)
    shown = name or f"aws/{arn.rpartition('/')[2]}"
    return AgentRuntimeBackend(
        key=f"{shown}#{endpoint.key}", name=shown, endpoint=endpoint, arn=arn, qualifier=qualifier
    )


def dump(backend: AgentRuntimeBackend) -> dict[str, Any]:
    """Return the form of the configuration dump."""
    found = {"agentRuntimeArn": backend.arn}
    if backend.qualifier is not None:
        found["qualifier"] = backend.qualifier
    return {"agentCore": found}
