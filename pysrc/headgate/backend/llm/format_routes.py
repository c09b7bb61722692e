"""The format routes of a provider: for each client format, the format and the path of the request to the provider.

A path configured for the format takes precedence over a path prefix, and the prefix over the default path of the
format.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from types import MappingProxyType
from typing import Final

from headgate.backend.llm import copilot, vertex
from headgate.backend.llm.caching import CLIENTS as CACHING_CLIENTS
from headgate.backend.llm.foreign_turns import converse_history, foreign_history
from headgate.backend.llm.translation import Translation
from headgate.dialect.llm import pairs
from headgate.dialect.llm.choices import ONE_AT_A_TIME
from headgate.dialect.llm.efforts import claude_version
from headgate.document.lazy_dataclass import dataclass, replace
from headgate.ir.model import AzureResource, LlmProvider, PromptCaching, VertexPlace
from headgate_engine.llm.edit import edit
from headgate_engine.llm.target import FormatRoute

# Format name in the configuration to the name in the engine and the default suffix of its paths.
FORMATS: Final = {
    "completions": ("completions", "/chat/completions"),
    "responses": ("responses", "/responses"),
    "messages": ("messages", "/messages"),
    "anthropicTokenCount": ("count_tokens", "/messages/count_tokens"),
    "embeddings": ("embeddings", "/embeddings"),
    "rerank": ("rerank", "/rerank"),
    "realtime": ("realtime", "/realtime"),
    "generateContent": ("gemini", ""),
    "geminiCountTokens": ("gemini_count_tokens", ""),
    "textCompletions": ("text", "/completions"),
}
# Bodies of these formats are forwarded unchanged.
OPAQUE: Final = ("detect", "passthrough")
# Formats whose paths contain the model.
BY_PATH: Final = ("gemini", "gemini_count_tokens")
# Client format to the formats it can be translated to; the first one that the provider accepts is used. A custom
# provider that accepts the client's own format gets that; of Google's two the native one says more.
CANDIDATES: Final = {
    "completions": ("gemini", "completions", "messages", "converse", "responses"),
    "messages": ("messages", "completions", "responses", "gemini", "converse"),
    "responses": ("responses", "completions", "messages", "gemini", "converse"),
    "gemini": ("gemini", "completions", "messages", "responses", "converse"),
    "converse": ("messages", "gemini", "completions", "responses"),
    "text": ("text", "completions", "gemini", "messages", "responses", "converse"),
    "gemini_count_tokens": ("gemini_count_tokens", "count_tokens"),
}
# Formats whose streams have a defined end, so that a truncated stream is recognised.
STREAMED: Final = ("completions", "messages", "responses", "gemini", "converse")
SUFFIXES: Final = {client: suffix for client, suffix in FORMATS.values()}
BEDROCK: Final = (
    ("completions", "converse"), ("messages", "converse"), ("responses", "converse"),
    ("gemini", "converse"), ("text", "converse"), ("gemini_count_tokens", "bedrock_count_tokens"),
    ("embeddings", "bedrock_embeddings"), ("count_tokens", "bedrock_count_tokens"), ("rerank", "bedrock_rerank"),
)  # fmt: skip
MODERATED: Final = ("completions", "responses")
GEMINI_MODELS: Final = "/v1beta/models/"
CLAUDE: Final = "claude"
OTHERS: Final = "others"
# Vendors of chat completions that do not serve legacy text completions, or not for their usual models.
CHAT_VENDORS: Final = frozenset((
    "openai", "anthropic", "copilot", "gcp.gemini", "cohere", "cerebras", "deepseek", "groq", "mistral", "xai",
))  # fmt: skip
# OpenAI's models that only take text completions, and those that only take Responses
# (https://platform.openai.com/docs/models).
TEXT_MODELS: Final = re.compile(r"(davinci|babbage)-002|.*-instruct(-\d+)?")
RESPONSES_MODELS: Final = re.compile(
    r"(o\d+|gpt-5(\.\d+)?)-pro(-[\d-]+)?|o\d+(-mini)?-deep-research.*|(gpt-5(\.\d+)?-)?codex(-.*)?|computer-use-.*"
)
OF_TEXT: Final = "text"
OF_RESPONSES: Final = "responses"
AZURE_FORMATS: Final = ("completions", "responses", "embeddings")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderPath:
    """The path at the provider; the stub of headgate_engine.llm.target documents the fields."""

    head: str | None = None
    tail: str | None = None
    stream_tail: str | None = None
    prefix: str = ""
    strip: str = ""
    other: str | None = None
    query: str = ""
    keep_query: bool = True
    keep_path: bool = False


FormatRoutes = dict[str, FormatRoute]
Spell = Callable[[str], str]
Adapt = Callable[[bytes, bool], bytes]


@dataclass(frozen=True, slots=True)
class Dialect:
    """A provider's deviations from a format: model names in paths, bodies, cache points."""

    spell: Spell | None = None
    adapt: Adapt | None = None
    caching: PromptCaching | None = None


