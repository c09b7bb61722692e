"""Requests that stay in their format, for several choices at vendors that make one at a time: all but `n` goes on.

Source: https://platform.openai.com/docs/api-reference/chat/create.
"""

from __future__ import annotations

from headgate.dialect.llm import content, fields, history
from headgate.dialect.llm.contract import Json, Options, TranslatedRequest, UpstreamGarbage


def request(client: str, body: Json, options: Options) -> TranslatedRequest:
    """Return the request for one choice. Raises Untranslatable."""
    model = content.model_of(body, options.model)
    clean = history.CLEAN.get(client)
    made = body if clean is None else clean(body, options.vendor)
    out = {name: value for name, value in made.items() if name != "n"}
    out["model"] = model
    stream = bool(fields.flag(body, "stream"))
    given = fields.obj(body, "stream_options") or {}
    if stream:
        # The usage of every call is counted, whether the client wants to know it or not.
        out["stream_options"] = {**given, "include_usage": True}
    usage = bool(fields.flag(given, "include_usage", "stream_options"))
    return TranslatedRequest(
        body=out, stream=stream, model=model, requested=str(body.get("model") or model), include_usage=usage
    )


def reply(body: Json, asked: TranslatedRequest) -> Json:
    """Return the reply as it is. Raises UpstreamGarbage for what is none."""
    choices = body.get("choices")
    if not isinstance(choices, list) or not choices or not all(isinstance(choice, dict) for choice in choices):
        raise UpstreamGarbage("the provider's reply has no choices")
    return body
