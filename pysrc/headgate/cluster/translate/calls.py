"""`backend` of a GatewayPolicy as policies of calls to backends."""

from __future__ import annotations

from typing import Any, Final

from headgate.cluster.snapshot import Snapshot
from headgate.cluster.translate.backend_policies import BackendPolicyReader
from headgate.cluster.translate.checked import faults_of_call, faults_of_policy
from headgate.cluster.translate.fragments import Json
from headgate.cluster.translate.traffic import CLOSED, Policies

# Of what protects a backend, or what is sent there, and cannot be said: nothing is sent.
_PROTECTS: Final = frozenset(("tls", "tunnel", "auth", "mcp", "extAuth"))
# Policies of routes in the file.
OF_ROUTES: Final = frozenset(("mcpAuthentication",))
# By kind of policy, the backends that it has a meaning for.
_SUITED: Final = {"ai": "ai", "mcpAuthorization": "mcp", "mcpGuardrails": "mcp"}


def calls(snapshot: Snapshot, namespace: str, section: Json) -> Policies:
    """Translate the parts of a section. A part that fails does not affect the others; if it protects something,
    nothing is sent to the backends instead. `namespace`: of the policy, where its Secrets and ConfigMaps are."""
    found: dict[str, Any] = {}
    faults: list[str] = []
    closed = False
    reader = BackendPolicyReader(snapshot, namespace)
    for name, value in section.items():
        try:
            made = reader.read({name: value})
            for kind, policy in made.items():
                if wrong := (faults_of_policy if kind in OF_ROUTES else faults_of_call)(kind, policy):
                    raise ValueError(f"{name} cannot be in force: {'; '.join(wrong)}")
            found.update(made)
        except ValueError as error:
            faults.append(f"backend.{error}")
            closed = closed or protects(name, value)
    if closed:
        found["authorization"] = {"rules": [CLOSED]}
    return Policies(found, faults, frozenset(reader.services.used), frozenset(reader.services.backends))


def protects(name: str, value: Any) -> bool:
    """Tell whether more could be sent, or be seen, without a part than with it."""
    return name in _PROTECTS or (name == "ai" and "promptGuard" in value)


def unsuited(kind: str, value: Any, backend: str) -> str | None:
    """Return why a policy has no meaning at a backend of a kind that it targets, "" being any; None if it has one."""
    if backend in ("dynamic", "bounded") and kind == "health":
        return "health is for backends with endpoints, and of this one each request names the place"
    client = kind == "backendTLS" and "cert" in value
    if backend == "dynamic" and (client or kind in ("backendAuth", "backendTunnel")):
        return f"{kind} of a dynamicForwardProxy needs its allowedHosts: anybody could ask for what it proves"
    wanted = _SUITED.get(kind)
    if wanted is not None and backend not in ("", wanted):
        return f"{kind} is for {wanted} backends"
    if backend == "mcp" and (kind == "health" or (kind == "transformations" and "response" in value)):
        return f"{kind} is not for MCP servers, which are one place and answer with streams"
    return None
