"""Custom tools of OpenAI's formats, whose input is free text, and the functions that stand for them elsewhere.

Chat completions and Responses have them (https://platform.openai.com/docs/guides/function-calling#custom-tools). At a
vendor that has functions alone, a custom tool is a function with the one string `input`; the client still gets its
calls as those of a custom tool.
"""

from __future__ import annotations

from typing import Final

from headgate.dialect.llm import content, fields
from headgate.dialect.llm.contract import Json

# Vendors that take custom tools in chat completions.
VENDORS: Final = frozenset({"openai", "azure"})


def named(client: str, body: Json) -> frozenset[str]:
    """Return the names of the custom tools in a client's request."""
    if client not in ("completions", "responses"):
        return frozenset()
    tools = body.get("tools")
    found = set()
    for tool in tools if isinstance(tools, list) else ():
        if isinstance(tool, dict) and tool.get("type") == "custom":
            holder = tool.get("custom") if client == "completions" else tool
            name = holder.get("name") if isinstance(holder, dict) else None
            if isinstance(name, str):
                found.add(name)
    return frozenset(found)


def as_function(custom: Json, at: str, dropped: list[str]) -> Json:
    """Return the function that stands for a custom tool of chat completions. `at` is the path of `custom`.

    A grammar is told to the model, but nothing makes the model keep to it, so that it is noted as dropped.
    """
    text: Json = {"type": "string", "description": "The input of the tool, as free text."}
    form = fields.obj(custom, "format", at) or {}
    if fields.text(form, "type", f"{at}.format") == "grammar":
        grammar = fields.obj(form, "grammar", f"{at}.format") or {}
        syntax = fields.text(grammar, "syntax", f"{at}.format.grammar") or "lark"
        definition = fields.needed_text(grammar, "definition", f"{at}.format.grammar")
        text["description"] = f"The input of the tool, as text that this {syntax} grammar accepts:\n{definition}"
        dropped.append(f"{at}.format")
    out: Json = {"name": fields.needed_text(custom, "name", at)}
    if (description := fields.text(custom, "description", at)) is not None:
        out["description"] = description
    out["parameters"] = {
        "type": "object", "properties": {"input": text}, "required": ["input"], "additionalProperties": False,
    }  # fmt: skip
    return out


def of_responses(tool: Json, at: str) -> Json:
    """Return `custom` of chat completions for a custom tool of Responses."""
    out: Json = {"name": fields.needed_text(tool, "name", at)}
    fields.copy(tool, out, {"description": "description"})
    form = fields.obj(tool, "format", at)
    if form is not None and form.get("type") == "grammar":
        out["format"] = {"type": "grammar", "grammar": {name: form.get(name) for name in ("definition", "syntax")}}
    elif form is not None:
        out["format"] = form
    return out


def to_responses(custom: Json, at: str) -> Json:
    """Return the custom tool of Responses for `custom` of chat completions."""
    out: Json = {"type": "custom", "name": fields.needed_text(custom, "name", at)}
    fields.copy(custom, out, {"description": "description"})
    form = fields.obj(custom, "format", at)
    if form is not None and form.get("type") == "grammar":
        out["format"] = {"type": "grammar", **(fields.obj(form, "grammar", f"{at}.format") or {})}
    elif form is not None:
        out["format"] = form
    return out


def called(call: Json, at: str) -> tuple[str, str]:
    """Return the name and the arguments of a call in `tool_calls`, of a function or of a custom tool."""
    function = fields.obj(call, "function", at)
    if function is not None:
        return fields.needed_text(function, "name", at), fields.text(function, "arguments", at) or ""
    custom = fields.obj(call, "custom", at) or {}
    given = content.dump_text({"input": fields.text(custom, "input", at) or ""})
    return fields.needed_text(custom, "name", at), given
