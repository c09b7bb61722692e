"""The variables of expressions, with their types and the phases in which they have a value.

Unknown names are refused when a configuration is loaded. Outside its phases a variable is null, or a missing key,
as it is in its phases before it is set.
"""

from __future__ import annotations

from typing import Final, NamedTuple

PHASES: Final = ("gateway", "route", "backend", "response", "llm", "mcp", "log")
ALWAYS: Final = frozenset(PHASES)
ROUTED: Final = ALWAYS - {"gateway"}
CHOSEN: Final = frozenset(("backend", "response", "llm", "mcp", "log"))
ANSWERED: Final = frozenset(("response", "log"))
LOGGED: Final = frozenset(("log",))
DYN: Final = "dyn"


class Variable(NamedTuple):
    """One variable. `fields` are its fields with their types; None allows any field (claims, metadata)."""

    phases: frozenset[str]
    fields: dict[str, str] | None = None


def _typed(kind: str, names: str) -> dict[str, str]:
    return dict.fromkeys(names.split(), kind)


VARIABLES: Final[dict[str, Variable]] = {
    "request": Variable(
        ALWAYS,
        {
            **_typed("string", "method scheme host path version uri pathAndQuery"),
            **_typed("bytes", "body bodyPrefix"),
            **_typed("timestamp", "startTime endTime"),
            "headers": "headers",
        },
    ),
    "response": Variable(
        ANSWERED,
        {**_typed("int", "code grpcStatus"), **_typed("bytes", "body bodyPrefix"), "headers": "headers"},
    ),
    "proxy": Variable(
        ALWAYS,
        {
            **_typed(DYN, "gateway listener route"),
            **_typed("string", "bind"),
            **_typed("duration", "requestProcessingDuration upstreamDuration responseProcessingDuration"),
        },
    ),
    "env": Variable(ALWAYS, _typed("string", "podName namespace gateway")),
    "source": Variable(
        ALWAYS,
        {
            **_typed("string", "address rawAddress spiffeId issuer subject subjectCn certificate"),
            **_typed("int", "port rawPort"),
            **_typed(DYN, "identity subjectAltNames unverifiedWorkload connectHeaders"),
        },
    ),
    "destination": Variable(ALWAYS, {**_typed("string", "address hostname"), "port": "int"}),
    "jwt": Variable(ALWAYS),
    "apiKey": Variable(ALWAYS),
    "basicAuth": Variable(ALWAYS, {"username": "string"}),
    "backend": Variable(CHOSEN, _typed("string", "name type protocol")),
    "llmRequest": Variable(frozenset(("llm", "response", "log"))),
    "llm": Variable(
        frozenset(("llm", "response", "log")),
        {
            **_typed("string", "requestModel responseModel provider serviceTier"),
            **_typed(
                "int",
                "inputTokens outputTokens totalTokens reasoningTokens cachedInputTokens cacheCreationInputTokens "
                "countTokens providerInputTokens providerTotalTokens inputTextTokens inputImageTokens inputAudioTokens "
                "outputTextTokens outputImageTokens outputAudioTokens",
            ),
            **_typed("bool", "streaming"),
            **_typed("duration", "timeToFirstToken timePerOutputToken"),
            **_typed(DYN, "prompt completion toolCalls params cost costRates"),
        },
    ),
    "mcp": Variable(
        frozenset(("mcp", "response", "log")),
        {**_typed("string", "methodName sessionId"), **_typed(DYN, "tool prompt resource task")},
    ),
    "extauthz": Variable(ALWAYS),
    "extproc": Variable(ALWAYS),
    "mcpGuardrails": Variable(ALWAYS),
    "metadata": Variable(ALWAYS),
}
