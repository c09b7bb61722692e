"""Translates count_tokens of Messages to CountTokens of Bedrock.

Source: https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_CountTokens.html.
"""

from __future__ import annotations

import base64

from headgate.dialect.llm import content, history
from headgate.dialect.llm.contract import Json, Options, TranslatedRequest
from headgate.dialect.llm.said import garbage
from headgate_engine.llm.translate.writers import dump_json

DROPS = ("nothing: the body goes inside of the provider's request",)
ANTHROPIC_VERSION = "2023-06-01"


def request(body: Json, options: Options) -> TranslatedRequest:
    """Return the provider's request, which contains the body in the form of InvokeModel."""
    model = content.model_of(body, options.model)
    inner = {name: value for name, value in history.messages(body, options.vendor).items() if name != "model"}
    inner["anthropic_version"] = options.anthropic_version or ANTHROPIC_VERSION
    inner["max_tokens"] = 1
    encoded = base64.b64encode(dump_json(inner)).decode()
    return TranslatedRequest(
        body={"input": {"invokeModel": {"body": encoded}}}, stream=False, model=model,
        requested=str(body.get("model") or model), path_suffix=f"/model/{content.model_segment(model)}/count-tokens",
    )  # fmt: skip


def reply(body: Json, asked: TranslatedRequest) -> Json:
    """Return the client's reply with the token count. Raises UpstreamGarbage."""
    tokens = body.get("inputTokens")
    if type(tokens) is not int or tokens < 0:
        raise garbage("inputTokens", "is not a count")
    return {"input_tokens": tokens}
