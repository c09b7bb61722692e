"""What the server does with each method, tool, prompt and resource."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import re
from collections.abc import Awaitable, Callable
from typing import Any

from tests.peers.conformant import tasks
from tests.peers.conformant.catalogue import (
    AUDIO,
    DEFAULTS,
    ENUMS,
    IMAGE,
    PNG,
    PROMPTS,
    RESOURCES,
    TEMPLATES,
    TOOLS,
    form,
    sample,
)
from tests.peers.conformant.exchange import (
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    MISSING_CAPABILITY,
    MODERN,
    NAMESPACE,
    VERSIONS,
    Exchange,
    Json,
    RpcError,
)

INFO = {"name": "conformant", "version": "1.0.0"}
CAPABILITIES = {
    "tools": {"listChanged": True},
    "prompts": {"listChanged": True},
    "resources": {"listChanged": True, "subscribe": True},
    "completions": {},
}
SECRET = b"not a secret: this is a fixture"
PAUSE = 0.02
Changed = Callable[[str], None]


def text(*parts: str) -> Json:
    """Return a result of texts."""
    return {"content": [{"type": "text", "text": part} for part in parts]}


def sealed(content: str) -> str:
    """Return a state that only this server can make."""
    return content + "." + hmac.new(SECRET, content.encode(), hashlib.sha256).hexdigest()


def opened(state: str | None) -> str | None:
    """Return what a state holds, None for no state; RpcError for one that was changed."""
    if state is None:
        return None
    content = state.rpartition(".")[0]
    if not hmac.compare_digest(sealed(content), state):
        raise RpcError(INVALID_PARAMS, "requestState is not one of ours")
    return content


async def respond(exchange: Exchange, method: str, changed: Changed) -> Json:
    """Return the result of a request; RpcError or InputRequired. `changed(kind)` tells all clients."""
    params = exchange.params
    match method:
        case "initialize" if not exchange.modern:
            wanted = params.get("protocolVersion")
            exchange.peer.capabilities = params.get("capabilities") or {}
            version = wanted if wanted in VERSIONS[:-1] else VERSIONS[-2]
            return {"protocolVersion": version, "capabilities": {**CAPABILITIES, "logging": {}}, "serverInfo": INFO,
                    "instructions": "Made for conformance runs."}  # fmt: skip
        case "server/discover" if exchange.modern:
            able = {**CAPABILITIES, "extensions": {tasks.EXTENSION: {}}}
            return {"supportedVersions": VERSIONS, "capabilities": able, "_meta": {NAMESPACE + "serverInfo": INFO}}
        case "ping" if not exchange.modern:
            return {}
        case "logging/setLevel" if not exchange.modern:
            exchange.peer.level = params.get("level")
            return {}
        case "resources/subscribe" | "resources/unsubscribe" if not exchange.modern:
            change = exchange.peer.subscribed.add if method == "resources/subscribe" else exchange.peer.subscribed.discard
            change(str(params.get("uri")))
            return {}
        case "tasks/get" | "tasks/update" | "tasks/cancel" if exchange.modern:
            return await tasks.respond(exchange, method)
        case "tools/list":
            return {"tools": TOOLS}
        case "prompts/list":
            return {"prompts": PROMPTS}
        case "resources/list":
            return {"resources": RESOURCES}
        case "resources/templates/list":
            return {"resourceTemplates": TEMPLATES}
        case "resources/read":
            return {"contents": [resource(str(params.get("uri")))]}
        case "prompts/get":
            return {"messages": [{"role": "user", "content": one} for one in await prompt(exchange)]}
        case "completion/complete":
            value = str((params.get("argument") or {}).get("value", ""))
            found = [word for word in ("paris", "park", "party") if word.startswith(value)]
            return {"completion": {"values": found, "total": len(found), "hasMore": False}}
        case "tools/call":
            tool = CALLS.get(str(params.get("name")))
            if tool is not None:
                return await tool(exchange, params.get("arguments") or {}, changed)
            raise RpcError(INVALID_PARAMS, f"Unknown tool: {params.get('name')}")
    raise RpcError(METHOD_NOT_FOUND, f"Method not found: {method}")


def completed(method: str, result: Json) -> Json:
    """Return a result as revision 2026-07-28 wants it."""
    result = {"resultType": "complete", **result}
    cacheable = ("server/discover", "tools/list", "prompts/list", "resources/list", "resources/templates/list")
    if method in (*cacheable, "resources/read"):
        result |= {"ttlMs": 0, "cacheScope": "private"}
    return result


def resource(uri: str) -> Json:
    """Return the contents of a resource."""
    if uri == "test://static-text":
        return {"uri": uri, "mimeType": "text/plain", "text": "This is the content of the static text resource."}
    if uri == "test://static-binary":
        return {"uri": uri, "mimeType": "image/png", "blob": PNG}
    if uri == "test://watched-resource":
        return {"uri": uri, "mimeType": "text/plain", "text": "Watched resource content"}
    found = re.fullmatch(r"test://template/([^/]+)/data", uri)
    if found is None:
        raise RpcError(INVALID_PARAMS, "Resource not found", {"uri": uri})
    data = {"id": found[1], "templateTest": True, "data": f"Data for ID: {found[1]}"}
    return {"uri": uri, "mimeType": "application/json", "text": json.dumps(data)}


async def prompt(exchange: Exchange) -> list[Json]:
    """Return the contents of a prompt's messages."""
    arguments = exchange.params.get("arguments") or {}
    match exchange.params.get("name"):
        case "test_simple_prompt":
            words = "This is a simple prompt for testing."
        case "test_prompt_with_arguments":
            words = f"Prompt with arguments: arg1='{arguments.get('arg1')}', arg2='{arguments.get('arg2')}'"
        case "test_prompt_with_embedded_resource":
            inner = {"uri": arguments.get("resourceUri"), "mimeType": "text/plain",
                     "text": "Embedded resource content for testing."}  # fmt: skip
            words = "Please process the embedded resource above."
            return [{"type": "resource", "resource": inner}, {"type": "text", "text": words}]
        case "test_prompt_with_image":
            return [IMAGE, {"type": "text", "text": "Please analyze the image above."}]
        case "test_input_required_result_prompt":
            asked = form("What context should the prompt use?", context="string")
            found = await exchange.ask(user_context=("elicitation/create", asked))
            words = f"Context: {(found['user_context'].get('content') or {}).get('context')}"
        case name:
            raise RpcError(INVALID_PARAMS, f"Unknown prompt: {name}")
    return [{"type": "text", "text": words}]


