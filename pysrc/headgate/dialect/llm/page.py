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

A client speaks one format, a provider may speak another. Requests, replies, streams and errors are translated between
the pairs below; equal formats are not translated at all. Written by `python -m headgate.dialect.llm.page`.

What holds for all pairs:

- A request that cannot be said in the provider's format is refused with 400, and the error names the field. Fields
  that are merely left out are listed for each pair; `unsupportedParameters` tells whether they are left out, named in
  a response header (the default), or refused.
- A 2xx reply that is not what the provider's format says becomes a 502 in the client's format. One that is an error
  keeps its reason, and has the status that it means (429, 529, ...; 502 where it says nothing of that). Errors keep
  their status, and their kind: a bad key is `authentication_error` to a client of Messages and `invalid_api_key` to
  one of OpenAI's formats, a prompt that is too long is `prompt is too long: ...` and `context_length_exceeded`.
- A stream that fails before it says anything is an error with the status that the provider's words mean. What was said
  before an error reaches the client, also when both came at once.
- A stream is one by what was asked: its content type may be missing or wrong.
- A stream has exactly one terminal event. When the provider's stream is cut, stalls, breaks its framing or sends an
  error, the client gets its format's error: `data: {"error": ...}` without `[DONE]` (chat completions),
  `event: error` (Messages), `response.failed` (Responses).
- Replies name the model that answered, and the tier of service. What ended because a limit was reached has the status
  `incomplete` in Responses, item and response. Reasons to stop that no table knows are ordinary ends.
- Tokens are counted in one way: cached tokens are part of the input, as in chat completions; Messages and Converse,
  which leave them out, are converted. A total of the provider's that is more than the parts is kept.
- Arguments of tool calls go through as text. Where the client's format wants an object and the model wrote none, the
  text is the object's member `input`.
- Custom tools of Responses and chat completions, whose input is free text, stay what they are at OpenAI and Azure, and
  at every provider of Responses. Elsewhere each is a function with one string, `input`, and its calls come back as
  calls of a custom tool, streamed as they come. A grammar is then only described to the model, and told as lost.
- Reasoning is told where both formats have a place for it. Chat completions have `reasoning_content` and
  `reasoning_signature` for it, and `thinking_blocks` as LiteLLM's clients use them; a client that sends them back keeps
  Claude's chain of thought valid. `thinking` with a budget is taken beside `reasoning_effort`. Marks of `cache_control`
  in messages, parts and tools of chat completions reach Messages and Converse.
- What OpenAI has encrypted of its thoughts (`encrypted_content`) reaches clients of other formats as redacted thinking,
  and goes back to OpenAI only. Clients of Responses that include `reasoning.encrypted_content` get Claude's signatures
  as such content, and Claude gets them back. `reasoning_details` of OpenRouter are read, in answers and in histories,
  and written for clients of Gemini: signatures go back to OpenRouter's models of the vendor that made them.
- The signature of a Gemini thought travels behind `__thought__` in the id of the tool call that it led to. Only Gemini
  gets it back.
- Tools that the vendor ran itself (web search, code execution) are not calls for the client to make. What they did and
  found is told where the client's format has a place for it: `server_tool_use` and its result in Messages,
  `web_search_call`, `code_interpreter_call` and `mcp_call` in Responses. Citations of URLs become `url_citation`
  annotations and citations of text blocks; places in documents stay among Messages and Converse.
  Code that a vendor ran in an earlier turn reaches Gemini as what it is, and other vendors as text with what it
  printed; searches of earlier turns are left out, and told.
- Searches of the web and code that the vendor runs are asked for where it has them: `web_search` of Responses and
  Messages, `googleSearch`, `web_search_options` of chat completions (OpenAI's models for searches, Perplexity, and
  OpenRouter with its plugin); `code_interpreter`, `code_execution` and `codeExecution`. Gemini has them only in
  requests without functions. What a tool says and the other one cannot (places, sizes, domains, numbers of uses) is
  told.
- A conversation may change vendors at every turn. Ids of tool calls are made fit for each vendor, calls and results
  alike; thoughts go back to the vendor that signed them and are left out elsewhere. This holds for providers that speak
  the client's format too: their requests are changed only where they have turns of other vendors. A thinking budget is
  left out where the vendor wants to see a thought that another one has not had.
- Results of tools keep their pictures and files. Chat completions, where messages of tools have only text, show them in
  a message of the user behind the results. Errors of tools are told to Messages, Converse, Gemini and Responses.
- Log probabilities of tokens are told where both formats have a place for them, and the client wants them.
- Pictures that a model makes are `images` of a message in chat completions (as OpenRouter and LiteLLM have them), parts
  in Gemini and `image_generation_call` in Responses. Sound is `audio` of a message or a delta in chat completions, and
  parts of PCM in Gemini; chat clients get it from Gemini as `pcm16` or `wav`, other formats are refused. What an answer
  says and the client's format cannot is told as `answer`, in the header of whole answers and in the metric.
- Several choices of an answer (`n`, `candidateCount`) are asked for in one request where the provider can make them.
  Where it cannot, and for streams, the request is sent once for each, 8 times at most and all at once: tokens of all
  calls are added up, streams come as one with the index of each choice, and one failure is the answer. So are requests
  of chat completions (and of legacy text completions) to vendors that speak them and refuse `n` or ignore it: Groq,
  Ollama, DeepSeek, Cohere and OpenRouter. All else in those goes on as it is.
- Names of tools that Bedrock does not take are replaced, and put back in replies.
"""


def _stops() -> str:
    """Return the Markdown table of stop reasons."""
    formats = ("completions", "messages", "responses", "gemini", "converse")
    lines = ["| Why | " + " | ".join(NAMES[name] for name in formats) + " |", "|---|" + "---|" * len(formats)]
    for stop in STOPS:
        cells = []
        for name in formats:
            words = [word for word, meant in READ[name].items() if meant == stop]
            if name in WRITE and WRITE[name][stop] not in words:
                words.append(WRITE[name][stop] + " (written)")
            cells.append(", ".join(f"`{word}`" for word in words) or "-")
        lines.append(f"| {stop} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def page() -> str:
    """Return the page in Markdown."""
    lines = [HEAD, "## Pairs", "", "| Client | Provider | Streams |", "|---|---|---|"]
    for pair in PAIRS.values():
        framing = {"sse": "server-sent events", "eventstream": "AWS event stream"}[pair.framing]
        lines.append(f"| {NAMES[pair.client]} | {NAMES[pair.upstream]} | {framing if pair.streams else 'no'} |")
    lines += ["", "## Stop reasons", "", _stops(), ""]
    for pair in PAIRS.values():
        lines += [f"## {NAMES[pair.client]} to {NAMES[pair.upstream]}", ""]
        if pair.carries:
            lines += ["Carries: " + ", ".join(f"`{name}`" for name in sorted(pair.carries)) + ".", ""]
        lines += ["Cannot carry:", ""]
        lines += [f"- {dropped}" for dropped in dict.fromkeys(pair.drops)]
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    print(page(), end="")
