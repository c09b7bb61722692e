"""Parts that several formats have in common: data URLs, arguments of tool calls, turns, names of models."""

from __future__ import annotations

import base64
import re
from typing import Any, NamedTuple
from urllib.parse import quote

from headgate.dialect.llm import fields
from headgate.dialect.llm.contract import Json, TranslatedRequest, Untranslatable
from headgate_engine.llm.translate.readers import Garbage, load_json
from headgate_engine.llm.translate.writers import dump_json

DATA_URL = re.compile(r"data:([^;,]*)(?:;[^;,]*)*;base64,", re.IGNORECASE | re.ASCII)


class DataUrl(NamedTuple):
    """The media type and the Base64 text of a data URL (RFC 2397)."""

    media_type: str
    data: str


def data_url(url: str) -> DataUrl | None:
    """Return the parts of a Base64 data URL, None for any other URL."""
    found = DATA_URL.match(url)
    if found is None:
        return None
    media_type = found[1].lower() or "application/octet-stream"
    return DataUrl("image/jpeg" if media_type == "image/jpg" else media_type, url[found.end() :])


def as_data_url(media_type: str, data: str, at: str) -> str:
    """Return Base64 data as a data URL. Raises Untranslatable for a media type whose comma would end the URL's head."""
    if "," in media_type:
        raise Untranslatable(at, "is not a media type")
    return f"data:{media_type};base64,{data}"


def decoded_text(data: str, at: str) -> str:
    """Return the text of Base64 data. Raises Untranslatable if it is not Base64 of UTF-8 text."""
    try:
        return base64.b64decode(data, validate=True).decode()
    except ValueError:
        raise Untranslatable(at, "is not base64 of UTF-8 text") from None


def is_base64(data: str) -> bool:
    """Return whether the text is Base64 of anything."""
    try:
        return bool(base64.b64decode(data, validate=True))
    except ValueError:
        return False


def dump_text(value: object) -> str:
    """Return compact JSON text."""
    return dump_json(value).decode()


def arguments_or_text(arguments: str) -> Json:
    """Return the arguments of a tool call as an object; any other text becomes its member `input`."""
    if not arguments.strip():
        return {}
    try:
        found = load_json(arguments)
    except Garbage:
        return {"input": arguments}
    return found if isinstance(found, dict) else {"input": arguments}


def merge_turn(messages: list[Json], role: str, blocks: list[Any]) -> None:
    """Append blocks to the last message if it has the same role, otherwise add a message. No blocks change nothing."""
    if not blocks:
        return
    if messages and messages[-1]["role"] == role:
        messages[-1]["content"].extend(blocks)
    else:
        messages.append({"role": role, "content": blocks})


def model_of(body: Json, model: str | None) -> str:
    """Return the model name for the provider. Raises Untranslatable if there is none."""
    found = model if model is not None else body.get("model")
    if not isinstance(found, str) or not found:
        raise Untranslatable("model", "not specified")
    return found


def asked_of_completions(body: Json, out: Json, model: str, dropped: list[str]) -> TranslatedRequest:
    """Complete and return the request `out` in the chat completions format.

    If the client's request streams, this one streams as well and asks for the usage.
    """
    stream = bool(fields.flag(body, "stream"))
    if stream:
        out["stream"] = True
        out["stream_options"] = {"include_usage": True}
    requested = str(body.get("model") or model)
    return TranslatedRequest(body=out, stream=stream, model=model, requested=requested, dropped=tuple(dropped))


def model_segment(model: str) -> str:
    """Return the model name as one escaped path segment. Raises Untranslatable for a dot segment or invalid text."""
    try:
        found = quote(model, safe="")
    except UnicodeEncodeError:
        raise Untranslatable("model", "is not text") from None
    if not found.strip("."):
        raise Untranslatable("model", "is not a name")
    return found