# -- tools -------------------------------------------------------------------------------------------------------------
async def _logging(exchange: Exchange, _arguments: Json, _changed: Changed) -> Json:
    for line in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        exchange.log(line)
        await asyncio.sleep(PAUSE)
    return text("Tool with logging executed successfully")


async def _progress(exchange: Exchange, _arguments: Json, _changed: Changed) -> Json:
    token = exchange.meta.get("progressToken")
    for done in (0, 50, 100):
        if token is not None:
            exchange.notify("notifications/progress", progressToken=token, progress=done, total=100)
        await asyncio.sleep(PAUSE)
    return text(str(token))


async def _sampling(exchange: Exchange, arguments: Json, _changed: Changed) -> Json:
    asked = sample(str(arguments.get("prompt")), 100)
    found = (await exchange.ask(reply=("sampling/createMessage", asked)))["reply"]
    return text(f"LLM response: {(found.get('content') or {}).get('text')}")


async def _elicitation(exchange: Exchange, arguments: Json, _changed: Changed) -> Json:
    asked = form(str(arguments.get("message")), username="string", email="string")
    found = (await exchange.ask(reply=("elicitation/create", asked)))["reply"]
    return text(f"User response: action={found.get('action')}, content={json.dumps(found.get('content'))}")


def _form(schema: Json) -> Callable[[Exchange, Json, Changed], Awaitable[Json]]:
    async def ask(exchange: Exchange, _arguments: Json, _changed: Changed) -> Json:
        asked = {"message": "Please review and update the form fields", "requestedSchema": schema}
        found = (await exchange.ask(reply=("elicitation/create", asked)))["reply"]
        content = json.dumps(found.get("content"))
        return text(f"Elicitation completed: action={found.get('action')}, content={content}")

    return ask


async def _missing(exchange: Exchange, _arguments: Json, _changed: Changed) -> Json:
    if "sampling" not in exchange.capabilities:
        raise RpcError(MISSING_CAPABILITY, "sampling is needed", {"requiredCapabilities": {"sampling": {}}})
    return text("The client has sampling")


async def _reconnection(exchange: Exchange, _arguments: Json, _changed: Changed) -> Json:
    if exchange.hang_up is not None:
        exchange.hang_up()
    await asyncio.sleep(PAUSE)
    return text("Reconnection test completed successfully. If you received this, the client properly reconnected.")


def _trigger(kind: str) -> Callable[[Exchange, Json, Changed], Awaitable[Json]]:
    async def change(_exchange: Exchange, _arguments: Json, changed: Changed) -> Json:
        changed(kind)
        return text(f"The list of {kind} has changed")

    return change


async def _ask_name(exchange: Exchange, _arguments: Json, _changed: Changed) -> Json:
    found = await exchange.ask(user_name=("elicitation/create", form("What is your name?", name="string")))
    return text(f"Hello, {(found['user_name'].get('content') or {}).get('name')}!")


