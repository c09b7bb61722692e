"""LLM providers by name: where they are and what they take."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, cast

from headgate.config.check import Record
from headgate.config.context import Context
from headgate.document import fields
from headgate.document.fields import ConnectTarget
from headgate.document.lazy_dataclass import dataclass, replace
from headgate.errors import Problem
from headgate.ir.endpoint import Endpoint
from headgate.ir.model import AzureResource, BedrockPlace, Family, LlmProvider, ProviderFormat, VertexPlace
from headgate.ir.policy.backend_auth import BackendAuth
from headgate.ir.policy.cloud_auth import FOUNDRY_SCOPE, AwsAuth, AzureAuth, GcpAuth

DEFAULT_PREFIX: Final = "/v1"
OPENAI_FORMATS: Final = ("completions", "responses", "embeddings")
# Base URL, and the formats that pass through unchanged (with a path where it is not prefix + usual suffix).
PROVIDERS: Final[dict[str, tuple[str, tuple[ProviderFormat, ...]]]] = {
    name: (url, tuple(ProviderFormat(type=kind, path=path) for kind, path in formats.items()))
    for name, url, formats in (
        ("openai", "https://api.openai.com/v1", dict.fromkeys((*OPENAI_FORMATS, "rerank", "realtime"))),
        ("anthropic", "https://api.anthropic.com/v1", dict.fromkeys(("messages", "anthropicTokenCount"))),
        (
            "copilot",
            "https://api.githubcopilot.com",
            {"completions": None, "messages": "/v1/messages", "responses": None, "embeddings": None, "rerank": None},
        ),
        (
            "gemini",
            "https://generativelanguage.googleapis.com",
            {
                "generateContent": None,
                "geminiCountTokens": None,
                "completions": "/v1beta/openai/chat/completions",
                "embeddings": "/v1beta/openai/embeddings",
            },
        ),
        (
            "cohere",
            "https://api.cohere.ai",
            {
                "completions": "/compatibility/v1/chat/completions",
                "embeddings": "/compatibility/v1/embeddings",
                "rerank": "/v2/rerank",
            },
        ),
        ("ollama", "http://localhost:11434/v1", dict.fromkeys(OPENAI_FORMATS)),
        ("baseten", "https://inference.baseten.co/v1", dict.fromkeys(("completions", "messages"))),
        ("cerebras", "https://api.cerebras.ai/v1", {"completions": None}),
        (
            "deepinfra",
            "https://api.deepinfra.com/v1/openai",
            {"completions": None, "messages": "/anthropic/v1/messages", "embeddings": None},
        ),
        (
            "deepseek",
            "https://api.deepseek.com/v1",
            {"completions": None, "messages": "/anthropic/v1/messages", "responses": None},
        ),
        ("groq", "https://api.groq.com/openai/v1", dict.fromkeys(("completions", "responses"))),
        ("huggingface", "https://router.huggingface.co/v1", dict.fromkeys(("completions", "responses"))),
        ("mistral", "https://api.mistral.ai/v1", dict.fromkeys(("completions", "embeddings"))),
        (
            "openrouter",
            "https://openrouter.ai/api/v1",
            dict.fromkeys(("completions", "messages", "responses", "embeddings", "rerank")),
        ),
        ("togetherai", "https://api.together.xyz/v1", dict.fromkeys(("completions", "embeddings", "rerank"))),
        ("xai", "https://api.x.ai/v1", dict.fromkeys(("completions", "responses", "realtime"))),
        (
            "fireworks",
            "https://api.fireworks.ai/inference/v1",
            dict.fromkeys(("completions", "messages", "responses", "embeddings", "rerank")),
        ),
    )
}
# Names in logs, where they are not those of the file.
TELEMETRY_NAMES: Final = {"gemini": "gcp.gemini"}
FAMILIES: Final = ("openai", "anthropic", "gemini", "azure", "copilot")
AZURE_HOSTS: Final = {"openAI": "openai.azure.com", "foundry": "services.ai.azure.com"}
# Providers whose paths have nothing between the host and the format's own path.
NO_PREFIX: Final = ("gemini", "azure", "bedrock", "vertex", "copilot")
REGION: Final = re.compile(r"[a-z0-9-]{1,63}")
DEFAULT_REGION: Final = "us-east-1"
PROJECT: Final = re.compile(r"[a-z0-9:.-]{1,128}")
VERTEX_REGION: Final = "global"


@dataclass(frozen=True, slots=True)
class Vendor:
    """What the kind of a provider says. `base`: None for one that has no address of its own. `rerank`: URL of the
    service that reranks, where that is another one.
    """

    kind: str
    family: Family
    base: str | None
    formats: tuple[ProviderFormat, ...]
    model: str | None = None
    azure: AzureResource | None = None
    bedrock: BedrockPlace | None = None
    vertex: VertexPlace | None = None
    rerank: str | None = None


@dataclass(frozen=True, slots=True)
class ProviderAddress:
    """Where requests go, before TLS is known. `addressed` tells an address that is not the provider's own."""

    target: ConnectTarget
    prefix: str
    override: str | None
    addressed: bool


