"""The variables of expressions: their types, and the phases in which each can have a value.

Unknown names are refused when a configuration is loaded, and so is a variable outside its phases, unless has(),
default(), coalesce() or variables() handle its absence. In its phases, a variable that has no value is null; so is a
field of a variable that has one. `docs/expressions.md` is made of these tables
(`python -m headgate.expr.variables > docs/expressions.md`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

# Phase to the places of its expressions. ANY is for tools that try an expression: all variables are there.
PLACES: Final = {
    "network": "`networkAuthorization` and `networkExtAuthz` (`frontendPolicies`): a connection without a request",
    "gateway": "policies of `gateways` and their listeners, and of `policies[]` with `phase: gateway`",
    "route": "policies of routes (`llm.policies`, `mcp.policies` and `ui.policies` are such)",
    "response guard": "headers of webhook guards of responses",
    "backend": "policies of backends, `backendAuth`, `sessionAffinity`",
    "llm": "`transformation` and `finalTransformation` of models, `when` and sticky keys of virtual models, headers of "
    "webhook guards of requests",
    "mcp": "`mcpAuthorization`, metadata of `mcpGuardrails`",
    "answer": "`retry.condition`, `health.unhealthyExpression`: the head of a backend's answer",
    "response": "`transformations.response`",
    "log": "access log, request log, labels of metrics",
}  # fmt: skip
ANY: Final = "any"
PHASES: Final = (*PLACES, ANY)
CONNECTED: Final = frozenset(PHASES)
ALWAYS: Final = CONNECTED - {"network"}
ROUTED: Final = ALWAYS - {"gateway"}
CHOSEN: Final = ROUTED - {"route", "response guard"}
BODIES: Final = ALWAYS - {"log"}
ANSWERED: Final = frozenset(("answer", "response", "log", ANY))
ENDED: Final = ANSWERED - {"answer"}
LOGGED: Final = frozenset(("log", ANY))
MODELS: Final = CHOSEN - {"mcp"}
DYN: Final = "dyn"


class Variable(NamedTuple):
    """One variable. `fields` are its fields with their types; None allows any field (claims, metadata).

    `later`: the phases of fields that have fewer than the variable. `nullable`: fields that may be null while the
    variable has a value; the others are there then.
    """

    phases: frozenset[str]
    what: str
    fields: Mapping[str, str] | None = None
    later: Mapping[str, frozenset[str]] = {}
    nullable: frozenset[str] = frozenset()

    def phases_of(self, field: str) -> frozenset[str]:
        """Return the phases in which a field can have a value."""
        return self.later.get(field, self.phases)


def _typed(kind: str, names: str) -> dict[str, str]:
    return dict.fromkeys(names.split(), kind)


def _names(names: str) -> frozenset[str]:
    return frozenset(names.split())


_COUNTS: Final = (
    "inputTokens outputTokens totalTokens reasoningTokens cachedInputTokens cacheCreationInputTokens countTokens "
    "providerInputTokens providerTotalTokens inputTextTokens inputImageTokens inputAudioTokens outputTextTokens "
    "outputImageTokens outputAudioTokens"
)
# What of `llm` is known before the provider has answered: inputTokens is an estimate then.
_ASKED: Final = _names("requestModel provider streaming inputTokens prompt params cost costRates")
_LLM: Final = {
    **_typed("string", "requestModel responseModel provider serviceTier"),
    **_typed("int", _COUNTS),
    **_typed("bool", "streaming"),
    **_typed("duration", "timeToFirstToken timePerOutputToken"),
    **_typed(DYN, "prompt completion toolCalls params cost costRates"),
}
_CERTIFICATE: Final = "identity spiffeId subjectAltNames issuer subject subjectCn certificate unverifiedWorkload"

VARIABLES: Final[dict[str, Variable]] = {
    "request": Variable(
        ALWAYS,
        "the request, as changed by earlier policies; `body` and `bodyPrefix` buffer the body before the policy runs",
        {
            **_typed("string", "method scheme host path version uri pathAndQuery"),
            **_typed("bytes", "body bodyPrefix"),
            **_typed("timestamp", "startTime endTime"),
            "headers": "headers",
        },
        {"body": BODIES, "bodyPrefix": BODIES, "endTime": LOGGED},
        _names("endTime"),
    ),
    "response": Variable(
        ANSWERED,
        "the response to the client; `body` and `bodyPrefix` hold it back until its body is complete. If the body is "
        "larger than the buffer, `bodyPrefix` has its beginning and `body` is an error",
        {**_typed("int", "code grpcStatus"), **_typed("bytes", "body bodyPrefix"), "headers": "headers"},
        {"body": frozenset(("response", ANY)), "bodyPrefix": frozenset(("response", ANY))},
        _names("grpcStatus"),
    ),
    "proxy": Variable(
        ALWAYS,
        "where the request came in and where it goes: `gateway.name`, `gateway.namespace`, `listener.name`, "
        "`route.name`, `route.namespace`, `route.kind`, `route.rule`, "
        "`route.parents` (the routes that have delegated to it, outermost first)",
        {
            **_typed(DYN, "gateway listener route"),
            **_typed("string", "bind"),
            **_typed("duration", "requestProcessingDuration upstreamDuration responseProcessingDuration"),
        },
        {
            "route": ROUTED, "requestProcessingDuration": ANSWERED, "upstreamDuration": ANSWERED,
            "responseProcessingDuration": LOGGED,
        },
        _names("gateway listener route bind requestProcessingDuration upstreamDuration responseProcessingDuration"),
    ),
    "env": Variable(
        CONNECTED, "the process", _typed("string", "podName namespace gateway"), {}, _names("podName namespace gateway")
    ),
    "source": Variable(
        CONNECTED,
        "the client; fields of a certificate are null without one; `rawAddress` and `rawPort` are those of the socket, "
        "if a PROXY protocol header gave others",
        {
            **_typed("string", "address rawAddress spiffeId issuer subject subjectCn certificate"),
            **_typed("int", "port rawPort"),
            **_typed(DYN, "identity subjectAltNames unverifiedWorkload connectHeaders"),
        },
        {},
        _names(f"{_CERTIFICATE} address port rawAddress rawPort connectHeaders"),
    ),
    "destination": Variable(
        CONNECTED,
        "the gateway's end of the connection; `hostname` is the server name that the client sent in TLS (SNI)",
        {**_typed("string", "address hostname"), "port": "int"},
        {},
        _names("address port hostname"),
    ),
    "jwt": Variable(ALWAYS, "claims of the verified token (`jwtAuth`, `oidc`, `mcpAuthentication`), and `rawToken`"),
    "apiKey": Variable(ALWAYS, "metadata of the verified API key, and `key`"),
    "basicAuth": Variable(ALWAYS, "the verified user", {"username": "string"}),
    "backend": Variable(CHOSEN, "the chosen backend", _typed("string", "name type protocol")),
    "llmRequest": Variable(MODELS, "the JSON of a request to a model"),
    "llm": Variable(
        MODELS,
        "a request to a model and its answer",
        _LLM,
        {name: ENDED for name in _LLM if name not in _ASKED},
        frozenset(_LLM) - _names("requestModel streaming params"),
    ),
    "mcp": Variable(
        frozenset(("mcp", "response", "log", ANY)),
        "an MCP request: `tool.target`, `tool.name`, `tool.arguments`, `tool.result`, `tool.error`, and `target` and "
        "`name` of `prompt`, `resource` and `task`",
        {**_typed("string", "methodName sessionId"), **_typed(DYN, "tool prompt resource task")},
        {},
        _names("methodName sessionId tool prompt resource task"),
    ),
    "extauthz": Variable(ALWAYS, "what the authorization service has returned"),
    "extproc": Variable(ALWAYS, "what the processing service has returned"),
    "mcpGuardrails": Variable(ALWAYS, "what guardrail services have returned"),
    "metadata": Variable(ALWAYS, "what `transformations.*.metadata` have set"),
}  # fmt: skip


def outside(path: str, phases: frozenset[str], phase: str) -> str:
    """Return the message for a variable or field that never has a value in a phase."""
    if path in ("request.body", "request.bodyPrefix", "response.body", "response.bodyPrefix") and phase == "log":
        return f"{path} cannot be used in the log: bodies are not kept until the end of a request"
    places = ", ".join(name for name in PLACES if name in phases)
    return f"{path} has no value in the {phase} phase (it has one in: {places})"


def page() -> str:
    """Return docs/expressions.md."""
    lines = [
        "# Variables of expressions", "",
        "Expressions are written in [CEL](https://cel.dev). This rule allows one team, and reads "
        "two variables:",
        "", "```yaml", "gateways:", "  default: {port: 3000}", "routes:", "- policies:", "    authorization:",
        "      rules: ['jwt.team == \"research\" && request.method == \"GET\"']",
        "  backends: [{host: \"127.0.0.1:8080\"}]", "```",
        "", "This page is generated from the tables in `headgate.expr.variables`.",
        "", "## Phases", "", "Which variables have a value depends on the phase in which the expression is evaluated:",
        "", "| Phase | Expressions of this phase |", "|---|---|",
    ]  # fmt: skip
    lines += [f"| {name} | {what} |" for name, what in PLACES.items()]
    lines += [
        "",
        "- A variable that never has a value in a phase is refused at load, except in `has()`, `default()` and "
        "`coalesce()`.",
        "- In its phases, a variable without a value is null: `jwt`, `apiKey` and `basicAuth` without verified "
        "credentials, `metadata` before a policy has set any. Reading a field of null is an error (`no such key`).",
        "- A field marked `?` can be null although the variable has a value. `has()` of it is false then.",
        "", "## Variables and their fields", "", "x marks the phases in which a variable or field has a value.",
        "", f"| Variable | Type | {' | '.join(PLACES)} |", f"|---|---|{'---|' * len(PLACES)}",
    ]  # fmt: skip
    for name, variable in VARIABLES.items():
        lines.append(f"| **`{name}`** | {variable.what} | {_marks(variable.phases)} |")
        rows: dict[tuple[str, frozenset[str]], list[str]] = {}
        for field, kind in (variable.fields or {}).items():
            shown = f"`{field}`{'?' if field in variable.nullable else ''}"
            rows.setdefault((kind, variable.phases_of(field)), []).append(shown)
        for (kind, phases), names in rows.items():
            lines.append(f"| {', '.join(names)} | {'any' if kind == DYN else kind} | {_marks(phases)} |")
    return "\n".join(lines) + "\n"


def _marks(phases: frozenset[str]) -> str:
    return " | ".join("x" if name in phases else "" for name in PLACES)


if __name__ == "__main__":
    print(page(), end="")
