"""Generates the page about translation from the table of pairs.

Usage: python -m headgate.dialect.llm.page > docs/llm-translation.md
"""

from __future__ import annotations

from headgate.dialect.llm.pairs import PAIRS
from headgate_engine.llm.translate.stops import READ, STOPS, WRITE

NAMES = {
    "completions": "Chat completions",
    "responses": "Responses",
    "messages": "Messages",
    "embeddings": "Embeddings",
    "count_tokens": "Token counting of Messages",
    "rerank": "Rerank",
    "text": "Text completions",
    "gemini": "Gemini generateContent",
    "gemini_count_tokens": "Token counting of Gemini",
    "converse": "Bedrock Converse",
    "bedrock_embeddings": "Bedrock embedding models",
    "vertex_embeddings": "Vertex AI embeddings",
    "copilot_embeddings": "Copilot embeddings",
    "bedrock_rerank": "Bedrock rerank",
    "vertex_rerank": "Vertex AI ranking",
    "bedrock_count_tokens": "Bedrock token counting",
}
HEAD = """# Translation between LLM formats

If a client and a provider use different formats, the gateway translates requests, replies, streams and errors. Here
clients of OpenAI's chat completions and of Anthropic's Messages use the same two models:

```yaml
llm:
  models:
  - {name: gpt-*, provider: openAI, params: {apiKey: sk-example}}
  - {name: claude-*, provider: anthropic, params: {apiKey: sk-ant-example}, unsupportedParameters: refuse}
```

```sh
curl http://localhost:4000/v1/messages -H 'content-type: application/json' \\
  -d '{"model": "gpt-5", "max_tokens": 100, "messages": [{"role": "user", "content": "Hello"}]}'
```

If the formats are equal, nothing is translated. This page lists the pairs of formats, what holds for all pairs, and
what each pair cannot translate. `python -m headgate.dialect.llm.page` generates it.
"""
RULES = """## What cannot be translated

- **A field that the provider's format lacks** is left out, and listed below for each pair.
  [`unsupportedParameters`](llm.md#unsupported-parameters) of a model decides whether a response header names it (the
  default), it is left out silently, or the request is refused.
- **A request that makes no sense without such a field** is refused with 400. The error names the field. These are the
  entries "refused with 400" below.
- **Parts of an answer** that the client's format lacks are reported as `answer`, in the header of whole answers and
  in the metric.

## Errors

- **Errors keep their status and their kind.** An invalid key is `authentication_error` in Messages and
  `invalid_api_key` in OpenAI's formats. A prompt that is too long is `prompt is too long: ...` and
  `context_length_exceeded`.
- **A 2xx reply that is not in the provider's format** becomes a 502 in the client's format. If it contains an error,
  the client gets the reason and the status that fits it (429, 529, ...), or 502 if it does not say.
- **A stream that fails before its first content** becomes a response with the error's status. Content that came
  before an error, or together with it, reaches the client.

## Streams

- A response is treated as a stream if the request asked for one, even if its content type is missing or wrong.
- Every stream has exactly one terminal event. If the provider's stream is cut, stalls, is malformed or contains an
  error, the client gets an error in its own format: `data: {"error": ...}` without `[DONE]` (chat completions),
  `event: error` (Messages), `response.failed` (Responses).

## Model, tokens and stop reasons

- Replies name the model that answered, and the service tier.
- Cached tokens are part of the input tokens, as in chat completions. The counts of Messages and Converse, which
  exclude them, are converted. If the provider's total is larger than the sum of its parts, the total is kept.
- In Responses, an answer that reached a limit has the status `incomplete`, both the item and the response. Unknown
  stop reasons count as a normal end.
- Log probabilities are translated if both formats have them and the client asks for them.

## Tools

- **Arguments** of tool calls pass through as text. If the client's format requires an object and the model wrote
  something else, the text becomes the object's field `input`.
- **Custom tools** of Responses and chat completions, whose input is free text, stay as they are at OpenAI, Azure, and
  every provider of Responses. Elsewhere each becomes a function with one string, `input`. Its calls come back as
  calls of a custom tool, also in streams. A grammar becomes part of the description, and is reported as unsupported.
- **Results** keep their images and files. Tool messages of chat completions can contain only text, so the images
  and files follow in a user message. Messages, Converse, Gemini and Responses learn that a result is an error.
- **Names** that Bedrock does not accept are replaced, and restored in replies.
- **Tools that the vendor runs** (web search, code execution) are enabled where the vendor has them: `web_search` of
  Responses and Messages, `googleSearch`, `web_search_options` of chat completions (OpenAI's search models,
  Perplexity, and OpenRouter with its plugin); `code_interpreter`, `code_execution` and `codeExecution`. Gemini
  accepts them only in requests without functions. Options that the other tool lacks (locations, sizes, domains,
  maximum uses) are reported as unsupported.
- **Their calls** are not calls for the client to make. They and their results appear if the client's format has a
  place for them: `server_tool_use` and its result in Messages, `web_search_call`, `code_interpreter_call` and
  `mcp_call` in Responses. URL citations become `url_citation` annotations, or citations of text blocks. Citations of
  document locations are translated only between Messages and Converse.
- **Their calls in earlier turns.** Code that a vendor ran reaches Gemini as code, and other vendors as text with its
  output. Web searches are left out and reported.

## Reasoning

- Reasoning is translated if both formats have a place for it. Chat completions have `reasoning_content` and
  `reasoning_signature`, and `thinking_blocks` as in LiteLLM's clients. A client that sends them back keeps Claude's
  signed reasoning valid.
- A `thinking` budget is accepted in chat completions, in addition to `reasoning_effort`. It is left out if the vendor
  requires earlier reasoning that came from another vendor.
- Reasoning that OpenAI encrypted (`encrypted_content`) reaches clients of other formats as redacted thinking, and
  returns only to OpenAI. Clients of Responses that include `reasoning.encrypted_content` get Claude's signatures in
  that field, and Claude gets them back.
- `reasoning_details` of OpenRouter are read in answers and in earlier turns, and written for clients of Gemini.
  Signatures return only to OpenRouter's models of the vendor that made them.
- The signature of a Gemini thought follows `__thought__` in the id of the tool call that it led to. Only Gemini gets
  it back.

## Conversations that change vendors

A conversation can change vendors at every turn. Ids of tool calls are adapted to each vendor, in calls and in
results. Reasoning returns to the vendor that signed it, and is left out elsewhere. This also applies to providers
with the client's own format: such a request is changed only if it contains turns of other vendors.

## Prompt caching, images and audio

- `cache_control` in messages, parts and tools of chat completions reaches Messages and Converse.
- Images that a model makes are `images` of a message in chat completions (as in OpenRouter and LiteLLM), parts in
  Gemini, and `image_generation_call` in Responses.
- Audio is `audio` of a message or a delta in chat completions, and PCM parts in Gemini. Chat clients get Gemini's
  audio as `pcm16` or `wav`; requests for other audio formats are refused.

## Several choices

If the provider can make several choices (`n`, `candidateCount`) in one request, the gateway asks for them in one.
Otherwise, and for streams, it sends the request once for each choice, all at once, 8 at most. Tokens of all calls are
added up. Streams are merged into one, with the index of each choice. If one call fails, the request fails.

The same is done for chat completions and legacy text completions at vendors that have these formats but refuse or
ignore `n`: Groq, Ollama, DeepSeek, Cohere and OpenRouter. Nothing else in these requests changes.
"""
STOP_TEXT = (
    "For each reason, the table has the values of each format. Values with * are written by the gateway for that "
    "reason, but are not read as that reason."
)