def hosted(name: str) -> Vendor:
    """Return a provider with its own name."""
    base, formats = PROVIDERS[name]
    family = cast("Family", name if name in FAMILIES else "custom")
    return Vendor(TELEMETRY_NAMES.get(name, name), family, base, formats)


def azure(context: Context, record: Record, keys: tuple[str, str, str, str]) -> Vendor | None:
    """Return an Azure resource; `keys` of name, kind, version and project in `record`. None after a report."""
    name, kind, version, project = (record.get(key) for key in keys)
    for key, value in zip(keys, (name, kind), strict=False):
        if not value:
            context.fault(Problem.MISSING, record, "", f"{key!r} is required for azure")
    if not name or not kind:
        return None
    if not name.replace("-", "").isalnum() or not name.isascii():
        context.fault(Problem.VALUE, record, keys[0], "a resource name consists of letters, digits and '-'")
        return None
    resource = AzureResource(name=name, kind=kind, api_version=version or "v1", project=project or name)
    return Vendor("azure", "azure", f"https://{name}.{AZURE_HOSTS[kind]}", (), azure=resource)


def bedrock(context: Context, record: Record, key: str) -> Vendor:
    """Return Bedrock in the region that entry `key` of `record` names."""
    region = record.get(key) or DEFAULT_REGION
    if not REGION.fullmatch(region):
        context.fault(Problem.VALUE, record, key, "a region has up to 63 lower-case letters, digits and '-'")
        region = DEFAULT_REGION
    identifier, version = record.get("guardrailIdentifier"), record.get("guardrailVersion")
    if (identifier is None) != (version is None):
        context.fault(Problem.MISSING, record, "", "a guardrail needs an identifier and a version")
    guardrail = None if identifier is None or version is None else (identifier, version)
    where = BedrockPlace(region=region, guardrail=guardrail)
    base, rerank = (f"https://bedrock-{name}.{region}.amazonaws.com" for name in ("runtime", "agent-runtime"))
    return Vendor("aws.bedrock", "bedrock", base, (), bedrock=where, rerank=rerank)


def vertex(context: Context, record: Record, keys: tuple[str, str]) -> Vendor | None:
    """Return Vertex AI; `keys` of project and region in `record`. None after a report."""
    project, region = record.get(keys[0]), record.get(keys[1]) or VERTEX_REGION
    if not project:
        context.fault(Problem.MISSING, record, "", f"{keys[0]!r} is required for vertex")
        return None
    if not PROJECT.fullmatch(project):
        context.fault(Problem.VALUE, record, keys[0], "a project has lower-case letters, digits, '-', '.' and ':'")
        return None
    if not REGION.fullmatch(region):
        context.fault(Problem.VALUE, record, keys[1], "a region has up to 63 lower-case letters, digits and '-'")
        return None
    where = VertexPlace(project=project, region=region)
    base, rerank = f"https://{vertex_host(region)}", "https://discoveryengine.googleapis.com"
    return Vendor("gcp.vertex_ai", "vertex", base, (), vertex=where, rerank=rerank)


