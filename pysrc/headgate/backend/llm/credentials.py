"""Header fields that a provider needs beside the configured credential."""

from __future__ import annotations

from typing import Final

from headgate import __version__
from headgate.ir.model import LlmProvider
from headgate.ir.policy.backend_auth import BackendAuth, Passthrough
from headgate.ir.policy.token_exchange import CrossAppAccess, TokenExchange
from headgate_engine.plan.step import Step
from headgate_engine.steps.headers import RequestHeaderStep
from headgate_engine.steps.provider import ProviderStep, SubprotocolKeyStep

# The fields in which clients send API keys. They are removed if the gateway uses a key of its own.
CLIENT_KEYS: Final = (
    "authorization", "x-api-key", "api-key", "x-goog-api-key",
    # What belongs to a signature of Amazon's clients, which says whose it is.
    "x-amz-date", "x-amz-security-token", "x-amz-content-sha256", "amz-sdk-invocation-id", "amz-sdk-request",
)  # fmt: skip
ANTHROPIC_VERSION: Final = (("anthropic-version", "2023-06-01"),)
# Fields that the vendor's own clients send. Copilot refuses requests of unknown editors.
COPILOT_FIELDS: Final = (
    ("editor-version", f"headgate/{__version__}"), ("x-github-api-version", "2025-10-01"), ("x-initiator", "agent"),
    ("x-interaction-type", "conversation-agent"), ("openai-intent", "conversation-agent"),
)  # fmt: skip
# Copilot refuses images without this field.
COPILOT_PICTURES: Final = (("copilot-vision-request", "true"),)
# Google takes keys as bearer tokens at its endpoints for OpenAI's clients only, not for files, say.
GOOGLE_FORMATS: Final = ("gemini", "gemini_count_tokens", "passthrough", "detect")
# Anthropic refuses requests with fields of browsers.
BROWSER_FIELDS: Final = (
    "origin", "access-control-request-method", "access-control-request-headers",
    "sec-fetch-dest", "sec-fetch-mode", "sec-fetch-site", "sec-fetch-user",
)  # fmt: skip


def brings_key(auth: BackendAuth | None) -> bool:
    """Return True if the gateway has a key of its own, so that the client's key must not reach the provider."""
    return auth is not None and auth.main is not None and not isinstance(auth.main, Passthrough)


def before_auth(auth: BackendAuth | None) -> list[Step]:
    """Return the steps before the credential: they remove keys that the client sent."""
    if auth is None or not brings_key(auth):
        return []
    # The token exchange itself takes the client's token from its field.
    source = auth.main.subject if isinstance(auth.main, TokenExchange | CrossAppAccess) else None
    gone = tuple(name for name in CLIENT_KEYS if source is None or source.kind != "header" or name != source.name)
    return [RequestHeaderStep((), (), gone), SubprotocolKeyStep()]


def after_auth(provider: LlmProvider) -> list[Step]:
    """Return the steps after the credential: they move it to the field that the vendor expects."""
    if provider.family == "anthropic":
        return [
            RequestHeaderStep((), (), BROWSER_FIELDS),
            ProviderStep("x-api-key", sparing="sk-ant-oat", missing=ANTHROPIC_VERSION),
        ]
    if provider.family == "gemini":
        return [ProviderStep("x-goog-api-key", starting="AIza", only=(GOOGLE_FORMATS, "/openai/"))]
    if provider.family == "copilot":
        return [ProviderStep(missing=COPILOT_FIELDS, pictured=COPILOT_PICTURES)]
    if provider.azure is not None and provider.azure.kind == "foundry":
        return [ProviderStep(missing=ANTHROPIC_VERSION)]      # needed by Claude models, ignored by others
    if any(one.type == "messages" for one in provider.formats):
        return [ProviderStep(missing=ANTHROPIC_VERSION)]
    return []