async def _ask_model(exchange: Exchange, _arguments: Json, _changed: Changed) -> Json:
    found = await exchange.ask(
        capital_question=("sampling/createMessage", sample("What is the capital of France?", 100))
    )
    return text(str((found["capital_question"].get("content") or {}).get("text")))


async def _ask_roots(exchange: Exchange, _arguments: Json, _changed: Changed) -> Json:
    found = await exchange.ask(client_roots=("roots/list", {}))
    return text(*(str(root.get("uri")) for root in found["client_roots"].get("roots", [])), "that is all")


async def _ask_with_state(exchange: Exchange, _arguments: Json, _changed: Changed) -> Json:
    state = opened(exchange.state)
    await exchange.ask(sealed("confirm"), confirm=("elicitation/create", form("Please confirm", ok="boolean")))
    return text("state-ok" if state == "confirm" or not exchange.modern else "the state is lost")


async def _ask_all(exchange: Exchange, _arguments: Json, _changed: Changed) -> Json:
    opened(exchange.state)
    found = await exchange.ask(
        sealed("all"),
        user_name=("elicitation/create", form("What is your name?", name="string")),
        greeting=("sampling/createMessage", sample("Generate a greeting", 50)),
        client_roots=("roots/list", {}),
    )
    return text(json.dumps(found))


async def _ask_in_rounds(exchange: Exchange, _arguments: Json, _changed: Changed) -> Json:
    first = form("Step 1: What is your name?", name="string")
    second = form("Step 2: What is your favorite color?", color="string")
    state = opened(exchange.state)
    if state is None or state == "round-1":
        await exchange.ask(sealed("round-1"), step1=("elicitation/create", first))
    if state == "round-1":
        exchange.params.pop("inputResponses", None)
    await exchange.ask(sealed("round-2"), step2=("elicitation/create", second))
    return text("All rounds are done")


async def _ask_if_able(exchange: Exchange, _arguments: Json, _changed: Changed) -> Json:
    wanted: dict[str, tuple[str, Json]] = {}
    if "elicitation" in exchange.capabilities:
        wanted["user_name"] = ("elicitation/create", form("What is your name?", name="string"))
    if "sampling" in exchange.capabilities:
        wanted["greeting"] = ("sampling/createMessage", sample("Generate a greeting", 50))
    return text(json.dumps(await exchange.ask(**wanted)))


def _fixed(*content: Json, **more: Any) -> Callable[[Exchange, Json, Changed], Awaitable[Json]]:
    async def give(_exchange: Exchange, _arguments: Json, _changed: Changed) -> Json:
        return {"content": list(content), **more}

    return give


CALLS: dict[str, Callable[[Exchange, Json, Changed], Awaitable[Json]]] = {
    "test_simple_text": _fixed({"type": "text", "text": "This is a simple text response for testing."}),
    "test_image_content": _fixed(IMAGE),
    "test_audio_content": _fixed(AUDIO),
    "test_embedded_resource": _fixed({"type": "resource", "resource": {
        "uri": "test://embedded-resource", "mimeType": "text/plain", "text": "This is an embedded resource content."}}),
    "test_multiple_content_types": _fixed(
        {"type": "text", "text": "Multiple content types test:"}, IMAGE,
        {"type": "resource", "resource": {"uri": "test://mixed-content-resource", "mimeType": "application/json",
                                          "text": '{"test":"data","value":123}'}}),
    "test_tool_with_logging": _logging,
    "test_logging_tool": _logging,
    "test_error_handling": _fixed(
        {"type": "text", "text": "This tool intentionally returns an error for testing"}, isError=True),
    "test_tool_with_progress": _progress,
    "test_sampling": _sampling,
    "test_elicitation": _elicitation,
    "test_elicitation_sep1034_defaults": _form(DEFAULTS),
    "test_elicitation_sep1330_enums": _form(ENUMS),
    "test_streaming_elicitation": _ask_name,
    "test_missing_capability": _missing,
    "test_reconnection": _reconnection,
    "test_trigger_tool_change": _trigger("tools"),
    "test_trigger_prompt_change": _trigger("prompts"),
    "test_input_required_result_elicitation": _ask_name,
    "test_input_required_result_sampling": _ask_model,
    "test_input_required_result_list_roots": _ask_roots,
    "test_input_required_result_request_state": _ask_with_state,
    "test_input_required_result_multiple_inputs": _ask_all,
    "test_input_required_result_multi_round": _ask_in_rounds,
    "test_input_required_result_tampered_state": _ask_with_state,
    "test_input_required_result_capabilities": _ask_if_able,
    **tasks.TOOLS,
    "json_schema_2020_12_tool": _fixed({"type": "text", "text": "fine"}),
    "test_x_mcp_header": _fixed({"type": "text", "text": "fine"}),
}  # fmt: skip

assert {tool["name"] for tool in TOOLS} == set(CALLS)
assert VERSIONS[-1] == MODERN