PLAIN: Final = Dialect()


def native(client: str, path: ProviderPath, vendor: str, dialect: Dialect = PLAIN) -> FormatRoute:
    """Return the format route of a provider that accepts the client's format. `vendor`: its name in telemetry."""
    error, history = _stream_error(client), foreign_history(client, vendor)
    route = FormatRoute(
        client, client, path=path, stream_error=error, spell=dialect.spell, adapt=dialect.adapt, history=history
    )
    one_by_one = pairs.CHOICE_BY_CHOICE.get(client) if vendor in ONE_AT_A_TIME else None
    if one_by_one is not None:
        work = Translation(one_by_one, vendor, placed=True)
        route.several = FormatRoute(
            client, client, path=path, translation=work, stream_error=error, spell=dialect.spell, adapt=dialect.adapt
        )
    return route


def _stream_error(client: str) -> Callable[[str], bytes] | None:
    return partial(pairs.stream_error, client) if client in STREAMED else None


def _moderated(provider: LlmProvider, client: str) -> Dialect:
    """Return the dialect that sets `moderation` and overrides the client's value."""
    if provider.moderation is None or client not in MODERATED:
        return PLAIN
    member = {"moderation": provider.moderation.encode()}
    return Dialect(adapt=lambda body, _: edit(body, member))


def translated(
    provider: LlmProvider, client: str, upstream: str, path: ProviderPath, dialect: Dialect = PLAIN
) -> FormatRoute | None:
    """Return the format route of a provider with another format than the client, None without a translation."""
    pair = pairs.converter(client, upstream)
    if pair is None:
        return None
    place, placed, mode = provider.bedrock, provider.path_override is not None, provider.unsupported
    if place is None:
        moderation = provider.moderation if upstream in MODERATED else None
        work = Translation(
            pair, provider.kind, spell=dialect.spell, moderation=moderation, placed=placed, unsupported=mode
        )
    else:
        cached = dialect.caching if upstream == "converse" and client in CACHING_CLIENTS else None
        work = Translation(
            pair, provider.kind, place.guardrail, place.region, caching=cached, placed=placed, unsupported=mode
        )
    error = _stream_error(client)
    return FormatRoute(
        client, upstream, path=path, translation=work, stream_error=error, spell=dialect.spell, adapt=dialect.adapt
    )


def _add_translated(
    provider: LlmProvider, routes: FormatRoutes, path_of: Callable[[str], ProviderPath], dialect: Dialect = PLAIN
) -> None:
    """Add format routes for client formats that need a translation; `path_of`: provider's format to its path."""
    served = set(routes)
    own = provider.family == "custom"
    for client, candidates in CANDIDATES.items():
        if own and client in served:
            continue
        for upstream in candidates:
            if upstream not in served:
                continue
            if upstream != client:
                found = translated(provider, client, upstream, path_of(upstream), dialect)
                if found is None:
                    continue
                routes[client] = found
            break


