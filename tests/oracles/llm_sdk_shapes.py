"""The vendors' published request schemas, as their SDKs carry them: types of parameters, made from their OpenAPI files.

`shape_faults(format, body)` lists members that are unknown, missing or of a wrong type.
"""

from __future__ import annotations

import base64
import collections.abc
import types
import typing
import warnings
from functools import cache
from typing import Any

import typing_extensions
from anthropic.types import MessageCreateParams
from botocore.loaders import Loader
from botocore.model import ServiceModel
from botocore.validate import ParamValidator
from openai.types.chat import CompletionCreateParams
from openai.types.responses import ResponseCreateParams

UNIONS = (typing.Union, types.UnionType)
SEQUENCES = (collections.abc.Iterable, collections.abc.Sequence, list)


@cache
def _hints(shape: Any) -> dict[str, Any]:
    return typing_extensions.get_type_hints(shape, include_extras=True)


def _required(shape: Any, name: str, hint: Any) -> bool:
    origin = typing_extensions.get_origin(hint)
    if origin is typing_extensions.Required:
        return True
    return name in shape.__required_keys__ and origin is not typing_extensions.NotRequired


def wrong(value: Any, shape: Any, at: str) -> list[str]:
    """Return what is wrong with a value for a type."""
    origin = typing_extensions.get_origin(shape)
    if isinstance(shape, typing_extensions.TypeAliasType):
        return wrong(value, shape.__value__, at)
    if origin in (typing_extensions.Required, typing_extensions.NotRequired, typing_extensions.Annotated):
        return wrong(value, typing_extensions.get_args(shape)[0], at)
    if origin in UNIONS:
        return _of_union(value, typing_extensions.get_args(shape), at)
    if origin is typing_extensions.Literal:
        known = typing_extensions.get_args(shape)
        return [] if value in known else [f"{at}: {value!r} is none of {known}"]
    if origin in SEQUENCES:
        if not isinstance(value, list):
            return [f"{at}: not a list"]
        inner = typing_extensions.get_args(shape)[0]
        return [fault for index, one in enumerate(value) for fault in wrong(one, inner, f"{at}[{index}]")]
    if origin in (dict, collections.abc.Mapping):
        return [] if isinstance(value, dict) else [f"{at}: not an object"]
    if typing_extensions.is_typeddict(shape):
        return _of_object(value, shape, at)
    if shape in (Any, object):
        return []
    if shape is None or shape is type(None):
        return [] if value is None else [f"{at}: not null"]
    if shape is float:
        return [] if isinstance(value, int | float) and not isinstance(value, bool) else [f"{at}: not a number"]
    if isinstance(shape, type) and shape in (str, bool, int):
        return [] if type(value) is shape else [f"{at}: {value!r} is not {shape.__name__}"]
    return [f"{at}: no JSON is a {shape}"]


def _of_union(value: Any, shapes: tuple[Any, ...], at: str) -> list[str]:
    """Return nothing if one of the types fits, else what is wrong for the one that fits best."""
    best: list[str] | None = None
    for shape in shapes:
        found = wrong(value, shape, at)
        if not found:
            return []
        if best is None or _kind_fits(value, shape):
            best = found
    return best or []


def _kind_fits(value: Any, shape: Any) -> bool:
    if not isinstance(value, dict) or not typing_extensions.is_typeddict(shape):
        return False
    return all(name in value and not wrong(value[name], hint, "") for name, hint in _hints(shape).items()
               if name in ("type", "role"))  # fmt: skip


def _of_object(value: Any, shape: Any, at: str) -> list[str]:
    if not isinstance(value, dict):
        return [f"{at}: not an object"]
    hints = _hints(shape)
    found = [f"{at}.{name}: extra inputs are not permitted" for name in value if name not in hints]
    for name, hint in hints.items():
        if name in value:
            found += wrong(value[name], hint, f"{at}.{name}")
        elif _required(shape, name, hint):
            found.append(f"{at}.{name}: field required")
    return found


@cache
def _bedrock() -> Any:
    service = ServiceModel(Loader().load_service_model("bedrock-runtime", "service-2"), "bedrock-runtime")
    return service.operation_model("Converse").input_shape


def _blobs(value: Any) -> Any:
    """Return the JSON as botocore has it: bytes instead of their Base64."""
    if isinstance(value, dict):
        return {
            name: base64.b64decode(inner, validate=True)
            if name in ("bytes", "redactedContent") and isinstance(inner, str) else _blobs(inner)
            for name, inner in value.items()
        }  # fmt: skip
    return [_blobs(inner) for inner in value] if isinstance(value, list) else value


def _converse(body: dict[str, Any]) -> list[str]:
    report = ParamValidator().validate({**_blobs(body), "modelId": "m"}, _bedrock())
    return [report.generate_report()] if report.has_errors() else []


def _gemini(body: dict[str, Any]) -> list[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from google.genai import types as google
    found = []
    parts = [("generationConfig", google.GenerationConfig, [body.get("generationConfig", {})]),
             ("contents", google.Content, body["contents"]), ("tools", google.Tool, body.get("tools", [])),
             ("toolConfig", google.ToolConfig, [body.get("toolConfig", {})])]  # fmt: skip
    for name, shape, values in parts:
        for value in values:
            try:
                shape.model_validate(value)
            except ValueError as error:
                found.append(f"{name}: {error}")
    return found


def _unsigned(turn: dict[str, Any]) -> dict[str, Any]:
    """Return a turn without `extra_content` of its calls, which is Google's own."""
    if "tool_calls" not in turn:
        return turn
    calls = [{name: value for name, value in call.items() if name != "extra_content"} for call in turn["tool_calls"]]
    return {**turn, "tool_calls": calls}


# What only earlier models take, and today's SDK leaves out.
EARLIER = {"messages": ("temperature", "top_p", "top_k")}
SDKS = {"messages": MessageCreateParams, "completions": CompletionCreateParams, "responses": ResponseCreateParams}


def shape_faults(format: str, body: dict[str, Any]) -> list[str]:
    """Return what of a request is not in the vendor's published schema."""
    if format == "converse":
        return _converse(body)
    if format == "gemini":
        return _gemini(body)
    if format == "compatible":
        turns = [_unsigned(turn) for turn in body["messages"]]
        return wrong({**body, "messages": turns}, CompletionCreateParams, format)
    earlier = EARLIER.get(format, ())
    return wrong({name: value for name, value in body.items() if name not in earlier}, SDKS[format], format)
