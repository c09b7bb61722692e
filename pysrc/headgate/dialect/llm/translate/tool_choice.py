"""Tools and tool choice of chat completions requests.

Source: https://platform.openai.com/docs/api-reference/chat/create#chat-create-tool_choice.
"""

from __future__ import annotations

from typing import NamedTuple

from headgate.dialect.llm import custom_tools, fields, vendor_tools
from headgate.dialect.llm.contract import Json, Untranslatable

KINDS = ("auto", "required", "none")
# Kinds of tools that the client runs.
CALLED = ("function", "custom")


class ToolChoice(NamedTuple):
    """A tool choice. `kind` is one of KINDS. `names` are the tools that may be called; None means all."""

    kind: str
    names: tuple[str, ...] | None = None


def choice_of(body: Json) -> ToolChoice | None:
    """Return the choice in `tool_choice`, or in `function_call` of older clients, None if there is none.

    Raises Untranslatable.
    """
    given = body.get("tool_choice")
    if given is None:
        return _older(body)
    if isinstance(given, str):
        if given not in KINDS:
            raise Untranslatable("tool_choice", "must be one of auto, required, none, or a tool")
        return ToolChoice(given)
    found = fields.obj(body, "tool_choice") or {}
    kind = fields.text(found, "type", "tool_choice") or "function"
    if kind == "allowed_tools":
        return _allowed(fields.obj(found, kind, "tool_choice") or {}, f"tool_choice.{kind}")
    if kind not in CALLED:
        why = f"{kind!r} cannot be carried: must be function, custom or allowed_tools"
        raise Untranslatable("tool_choice.type", why)
    function = fields.obj(found, kind, "tool_choice") or {}
    return ToolChoice("required", (fields.needed_text(function, "name", f"tool_choice.{kind}"),))


def _older(body: Json) -> ToolChoice | None:
    given = body.get("function_call")
    if given is None:
        return None
    if isinstance(given, str):
        if given not in ("auto", "none"):
            raise Untranslatable("function_call", "must be one of auto, none, or a function")
        return ToolChoice(given)
    function = fields.obj(body, "function_call") or {}
    return ToolChoice("required", (fields.needed_text(function, "name", "function_call"),))


def _allowed(holder: Json, at: str) -> ToolChoice:
    mode = fields.text(holder, "mode", at) or "auto"
    if mode not in ("auto", "required"):
        raise Untranslatable(f"{at}.mode", "must be auto or required")
    names = []
    for position, tool in enumerate(fields.objects(holder, "tools", at)):
        # Tools of other kinds are not called by the client.
        for kind in CALLED:
            if (function := fields.obj(tool, kind, f"{at}.tools[{position}]")) is not None:
                names.append(fields.needed_text(function, "name", f"{at}.tools[{position}].{kind}"))
    return ToolChoice(mode, tuple(names))


def functions_of(body: Json, dropped: list[str], customs: bool = False) -> list[tuple[str, Json]]:
    """Return (path, function) pairs from `tools`, and from `functions` of older clients.

    A custom tool becomes a function; with `customs`, it is its `custom`, and its path ends so. Other tools are dropped,
    except for those of headgate.dialect.llm.vendor_tools. Raises Untranslatable.
    """
    out: list[tuple[str, Json]] = []
    for position, tool in enumerate(fields.objects(body, "tools")):
        at = f"tools[{position}]"
        if tool.get("type") in vendor_tools.KINDS:
            continue
        if tool.get("type") == "custom":
            custom = fields.obj(tool, "custom", at) or {}
            made = custom if customs else custom_tools.as_function(custom, f"{at}.custom", dropped)
            out.append((f"{at}.custom", made))
            continue
        if tool.get("type", "function") != "function":
            dropped.append(at)
            continue
        function = fields.obj(tool, "function", at)
        if function is None:
            raise Untranslatable(f"{at}.function", "must be an object")
        if "cache_control" in tool and "cache_control" not in function:
            function = {**function, "cache_control": tool["cache_control"]}
        out.append((f"{at}.function", function))
    out += [(f"functions[{position}]", one) for position, one in enumerate(fields.objects(body, "functions"))]
    return out


def only(functions: list[tuple[str, Json]], choice: ToolChoice | None) -> list[tuple[str, Json]]:
    """Return the functions that may be called, for providers without a list of allowed tools.

    Raises Untranslatable if there are none.
    """
    if choice is None or choice.names is None:
        return functions
    found = [one for one in functions if one[1].get("name") in choice.names]
    if not found:
        raise Untranslatable("tool_choice", "names no tool of the request")
    return found
