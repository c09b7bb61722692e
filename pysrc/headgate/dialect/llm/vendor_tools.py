"""Tools that vendors run themselves, searches of the web and code, in the formats that have them.

    Responses   https://platform.openai.com/docs/guides/tools-web-search, .../tools-code-interpreter
    Messages    https://docs.anthropic.com/en/docs/agents-and-tools/tool-use/web-search-tool, .../code-execution-tool
    Gemini      https://ai.google.dev/gemini-api/docs/google-search, .../code-execution
    chat        `web_search_options` (https://platform.openai.com/docs/guides/tools-web-search?api-mode=chat), and the
                plugin `web` of OpenRouter (https://openrouter.ai/docs/features/web-search)

On the way from one format to another such a tool stands among the tools of chat completions, as one of KINDS:

    {"type": "web_search", "user_location": {"city": ...}, "search_context_size": ..., "allowed_domains": [...],
     "blocked_domains": [...], "max_uses": ...}
    {"type": "code_interpreter"}
"""

from __future__ import annotations

from typing import Final

from headgate.dialect.llm import fields
from headgate.dialect.llm.contract import Json

SEARCH: Final = "web_search"
CODE: Final = "code_interpreter"
KINDS: Final = (SEARCH, CODE)
PLACE: Final = ("country", "region", "city", "timezone")
OPENROUTER: Final = "openrouter"
# Vendors of chat completions that search where `web_search_options` say so; OpenAI's do with models for searches alone.
SEARCHING: Final = frozenset({OPENROUTER, "perplexity"})
OPENAI: Final = frozenset({"openai", "azure"})
# Where Anthropic's models have no code execution, though they search
# (https://platform.claude.com/docs/en/build-with-claude/overview, "Server-side tools"). At Anthropic it is generally
# available: `code_execution_20250825` needs no field of betas.
WITHOUT_CODE: Final = frozenset({"gcp.vertex_ai"})


# -- what clients ask for ----------------------------------------------------------------------------------------------
def _kept(tool: Json, names: tuple[str, ...], at: str, dropped: list[str]) -> Json:
    """Return the members with these names; others than `type` and `name` are dropped."""
    dropped += [f"{at}.{name}" for name, value in tool.items()
                if value is not None and name not in (*names, "type", "name")]  # fmt: skip
    return {name: tool[name] for name in names if tool.get(name) is not None}


def _place(given: Json | None) -> Json:
    return {name: given[name] for name in PLACE if given.get(name)} if given else {}


def _search(found: Json, place: Json) -> Json:
    out: Json = {"type": SEARCH, **found}
    if place:
        out["user_location"] = place
    return out


def of_responses(tool: Json, at: str, dropped: list[str]) -> Json | None:
    """Return a tool of Responses in the form between; None for another one."""
    kind = fields.text(tool, "type", at) or ""
    if kind == CODE:
        container = tool.get("container")
        if container is not None and (not isinstance(container, dict) or container.keys() - {"type"}):
            # It has files, or a state, that are kept at OpenAI.
            dropped.append(f"{at}.container")
        return {"type": CODE}
    if kind != SEARCH and not kind.startswith(("web_search_2", "web_search_preview")):
        return None
    found = _kept(tool, ("user_location", "search_context_size", "filters"), at, dropped)
    place, filters = found.pop("user_location", None), found.pop("filters", None)
    if isinstance(filters, dict) and filters.get("allowed_domains"):
        found["allowed_domains"] = fields.texts(filters, "allowed_domains", f"{at}.filters")
    return _search(found, _place(place if isinstance(place, dict) else None))


def of_messages(tool: Json, at: str, dropped: list[str]) -> Json | None:
    """Return a server tool of Messages in the form between; None for another one."""
    kind = fields.text(tool, "type", at) or ""
    if kind.startswith("code_execution_"):
        return {"type": CODE}
    if not kind.startswith("web_search_"):
        return None
    names = ("user_location", "allowed_domains", "blocked_domains", "max_uses")
    found = _kept(tool, names, at, dropped)
    place = found.pop("user_location", None)
    return _search(found, _place(place if isinstance(place, dict) else None))