def _stops() -> str:
    """Return the Markdown table of stop reasons."""
    formats = ("completions", "messages", "responses", "gemini", "converse")
    lines = ["| Reason | " + " | ".join(NAMES[name] for name in formats) + " |", "|---|" + "---|" * len(formats)]
    for stop in STOPS:
        cells = []
        for name in formats:
            words = [word for word, meant in READ[name].items() if meant == stop]
            if name in WRITE and WRITE[name][stop] not in words:
                words.append(WRITE[name][stop] + "*")
            cells.append(", ".join(f"`{word.rstrip('*')}`" + "*" * word.endswith("*") for word in words) or "-")
        lines.append(f"| {stop} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def page() -> str:
    """Return the page in Markdown."""
    lines = [HEAD, "## Pairs of formats", "", "| Client | Provider | Streams |", "|---|---|---|"]
    for pair in PAIRS.values():
        framing = {"sse": "server-sent events", "eventstream": "AWS event stream"}[pair.framing]
        lines.append(f"| {NAMES[pair.client]} | {NAMES[pair.upstream]} | {framing if pair.streams else 'no'} |")
    lines += ["", RULES, "## Stop reasons", "", STOP_TEXT, "", _stops(), ""]
    for pair in PAIRS.values():
        lines += [f"## {NAMES[pair.client]} to {NAMES[pair.upstream]}", ""]
        if pair.carries:
            fields = ", ".join(f"`{name}`" for name in sorted(pair.carries))
            lines += [f"Fields that are translated: {fields}.", ""]
        lines += ["Not translated:", ""]
        lines += [f"- {dropped}" for dropped in dict.fromkeys(pair.drops)]
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    print(page(), end="")
