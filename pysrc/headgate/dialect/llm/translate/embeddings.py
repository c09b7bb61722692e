"""Translates embeddings requests to the formats of Bedrock models, Vertex AI and Copilot, and their replies back."""

from __future__ import annotations

import base64
import struct
from typing import Any

from headgate.dialect.llm import content, fields
from headgate.dialect.llm.contract import Json, Options, TranslatedRequest, Untranslatable, UpstreamGarbage
from headgate.dialect.llm.neutral_reply import a_dict, a_list, garbage

# Bedrock's replies have the number of input tokens in this header if the body does not have it.
TOKENS_HEADER = "x-amzn-bedrock-input-token-count"
# Fields of some models: `embedding_purpose` is used by Nova, `input_type` by Cohere, `normalize` by Titan.
BEDROCK_ONLY = ("embedding_purpose", "truncate", "input_type", "normalize")
BEDROCK_DROPS = (
    "`user` and every other field that is not listed above; `dimensions` for Cohere models other than embed-v4",
    "Cohere: `normalize`",
    "refused with 400: inputs as token numbers, more than 2,048 inputs",
)
COPILOT_DROPS = (
    "nothing: all fields are sent on. A single text becomes an array of one, and missing fields of replies are added",
)
VERTEX_DROPS = (
    "`user` and every other field that is not listed above",
    "refused with 400: inputs as token numbers, more than 2,048 inputs",
)
# OpenAI's limit for one request.
MAX_INPUTS = 2048
# Texts that models take in one request; longer lists take several:
# https://docs.aws.amazon.com/bedrock/latest/userguide/model-parameters-titan-embed-text.html (one),
# https://docs.aws.amazon.com/nova/latest/userguide/embeddings-schema.html (one),
# https://docs.aws.amazon.com/bedrock/latest/userguide/model-parameters-embed.html (96),
# https://cloud.google.com/vertex-ai/generative-ai/docs/embeddings/get-text-embeddings (Gemini one, others 250).
COHERE_TEXTS = 96
VERTEX_TEXTS = 250
ONE_TEXT = "gemini-embedding"


def _inputs(body: Json) -> list[str]:
    given = body.get("input")
    found = [given] if isinstance(given, str) else given
    if not isinstance(found, list) or not found or not all(isinstance(text, str) for text in found):
        raise Untranslatable("input", "must be a string or an array of strings")
    if len(found) > MAX_INPUTS:
        raise Untranslatable("input", f"has more than {MAX_INPUTS} texts")
    return found


def _parts(body: Json, size: int) -> list[list[str]]:
    """Return the texts of a request in lists of at most `size`."""
    texts = _inputs(body)
    return [texts[at : at + size] for at in range(0, len(texts), size)]


def _encoding(body: Json) -> str:
    found = fields.text(body, "encoding_format") or "float"
    if found not in ("float", "base64"):
        raise Untranslatable("encoding_format", "must be float or base64")
    return found


def bedrock_request(body: Json, options: Options) -> TranslatedRequest:
    """Return the InvokeModel request, whose body depends on the model family. Raises Untranslatable."""
    model = content.model_of(body, options.model)
    if "nova" in model:
        kind, more = "nova", {"embedding_purpose", "truncate"}
        bodies = _each(_nova(body), _parts(body, 1))
    elif "cohere" in model:
        kind, more = "cohere", {"input_type", "truncate"}
        common = _cohere(body, model)
        bodies = [{"texts": texts, **common} for texts in _parts(body, COHERE_TEXTS)]
    else:
        kind, more = "titan", {"normalize"}
        common = _titan(body)
        bodies = [{"inputText": text, **common} for [text] in _parts(body, 1)]
    return TranslatedRequest(
        body=bodies[0], stream=False, model=model, requested=str(body.get("model") or model),
        path_suffix=f"/model/{content.model_segment(model)}/invoke",
        dropped=tuple(name for name in BEDROCK_ONLY if name in body and name not in more),
        echo={"kind": kind, "encoding_format": _encoding(body)}, others=tuple(bodies[1:]),
    )  # fmt: skip


def _each(common: Json, parts: list[list[str]]) -> list[Json]:
    mode = common.pop("truncationMode")
    return [
        {
            "taskType": "SINGLE_EMBEDDING",
            "singleEmbeddingParams": {**common, "text": {"truncationMode": mode, "value": text}},
        }
        for [text] in parts
    ]


def _nova(body: Json) -> Json:
    params: Json = {
        "embeddingPurpose": fields.text(body, "embedding_purpose") or "GENERIC_INDEX",
        "truncationMode": fields.text(body, "truncate") or "END",
    }
    if (dimensions := fields.integer(body, "dimensions")) is not None:
        params["embeddingDimension"] = dimensions
    return params


def _cohere(body: Json, model: str) -> Json:
    out: Json = {"input_type": fields.text(body, "input_type") or "search_query"}
    fields.copy(body, out, {"truncate": "truncate"})
    if "embed-v4" in model and (dimensions := fields.integer(body, "dimensions")) is not None:
        out["output_dimension"] = dimensions
    return out


def _titan(body: Json) -> Json:
    # `embeddingTypes` is not set: floats are the default, and `binary` is not the same as OpenAI's `base64`.
    out: Json = {}
    fields.copy(body, out, {"dimensions": "dimensions", "normalize": "normalize"})
    return out