def vertex_host(region: str) -> str:
    """Return the host of a region of Vertex AI (https://cloud.google.com/vertex-ai/docs/reference/rest)."""
    if region == VERTEX_REGION:
        return "aiplatform.googleapis.com"
    if region in ("us", "eu"):
        return f"aiplatform.{region}.rep.googleapis.com"
    return f"{region}-aiplatform.googleapis.com"


def with_default_auth(vendor: Vendor, auth: BackendAuth | None) -> BackendAuth | None:
    """Return the credentials of a provider: those of its cloud where there are no others, for the place where it is."""
    own = BackendAuth() if auth is None else auth
    main = own.main
    if vendor.bedrock is not None and (main is None or isinstance(main, AwsAuth)):
        signed = AwsAuth() if main is None else main
        region, service = signed.region or vendor.bedrock.region, signed.service or "bedrock"
        return replace(own, main=replace(signed, region=region, service=service))
    if vendor.vertex is not None and main is None:
        return replace(own, main=GcpAuth())
    if vendor.azure is not None and (main is None or isinstance(main, AzureAuth)):
        token = AzureAuth() if main is None else main
        scope = FOUNDRY_SCOPE if vendor.azure.kind == "foundry" else None
        return replace(own, main=replace(token, scope=scope))
    return auth


def provider(vendor: Vendor, place: ProviderAddress, endpoint: Callable[[ConnectTarget], Endpoint]) -> LlmProvider:
    """Return what the file says of a provider. endpoint: makes one of an address, with the provider's TLS."""
    elsewhere = rerank_target(vendor, place)
    return LlmProvider(
        kind=vendor.kind,
        family=vendor.family,
        endpoint=endpoint(place.target),
        path_prefix=place.prefix,
        path_override=place.override,
        addressed=place.addressed,
        formats=vendor.formats,
        azure=vendor.azure,
        bedrock=vendor.bedrock,
        vertex=vendor.vertex,
        rerank=None if elsewhere is None else endpoint(elsewhere),
    )


def rerank_target(vendor: Vendor, place: ProviderAddress) -> ConnectTarget | None:
    """Return where reranking goes when it is not the provider's own place; an address of the file is all there is."""
    return None if vendor.rerank is None or place.addressed else fields.url(vendor.rerank)


def custom(context: Context, record: Record, fallback: str) -> Vendor:
    """Return a provider of the user's own; `fallback` names it when it does not do so itself."""
    formats = tuple(
        ProviderFormat(type=entry["type"], path=entry.get("path"))
        for entry in record.records("formats")
        if entry.get("type") is not None
    )
    if not record.records("formats"):
        context.fault(Problem.VALUE, record, "formats", "a custom provider needs a format")
    kinds = [one.type for one in formats]
    if len(set(kinds)) < len(kinds):
        context.fault(Problem.CONFLICT, record, "formats", "a format is declared twice")
    kind = record.get("providerOverride") or fallback or "custom"
    return Vendor(kind, "custom", None, formats, record.get("model"))


def place(context: Context, vendor: Vendor, record: Record, params: Record) -> ProviderAddress | None:
    """Return where a provider's requests go by `params` (baseUrl, hostOverride, pathOverride, pathPrefix)."""
    url, host = params.get("baseUrl"), params.get("hostOverride")
    prefix, override = params.get("pathPrefix"), params.get("pathOverride")
    if url is not None and host is not None:
        message = "'baseUrl' and 'hostOverride' exclude each other"
        context.fault(Problem.CONFLICT, params, "hostOverride", message)
    known = fields.url(vendor.base) if vendor.base is not None else None
    target: Any = url or host or known
    if target is None:
        what = "'hostOverride'" if params is record else "'params.baseUrl'"
        context.fault(Problem.MISSING, record, "provider", f"a custom provider needs {what}")
        return None
    bare = "" if vendor.family in NO_PREFIX else DEFAULT_PREFIX
    default = bare if known is None else (known.path or bare)
    if url is not None and url.path not in (None, "/") and override is None:
        default = url.path
    chosen = prefix if prefix is not None else default
    return ProviderAddress(target, chosen.rstrip("/"), override, url is not None or host is not None)