def format_routes_of(
    provider: LlmProvider, caching: PromptCaching | None = None, tags: copilot.Tags = MappingProxyType({})
) -> tuple[dict[str, FormatRoutes], Callable[[str], str] | None]:
    """Return the format routes by family of models, and a function from a model to its family.

    The function is None if there is only one family, `""`. `tags`: Copilot's model to its tags in the cost catalog.
    """
    if provider.azure is not None:
        return _azure(provider, provider.azure)
    if provider.bedrock is not None:
        claude = _bedrock(provider, caching)
        others = {**claude, "converse": _converse_of_others(provider, claude["converse"])}
        return {CLAUDE: claude, OTHERS: others}, _bedrock_family
    if provider.vertex is not None:
        return _vertex(provider, provider.vertex), vertex.family_of
    routes = {}
    for one in provider.formats:
        client, suffix = FORMATS[one.type]
        routes[client] = native(
            client, _path(provider, client, suffix, one.path), provider.kind, _moderated(provider, client)
        )
    own = {FORMATS[one.type][0]: one.path for one in provider.formats}
    opaque = _below_prefix(provider) if provider.path_override is None else _fixed(provider.path_override)
    for client in OPAQUE:
        routes[client] = native(client, opaque, provider.kind)

    def path_of(upstream: str) -> ProviderPath:
        return _translated_path(provider, upstream, own[upstream])

    if provider.family == "copilot":
        return _copilot(provider, routes, path_of, tags)
    if "text" not in routes and "completions" in routes and provider.kind not in CHAT_VENDORS:
        routes["text"] = native("text", _path(provider, "text", SUFFIXES["text"], None), provider.kind)
    if provider.kind != "openai" or "completions" not in routes:
        _add_translated(provider, routes, path_of)
        return {"": routes}, None
    return _openai(provider, routes, path_of), _openai_family


def _openai(
    provider: LlmProvider, of_all: FormatRoutes, path_of: Callable[[str], ProviderPath]
) -> dict[str, FormatRoutes]:
    """Return the format routes of OpenAI by family of models. `of_all`: the routes of all formats."""
    text = {name: route for name, route in of_all.items() if name != "responses"}
    text["text"] = native("text", _path(provider, "text", SUFFIXES["text"], None), provider.kind)
    only = "responses" in of_all
    responses = {name: route for name, route in of_all.items() if name != "completions" or not only}
    found = {"": dict(of_all), OF_TEXT: text, OF_RESPONSES: responses}
    for routes in found.values():
        _add_translated(provider, routes, path_of)
    return found


def _openai_family(model: str) -> str:
    name = model.rpartition("/")[2]
    if RESPONSES_MODELS.fullmatch(name):
        return OF_RESPONSES
    return OF_TEXT if TEXT_MODELS.fullmatch(name) else ""


def _copilot(
    provider: LlmProvider, of_all: FormatRoutes, path_of: Callable[[str], ProviderPath], tags: copilot.Tags
) -> tuple[dict[str, FormatRoutes], Callable[[str], str]]:
    """Return the format routes by family of models. `of_all`: the routes of all formats."""
    known, family = copilot.families(tags)
    found: dict[str, FormatRoutes] = {}
    for one in known:
        formats, claude = one
        routes = {client: route for client, route in of_all.items() if client not in CANDIDATES or client in formats}
        if claude and "completions" in routes:
            path = _path(provider, "completions", SUFFIXES["completions"], None)
            routes["completions"] = native("completions", path, provider.kind)
            routes["completions"].exclusive = True
        # Copilot's responses lack fields that clients of the format need.
        embeddings = _path(provider, "embeddings", SUFFIXES["embeddings"], None)
        completed = translated(provider, "embeddings", "copilot_embeddings", embeddings)
        assert completed is not None
        routes["embeddings"] = completed
        # For other client formats, the request to a Claude model is translated to Claude's own format.
        skipped = "completions" if "messages" in formats else ""
        less = {client: route for client, route in routes.items() if client != skipped}
        _add_translated(provider, less, path_of)
        found[copilot.name_of(one)] = {**less, **routes}
    return found, family


def _fixed(path: str) -> ProviderPath:
    return ProviderPath(head=path, keep_query=False)


def _below_prefix(provider: LlmProvider) -> ProviderPath:
    return ProviderPath(prefix=provider.path_prefix, strip="/v1" if provider.path_prefix else "")


def _native_prefix(provider: LlmProvider) -> str:
    """Return the prefix of Google's paths, which contain a version themselves."""
    return "" if provider.family == "custom" and provider.path_prefix == "/v1" else provider.path_prefix


def _path(provider: LlmProvider, client: str, suffix: str, own: str | None) -> ProviderPath:
    if provider.path_override is not None:
        return _fixed(provider.path_override)
    if client in BY_PATH:
        # The client's path contains model and method; the engine replaces the model by the provider's.
        return ProviderPath(prefix=_native_prefix(provider))
    if own is not None:
        moved = provider.family != "custom" and provider.path_prefix
        return ProviderPath(head=provider.path_prefix + own if moved else own)
    if provider.addressed and provider.family != "custom":
        return _below_prefix(provider)
    return ProviderPath(head=provider.path_prefix + suffix)