def bedrock_reply(body: Json, asked: TranslatedRequest) -> Json:
    """Return the client's reply with the embeddings. Raises UpstreamGarbage."""
    kind = asked.echo.get("kind")
    tokens: Any = body.get("inputTextTokenCount")
    if kind == "nova":
        listed = a_list(body.get("embeddings"), "embeddings")
        vectors = [a_dict(item, "an embedding").get("embedding") for item in listed]
    elif kind == "cohere":
        found = body.get("embeddings")
        # Newer models return the vectors by type.
        vectors = a_list(found.get("float") if isinstance(found, dict) else found, "embeddings")
    else:
        vectors = [body.get("embedding")]
        if vectors[0] is None:
            by_type = a_dict(body.get("embeddingsByType"), "embeddingsByType")
            vectors = [by_type.get("float", by_type.get("binary"))]
    if tokens is None:
        tokens = _header_count(asked)
    return _listed(vectors, tokens, asked)


def _header_count(asked: TranslatedRequest) -> int:
    told = asked.response_headers.get(TOKENS_HEADER) or ""
    return int(told) if told.isascii() and told.isdigit() and len(told) < 16 else 0


def _listed(vectors: list[Any], tokens: object, asked: TranslatedRequest) -> Json:
    count = tokens if type(tokens) is int and tokens >= 0 else 0
    packed = asked.echo.get("encoding_format") == "base64"
    data = [
        {"object": "embedding", "index": position, "embedding": _vector(vector, packed)}
        for position, vector in enumerate(vectors)
    ]
    usage = {"prompt_tokens": count, "total_tokens": count}
    return {"object": "list", "data": data, "model": asked.model, "usage": usage}


def _vector(vector: Any, packed: bool) -> Any:
    """Return the vector as numbers, or as Base64 of 32-bit little-endian floats like OpenAI if `packed`."""
    if not isinstance(vector, list) or not vector or not all(type(number) in (int, float) for number in vector):
        raise garbage("an embedding", "is not an array of numbers")
    if not packed:
        return vector
    try:
        return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()
    except OverflowError:
        raise UpstreamGarbage("an embedding of the provider holds a number too large") from None


def vertex_request(body: Json, options: Options) -> TranslatedRequest:
    """Return the `predict` request of Vertex AI. Raises Untranslatable."""
    model = content.model_of(body, options.model)
    about = {"task_type": fields.text(body, "task_type") or "RETRIEVAL_QUERY"}
    fields.copy(body, about, {"title": "title"})
    parameters: Json = {}
    fields.copy(body, parameters, {"auto_truncate": "autoTruncate", "dimensions": "outputDimensionality"})
    common: Json = {"parameters": parameters} if parameters else {}
    bodies: list[Json] = [
        {"instances": [{"content": text, **about} for text in texts], **common}
        for texts in _parts(body, 1 if ONE_TEXT in model else VERTEX_TEXTS)
    ]
    return TranslatedRequest(
        body=bodies[0], stream=False, model=model, requested=str(body.get("model") or model), path_suffix=":predict",
        echo={"encoding_format": _encoding(body)}, others=tuple(bodies[1:]),
    )  # fmt: skip


def vertex_reply(body: Json, asked: TranslatedRequest) -> Json:
    """Return the client's reply with the embeddings. Raises UpstreamGarbage."""
    tokens = 0
    vectors = []
    for item in a_list(body.get("predictions"), "predictions"):
        found = a_dict(a_dict(item, "a prediction").get("embeddings"), "embeddings")
        vectors.append(found.get("values"))
        statistics = found.get("statistics")
        count = statistics.get("token_count") if isinstance(statistics, dict) else None
        if isinstance(count, int | float) and 0 <= count < 1 << 50:
            tokens += int(count)
    return _listed(vectors, tokens, asked)


def copilot_request(body: Json, options: Options) -> TranslatedRequest:
    """Return the request with a single text as an array of one, because Copilot accepts arrays only.

    Raises Untranslatable.
    """
    model = content.model_of(body, options.model)
    given = body.get("input")
    out: Json = {**body, "model": model, "input": [given] if isinstance(given, str) else given}
    if given is None:
        raise Untranslatable("input", "is missing")
    return TranslatedRequest(body=out, stream=False, model=model, requested=str(body.get("model") or model))


def copilot_reply(body: Json, asked: TranslatedRequest) -> Json:
    """Return the reply with missing members added. Raises UpstreamGarbage."""
    data = [
        {"object": "embedding", "index": position, **a_dict(item, "an embedding")}
        for position, item in enumerate(a_list(body.get("data"), "data"))
    ]
    return {"object": "list", "model": asked.model, **body, "data": data}


def merged(replies: list[Json]) -> Json:
    """Return one reply made of the replies to the parts of a request, in their order."""
    data = [item for reply in replies for item in reply["data"]]
    count = sum(reply["usage"]["prompt_tokens"] for reply in replies)
    return {
        **replies[0],
        "data": [{**item, "index": position} for position, item in enumerate(data)],
        "usage": {"prompt_tokens": count, "total_tokens": count},
    }
