"""What a provider wants in a request's head beside the configured credential."""

from __future__ import annotations

from typing import Final

from headgate import __version__
from headgate.ir.model import LlmProvider
from headgate.ir.policy.backend_auth import BackendAuth, Passthrough
from headgate.ir.policy.token_exchange import CrossAppAccess, TokenExchange
from headgate_engine.plan.step import Step
from headgate_engine.steps.headers import RequestHeaderStep
from headgate_engine.steps.provider import ProviderStep

# Where clients of any vendor put their keys. They are the gateway's business, not the provider's, once it has its own.
CLIENT_KEYS: Final = ("authorization", "x-api-key", "api-key", "x-goog-api-key")
ANTHROPIC_VERSION: Final = (("anthropic-version", "2023-06-01"),)
# Of the vendor's own clients. Copilot refuses requests of unknown editors.
COPILOT_FIELDS: Final = (
    ("editor-version", f"headgate/{__version__}"), ("x-github-api-version", "2025-10-01"), ("x-initiator", "agent"),
    ("x-interaction-type", "conversation-agent"), ("openai-intent", "conversation-agent"),
)  # fmt: skip
# Without it Copilot refuses pictures.
COPILOT_PICTURES: Final = (("copilot-vision-request", "true"),)
# What a browser adds makes Anthropic refuse.
BROWSER_FIELDS: Final = (
    "origin", "access-control-request-method", "access-control-request-headers",
    "sec-fetch-dest", "sec-fetch-mode", "sec-fetch-site", "sec-fetch-user",
)  # fmt: skip


def brings_key(auth: BackendAuth | None) -> bool:
    """Tell whether the gateway has a key of its own, so that the client's is none of the provider's business."""
    return auth is not None and auth.main is not None and not isinstance(auth.main, Passthrough)


def before_auth(auth: BackendAuth | None) -> list[Step]:
    """Return the steps in front of the credential: keys that the client brought do not reach the provider."""
    if auth is None or not brings_key(auth):
        return []
    # The token that is exchanged for another is taken from where it is by the one who does it.
    source = auth.main.subject if isinstance(auth.main, TokenExchange | CrossAppAccess) else None
    gone = tuple(name for name in CLIENT_KEYS if source is None or source.kind != "header" or name != source.name)
    return [RequestHeaderStep((), (), gone)]


def after_auth(provider: LlmProvider) -> list[Step]:
    """Return the steps behind the credential: it moves to where the vendor looks for it."""
    if provider.family == "anthropic":
        return [
            RequestHeaderStep((), (), BROWSER_FIELDS),
            ProviderStep("x-api-key", sparing="sk-ant-oat", missing=ANTHROPIC_VERSION),
        ]
    if provider.family == "gemini":
        return [ProviderStep("x-goog-api-key", starting="AIza", formats=("gemini", "gemini_count_tokens"))]
    if provider.family == "copilot":
        return [ProviderStep(missing=COPILOT_FIELDS, pictured=COPILOT_PICTURES)]
    if provider.azure is not None and provider.azure.kind == "foundry":
        return [ProviderStep(missing=ANTHROPIC_VERSION)]      # its Claude models want it, the others do not mind
    if any(one.type == "messages" for one in provider.formats):
        return [ProviderStep(missing=ANTHROPIC_VERSION)]
    return []