def _translated_path(provider: LlmProvider, upstream: str, own: str | None) -> ProviderPath:
    """Return the path of the format that a request is translated to, whatever the client's path was."""
    if provider.path_override is not None:
        return _fixed(provider.path_override)
    if upstream in BY_PATH:
        return ProviderPath(head=_native_prefix(provider) + GEMINI_MODELS, tail="", keep_query=False)
    moved = provider.family != "custom" and provider.path_prefix and own is not None
    path = provider.path_prefix + (own or SUFFIXES[upstream]) if moved or own is None else own
    return ProviderPath(head=path, keep_query=False)


def _bedrock(provider: LlmProvider, caching: PromptCaching | None) -> FormatRoutes:
    """Return the format routes of Converse and InvokeModel; translations add the paths, which contain the model.

    Source: https://docs.aws.amazon.com/bedrock/latest/userguide/inference-api.html
    """
    opaque = ProviderPath(prefix=provider.path_prefix)
    routes = {client: native(client, opaque, provider.kind) for client in (*OPAQUE, "converse")}
    for client, upstream in BEDROCK:
        path = opaque if provider.path_override is None else _fixed(provider.path_override)
        found = translated(provider, client, upstream, path, Dialect(caching=caching))
        if found is not None:
            routes[client] = found
    return routes


def _converse_of_others(provider: LlmProvider, claude: FormatRoute) -> FormatRoute:
    """Return the format route of models other than Claude, which take thoughts that nobody has signed."""
    return FormatRoute(
        "converse", "converse", path=ProviderPath(prefix=provider.path_prefix), stream_error=claude.stream_error,
        history=converse_history(provider.kind, claude=False),
    )  # fmt: skip


def _bedrock_family(model: str) -> str:
    return OTHERS if claude_version(model) is None else CLAUDE


def _azure(
    provider: LlmProvider, resource: AzureResource
) -> tuple[dict[str, FormatRoutes], Callable[[str], str] | None]:
    """Return the format routes of Azure OpenAI and Foundry by family of models, and a function from a model to its
    family.

    Source: https://learn.microsoft.com/azure/ai-foundry/openai/reference
    """
    prefix, version = provider.path_prefix, resource.api_version
    project = f"{prefix}/api/projects/{resource.project}/openai/v1"
    routes: FormatRoutes = {}
    paths: dict[str, ProviderPath] = {}
    for client in AZURE_FORMATS:
        suffix = FORMATS[client][1]
        if provider.path_override is not None:
            path = _fixed(provider.path_override)
        elif resource.kind == "foundry":
            path = ProviderPath(head=project + suffix)
        elif version == "v1":
            path = ProviderPath(head=f"{prefix}/openai/v1{suffix}")
        elif version == "preview":
            path = ProviderPath(head=f"{prefix}/openai/v1{suffix}", query="api-version=preview", keep_query=False)
        elif client == "responses":
            path = ProviderPath(head=f"{prefix}/openai{suffix}", query=f"api-version={version}", keep_query=False)
        else:
            path = ProviderPath(
                head=f"{prefix}/openai/deployments/", tail=suffix, query=f"api-version={version}", keep_query=False
            )
        routes[client] = native(client, path, provider.kind)
        paths[client] = path

    routes["realtime"] = native("realtime", _azure_realtime(provider, resource), provider.kind)

    def path_of(upstream: str) -> ProviderPath:
        # The client's query belongs to the client's format.
        return replace(paths[upstream], keep_query=False)

    _add_translated(provider, routes, path_of)
    opaque = _azure_opaque(provider, resource)
    for client in OPAQUE:
        routes[client] = native(client, opaque, provider.kind)
    if resource.kind != "foundry":
        return {"": routes}, None
    claude: FormatRoutes = {client: routes[client] for client in OPAQUE}
    for client, tail in (("messages", "/messages"), ("count_tokens", "/messages/count_tokens")):
        path = ProviderPath(head=f"{prefix}/anthropic/v1{tail}")
        paths[client] = path if provider.path_override is None else _fixed(provider.path_override)
        claude[client] = native(client, paths[client], provider.kind)
    _add_translated(provider, claude, path_of)
    return {CLAUDE: claude, OTHERS: routes}, _foundry_family


