"""The pipeline as data: what happens to a request, in which order, and why there.

Read top to bottom for requests; response halves run in the order of RESPONSE. The trace, the configuration dump and
the documentation (`python -m headgate.pipeline.phases > docs/pipeline.md`) read this table; steps.py builds the steps
of it that are `built`.
"""

from __future__ import annotations

from typing import NamedTuple


class Entry(NamedTuple):
    """One policy in its place. `built`: works in this release; the loader refuses the others."""

    policy: str
    built: bool
    why: str = ""


class Phase(NamedTuple):
    """`per`: `request` runs once, `attempt` once per upstream try, `message` once per MCP message."""

    name: str
    per: str
    entries: tuple[Entry, ...]


PHASES: tuple[Phase, ...] = (
    Phase(
        "gateway",
        "request",
        (
            Entry("cors", True, "a preflight carries no credentials"),
            Entry("oidc", True, "identity comes before anything that may spend money"),
            Entry("jwtAuth", True),
            Entry("basicAuth", True),
            Entry("apiKey", True),
            Entry("extAuthz", False),
            Entry("authorization", True, "needs identity"),
            Entry("extProc", False),
            Entry("transformations", True, "route selection sees the changed request"),
        ),
    ),
    Phase(
        "route",
        "request",
        (
            Entry("timeout", True, "counted from the start of the request, covers all that follows"),
            Entry("cors", True),
            Entry("oidc", True),
            Entry("jwtAuth", True),
            Entry("mcpAuthentication", True, "before authorization, whose rules read the claims"),
            Entry("basicAuth", True),
            Entry("apiKey", True),
            Entry("extAuthz", False),
            Entry("authorization", True),
            Entry("localRateLimit", True, "only requests that may pass consume the limit"),
            Entry("remoteRateLimit", False),
            Entry("buffer", True, "after the limits: what is refused is not read"),
            Entry("extProc", False),
            Entry("transformations", True),
            Entry("csrf", True),
            Entry("requestHeaderModifier", True),
            Entry("urlRewrite", True),
            Entry("requestRedirect", True),
            Entry("delay", True),
            Entry("directResponse", True, "last: what precedes it applies to it as well"),
            Entry("requestMirror", True, "copies what the route's policies have made of the request"),
            Entry("retry", True, "every attempt starts from the request as it is here"),
        ),
    ),
    Phase(
        "backend",
        "attempt",
        (
            Entry("authorization", True),
            Entry("extAuthz", False),
            Entry("backendAuth", True, "replaces what the client sent in the same place"),
            Entry("transformations", True),
            Entry("requestHeaderModifier", True),
            Entry("requestRedirect", True),
            Entry("a2a", False),
            Entry("llm", True, "model choice, body edits and usage"),
            Entry("authority rewrite", True, "named hosts get their own name"),
            Entry("signature", True, "of `backendAuth.aws`: over the request as it leaves"),
        ),
    ),
)

RESPONSE: tuple[Entry, ...] = (
    Entry("responseHeaderModifier (route)", True),
    Entry("responseHeaderModifier (backend)", True),
    Entry("buffer", True),
    Entry("transformations (route, backend, gateway)", True),
    Entry("collected headers (rate limit)", True, "overwrite fields of the same name"),
)


def page() -> str:
    """Return docs/pipeline.md."""
    lines = ["# What happens to a request, in which order", "", "Made from the tables in `headgate.pipeline.phases`."]
    for phase in PHASES:
        lines += ["", f"## {phase.name} phase, once per {phase.per}", "", "| | | |", "|---|---|---|"]
        lines += [_row(number, entry) for number, entry in enumerate(phase.entries, start=1)]
    lines += ["", "## response", "", "| | | |", "|---|---|---|"]
    lines += [_row(number, entry) for number, entry in enumerate(RESPONSE, start=1)]
    return "\n".join(lines) + "\n"


def _row(number: int, entry: Entry) -> str:
    return f"| {number} | {entry.policy} | {entry.why if entry.built else 'not built yet'} |"


if __name__ == "__main__":
    print(page(), end="")
