"""Translates rerank requests in Cohere's format to Bedrock and Vertex AI, and their replies back.

Sources: https://docs.cohere.com/reference/rerank,
https://docs.aws.amazon.com/bedrock/latest/APIReference/API_agent-runtime_Rerank.html,
https://cloud.google.com/generative-ai-app-builder/docs/ranking.
"""

from __future__ import annotations

from headgate.dialect.llm import content, fields
from headgate.dialect.llm.contract import Json, Options, TranslatedRequest, Untranslatable
from headgate.dialect.llm.neutral_reply import a_dict, a_list, garbage

BEDROCK_DROPS = ("every other field", "`rank_fields`: only the `text` of a document is ranked")
VERTEX_DROPS = ("`max_tokens_per_doc` and every other field", "`rank_fields`: only the `text` of a document is ranked")


def _documents(body: Json) -> list[str]:
    out = []
    for position, document in enumerate(fields.items(body, "documents")):
        text = document.get("text") if isinstance(document, dict) else document
        if not isinstance(text, str):
            raise Untranslatable(f"documents[{position}]", "must be a string or an object with a text")
        out.append(text)
    if not out:
        raise Untranslatable("documents", "must not be empty")
    return out


def _top(body: Json, count: int) -> int:
    top = fields.integer(body, "top_n")
    if top is not None and top < 1:
        raise Untranslatable("top_n", "must be 1 or more")
    return count if top is None else min(top, count)


def _asked(body: Json, out: Json, model: str) -> TranslatedRequest:
    documents = _documents(body)
    kept = documents if fields.flag(body, "return_documents") else None
    return TranslatedRequest(
        body=out, stream=False, model=model, requested=str(body.get("model") or model),
        echo={"documents": kept, "count": len(documents)},
    )  # fmt: skip


def bedrock_request(body: Json, options: Options) -> TranslatedRequest:
    """Return the request for Bedrock's agent runtime, whose path is the same for all models. Raises Untranslatable."""
    model = content.model_of(body, options.model)
    documents = _documents(body)
    named: Json = {"modelArn": model}
    if not model.startswith("arn:"):
        named["modelArn"] = f"arn:aws:bedrock:{options.region}::foundation-model/{model}"
    if (most := fields.integer(body, "max_tokens_per_doc")) is not None:
        named["additionalModelRequestFields"] = {"max_tokens_per_doc": most}
    sources = [
        {"type": "INLINE", "inlineDocumentSource": {"type": "TEXT", "textDocument": {"text": text}}}
        for text in documents
    ]
    found = {"modelConfiguration": named, "numberOfResults": _top(body, len(documents))}
    out: Json = {
        "queries": [{"type": "TEXT", "textQuery": {"text": fields.needed_text(body, "query")}}],
        "sources": sources,
        "rerankingConfiguration": {
            "type": "BEDROCK_RERANKING_MODEL", "bedrockRerankingConfiguration": found,
        },
    }  # fmt: skip
    asked = _asked(body, out, model)
    asked.path_suffix = "/rerank"
    return asked


def vertex_request(body: Json, options: Options) -> TranslatedRequest:
    """Return the request for the ranking API of Vertex AI. Raises Untranslatable."""
    model = content.model_of(body, options.model)
    documents = _documents(body)
    records = [{"id": str(position), "content": text} for position, text in enumerate(documents)]
    out: Json = {"model": model, "query": fields.needed_text(body, "query"), "records": records}
    if body.get("top_n") is not None:
        out["topN"] = _top(body, len(documents))
    # The texts are in the request already, so the response need not repeat them.
    out["ignoreRecordDetailsInResponse"] = True
    return _asked(body, out, model)


def _results(scores: list[tuple[int, float]], asked: TranslatedRequest) -> Json:
    documents, count = asked.echo.get("documents"), asked.echo["count"]
    results = []
    for index, score in scores:
        if not 0 <= index < count:
            raise garbage("an index", "is not one of a document")
        result: Json = {"index": index, "relevance_score": score}
        if documents is not None:
            result["document"] = {"text": documents[index]}
        results.append(result)
    return {"id": f"rerank-{asked.ident}", "model": asked.requested or asked.model, "results": results, "meta": {}}


def _score(value: object) -> float:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else 1.0


def bedrock_reply(body: Json, asked: TranslatedRequest) -> Json:
    """Return the client's reply with the results in the provider's order, best first. Raises UpstreamGarbage."""
    scores = []
    for item in a_list(body.get("results"), "results"):
        result = a_dict(item, "a result")
        index = result.get("index")
        if type(index) is not int or index < 0:
            raise garbage("an index", "is not a number")
        scores.append((index, _score(result.get("relevanceScore"))))
    return _results(scores, asked)


def vertex_reply(body: Json, asked: TranslatedRequest) -> Json:
    """Return the client's reply with the results in the provider's order, best first. Raises UpstreamGarbage."""
    scores = []
    for item in a_list(body.get("records"), "records"):
        record = a_dict(item, "a record")
        ident = record.get("id")
        if not isinstance(ident, str) or not ident.isascii() or not ident.isdigit() or len(ident) > 9:
            raise garbage("a record's id", "is not a number")
        scores.append((int(ident), _score(record.get("score"))))
    return _results(scores, asked)