def of_gemini(name: str, value: Json, at: str, dropped: list[str]) -> Json | None:
    """Return a tool of Gemini in the form between; None for another one. `name`: of the member, in camelCase."""
    if name == "codeExecution":
        return {"type": CODE}
    if name not in ("googleSearch", "googleSearchRetrieval"):
        return None
    _kept(value, (), at, dropped)
    return {"type": SEARCH}


def asked_for(body: Json) -> list[tuple[str, Json]]:
    """Return (path, tool) pairs for a request of chat completions, in the form between."""
    out = [(f"tools[{position}]", tool) for position, tool in enumerate(fields.objects(body, "tools"))
           if tool.get("type") in KINDS]  # fmt: skip
    options = fields.obj(body, "web_search_options")
    if options is not None:
        place = fields.obj(options, "user_location", "web_search_options") or {}
        near = fields.obj(place, "approximate", "web_search_options.user_location")
        size = fields.text(options, "search_context_size", "web_search_options")
        out.append(("web_search_options", _search({"search_context_size": size} if size else {}, _place(near))))
    return out


# -- what providers are asked for --------------------------------------------------------------------------------------
def _lost(tool: Json, names: tuple[str, ...], at: str, dropped: list[str]) -> None:
    dropped += [f"{at}.{name}" for name in names if tool.get(name)]


def to_responses(tool: Json, at: str, dropped: list[str]) -> Json:
    """Return the tool as Responses have it."""
    if tool["type"] == CODE:
        return {"type": "code_interpreter", "container": {"type": "auto"}}
    _lost(tool, ("blocked_domains", "max_uses"), at, dropped)
    out: Json = {"type": "web_search"}
    fields.copy(tool, out, {"search_context_size": "search_context_size"})
    if tool.get("allowed_domains"):
        out["filters"] = {"allowed_domains": tool["allowed_domains"]}
    if tool.get("user_location"):
        out["user_location"] = {"type": "approximate", **tool["user_location"]}
    return out


def to_messages(tool: Json, at: str, vendor: str, dropped: list[str]) -> Json | None:
    """Return the tool as Messages have it; None, and dropped, where the vendor has none."""
    if tool["type"] == CODE:
        if vendor in WITHOUT_CODE:
            dropped.append(at)
            return None
        return {"type": "code_execution_20250825", "name": "code_execution"}
    _lost(tool, ("search_context_size",), at, dropped)
    out: Json = {"type": "web_search_20250305", "name": "web_search"}
    fields.copy(tool, out, {name: name for name in ("max_uses", "allowed_domains", "blocked_domains")})
    if tool.get("user_location"):
        out["user_location"] = {"type": "approximate", **tool["user_location"]}
    return out


def to_gemini(tool: Json, at: str, dropped: list[str]) -> Json:
    """Return the tool as Gemini has it."""
    if tool["type"] == CODE:
        return {"codeExecution": {}}
    names = ("user_location", "search_context_size", "allowed_domains", "blocked_domains", "max_uses")
    _lost(tool, names, at, dropped)
    return {"googleSearch": {}}


def to_chat(tools: list[tuple[str, Json]], out: Json, vendor: str, dropped: list[str]) -> None:
    """Set what a request of chat completions has for tools; those without a place at the vendor are dropped."""
    searches = vendor in SEARCHING or (vendor in OPENAI and "search" in out["model"])
    for at, tool in tools:
        if tool["type"] == CODE or not searches or "web_search_options" in out:
            dropped.append(at)
            continue
        _lost(tool, ("allowed_domains", "blocked_domains", "max_uses"), at, dropped)
        options: Json = {}
        fields.copy(tool, options, {"search_context_size": "search_context_size"})
        if tool.get("user_location"):
            options["user_location"] = {"type": "approximate", "approximate": tool["user_location"]}
        out["web_search_options"] = options
        if vendor == OPENROUTER:
            out["plugins"] = [{"id": "web"}]


def kept_for_chat(tools: list[Json], out: Json, vendor: str, dropped: list[str]) -> list[Json]:
    """Return the tools that the client runs; the others are set as to_chat() does."""
    ran = [(f"tools[{position}]", tool) for position, tool in enumerate(tools) if tool["type"] in KINDS]
    to_chat(ran, out, vendor, dropped)
    return [tool for tool in tools if tool["type"] not in KINDS]