def _azure_opaque(provider: LlmProvider, resource: AzureResource) -> ProviderPath:
    """Return the paths of files, batches and the like. Azure's own clients bring theirs, which stay as they are."""
    prefix, version = provider.path_prefix, resource.api_version
    if provider.path_override is not None:
        return _fixed(provider.path_override)
    if resource.kind == "foundry":
        return ProviderPath(prefix=f"{prefix}/api/projects/{resource.project}/openai/v1", strip="/v1", other=prefix)
    if version == "v1":
        return ProviderPath(prefix=f"{prefix}/openai/v1", strip="/v1", other=prefix)
    place = f"{prefix}/openai/v1" if version == "preview" else f"{prefix}/openai"
    return ProviderPath(prefix=place, strip="/v1", other=prefix, query=f"api-version={version}")


def _azure_realtime(provider: LlmProvider, resource: AzureResource) -> ProviderPath:
    """Return the path of realtime conversations; only dated versions of the API name a deployment
    (https://learn.microsoft.com/azure/ai-foundry/openai/how-to/realtime-audio-websockets).
    """
    prefix, version = provider.path_prefix, resource.api_version
    if provider.path_override is not None:
        return _fixed(provider.path_override)
    if resource.kind == "foundry" or version in ("v1", "preview"):
        return ProviderPath(head=f"{prefix}/openai/v1/realtime")
    head = f"{prefix}/openai/realtime?deployment="
    return ProviderPath(head=head, tail="", query=f"api-version={version}", keep_query=False)


def _foundry_family(model: str) -> str:
    return CLAUDE if model.startswith("claude") else OTHERS


# -- Vertex AI ---------------------------------------------------------------------------------------------------------
def _vertex(provider: LlmProvider, place: VertexPlace) -> dict[str, FormatRoutes]:
    """Return the format routes of Vertex AI by family of models.

    Source: https://cloud.google.com/vertex-ai/generative-ai/docs/model-reference/inference
    """
    location = f"{provider.path_prefix}/v1/projects/{place.project}/locations/{place.region}"
    google = f"{location}/publishers/google/models/"
    anthropic = f"{location}/publishers/anthropic/models/"

    def at(
        head: str, tail: str | None = None, stream_tail: str | None = None, keep_query: bool = False
    ) -> ProviderPath:
        if provider.path_override is not None:
            return _fixed(provider.path_override)
        return ProviderPath(head=head, tail=tail, stream_tail=stream_tail, keep_query=keep_query)

    opaque = ProviderPath(prefix=provider.path_prefix) if provider.path_override is None else at("")
    kind = provider.kind
    always: FormatRoutes = {client: native(client, opaque, kind) for client in OPAQUE}
    by_google = Dialect(spell=vertex.google_name)
    embeddings = translated(provider, "embeddings", "vertex_embeddings", at(google), by_google)
    ranking = at(f"{location}/rankingConfigs/default_ranking_config:rank")
    rerank = translated(provider, "rerank", "vertex_rerank", ranking, by_google)
    always |= {route.client: route for route in (embeddings, rerank) if route is not None}

    by_claude = Dialect(vertex.claude_name, vertex.claude_body)
    messages = at(anthropic, ":rawPredict", ":streamRawPredict")
    claude = always | {"messages": native("messages", messages, kind, by_claude)}
    count, by_count = at(f"{anthropic}count-tokens:rawPredict"), Dialect(adapt=vertex.count_body)
    claude["count_tokens"] = native("count_tokens", count, kind, by_count)
    if (counted := translated(provider, "gemini_count_tokens", "count_tokens", count, by_count)) is not None:
        claude["gemini_count_tokens"] = counted
    _add_translated(provider, claude, lambda _: messages, by_claude)

    gemini = always | {
        # Clients of this format request events with `alt=sse` in the query.
        "gemini": native(
            "gemini", at(google, ":generateContent", ":streamGenerateContent", keep_query=True), kind, by_google
        ),
        "gemini_count_tokens": native("gemini_count_tokens", at(google, ":countTokens"), kind, by_google),
    }
    _add_translated(provider, gemini, lambda _: at(google, ""), by_google)

    compatible = at(f"{location}/endpoints/openapi/chat/completions")
    others = always | {"completions": native("completions", compatible, kind)}
    _add_translated(provider, others, lambda _: compatible)
    return {vertex.CLAUDE: claude, vertex.GEMINI: gemini, vertex.OTHERS: others}
