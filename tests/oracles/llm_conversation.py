"""A conversation as clients keep it, and answers as vendors give them: with their ids, signatures and thoughts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from llm_strict import ANTHROPIC, GEMINI, OPENAI, signed

Json = dict[str, Any]
# Format to the vendor that speaks it, and one of its models.
VENDORS = {
    "completions": ("openai", "gpt-5.2"), "messages": ("anthropic", "claude-sonnet-4-5"),
    "responses": ("openai", "gpt-5.2"), "gemini": ("gcp.gemini", "gemini-3-pro"),
    "compatible": ("gcp.gemini", "gemini-3-flash"),
    "converse": ("aws.bedrock", "us.anthropic.claude-sonnet-4-5-20250929-v1:0"),
}  # fmt: skip
NAMES = {
    "completions": "call_{}", "messages": "toolu_01{}", "responses": "call_{}", "gemini": "{}", "converse": "tooluse_{}",
}  # fmt: skip


@dataclass
class Answer:
    """What a vendor says in one turn. `number` makes its ids and signatures differ from those of other turns."""

    number: int
    text: str
    thought: str
    redacted: bool
    calls: list[str]
    odd_ids: bool
    searched: bool = False

    def cited(self, text: str) -> Json:
        """Return the text as a part of Responses, with what it was found in."""
        note = {"type": "url_citation", "start_index": 0, "end_index": len(text), "url": "https://a.example", "title": "A"}
        return {"type": "output_text", "text": text, "annotations": [note] if self.searched else []}

    def ident(self, format: str, index: int) -> str:
        """Return an id in the way of the vendor, or one that others refuse."""
        mark = f"{self.number}A{index}{'x' * 20}"
        return f"functions.f:{mark}{'y' * 40}" if self.odd_ids else NAMES[format].format(mark)

    def told(self, format: str) -> Json:
        """Return it as the vendor's reply."""
        return {
            "completions": self.completions, "messages": self.messages, "responses": self.responses,
            "gemini": self.gemini, "converse": self.converse, "compatible": self.compatible,
        }[format]()  # fmt: skip

    def completions(self) -> Json:
        calls = [{"id": self.ident("completions", at), "type": "function", "function": {"name": name, "arguments": "{}"}}
                 for at, name in enumerate(self.calls)]  # fmt: skip
        said: Json = {"role": "assistant", "content": self.text or (None if calls else "Well.")}
        said |= {"tool_calls": calls} if calls else {}
        if self.searched and said["content"]:
            [note] = self.cited(said["content"])["annotations"]
            kind = note.pop("type")
            said["annotations"] = [{"type": kind, kind: note}]
        said |= {"reasoning_content": self.thought} if self.thought else {}
        stop = "tool_calls" if calls else "stop"
        return {"id": "c", "model": "m", "choices": [{"index": 0, "message": said, "finish_reason": stop}]}

    def compatible(self) -> Json:
        """Return it as Gemini's endpoint for chat completions does."""
        reply = self.completions()
        calls = reply["choices"][0]["message"].get("tool_calls", [])
        for call in calls[:1]:
            call["extra_content"] = {"google": {"thought_signature": signed(GEMINI, f"{self.number}{'z' * 90}~~?>")}}
        return reply

    def messages(self) -> Json:
        blocks: list[Json] = []
        if self.thought:
            blocks.append({"type": "thinking", "thinking": self.thought, "signature": signed(ANTHROPIC, str(self.number))})
        if self.redacted:
            blocks.append({"type": "redacted_thinking", "data": signed(ANTHROPIC, "hidden")})
        said: Json = {"type": "text", "text": self.text or "Well."}
        if self.searched:
            ident, page = f"srvtoolu_01{self.number}Ab", {"url": "https://a.example", "title": "A"}
            found = {"type": "web_search_result", **page, "encrypted_content": signed(ANTHROPIC, "page"), "page_age": None}
            blocks.append({"type": "server_tool_use", "id": ident, "name": "web_search", "input": {"query": "a"}})
            blocks.append({"type": "web_search_tool_result", "tool_use_id": ident, "content": [found]})
            cited = {"cited_text": "a", "encrypted_index": signed(ANTHROPIC, "index")}
            said["citations"] = [{"type": "web_search_result_location", **page, **cited}]
        blocks += [said] if self.text or not self.calls else []
        blocks += [{"type": "tool_use", "id": self.ident("messages", at), "name": name, "input": {}}
                   for at, name in enumerate(self.calls)]  # fmt: skip
        return {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": blocks,
                "stop_reason": "tool_use" if self.calls else "end_turn"}  # fmt: skip

    def responses(self) -> Json:
        items: list[Json] = []
        if self.thought:
            items.append({"id": f"rs_{self.number:048x}", "type": "reasoning",
                          "summary": [{"type": "summary_text", "text": self.thought}],
                          "encrypted_content": signed(OPENAI, str(self.number))})  # fmt: skip
        if self.searched:
            items.append({"id": f"ws_{self.number:048x}", "type": "web_search_call", "status": "completed",
                          "action": {"type": "search", "query": "a"}})  # fmt: skip
        if self.text or not self.calls:
            part = self.cited(self.text or "Well.")
            items.append({"id": f"msg_{self.number:048x}", "type": "message", "status": "completed",
                          "role": "assistant", "content": [part]})  # fmt: skip
        items += [{"id": f"fc_{self.number:048x}", "type": "function_call", "status": "completed", "name": name,
                   "call_id": self.ident("responses", at), "arguments": "{}"} for at, name in enumerate(self.calls)]  # fmt: skip
        return {"id": "resp_1", "object": "response", "status": "completed", "model": "m", "output": items}

    def gemini(self) -> Json:
        parts: list[Json] = [{"text": self.thought, "thought": True}] if self.thought else []
        parts += [{"text": self.text or "Well."}] if self.text or not self.calls else []
        for at, name in enumerate(self.calls):
            call: Json = {"functionCall": {"name": name, "args": {}}}
            if self.odd_ids:
                call["functionCall"]["id"] = self.ident("gemini", at)
            if at == 0:
                call["thoughtSignature"] = signed(GEMINI, f"{self.number}{'z' * 90}~~?>")
            parts.append(call)
        found: Json = {}
        if self.searched:
            parts.insert(0, {"executableCode": {"language": "PYTHON", "code": "1"}})
            parts.insert(1, {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}})
            support = {"segment": {"startIndex": 0, "endIndex": 3}, "groundingChunkIndices": [0]}
            found["groundingMetadata"] = {
                "webSearchQueries": ["a"], "groundingChunks": [{"web": {"uri": "https://a.example", "title": "A"}}],
                "groundingSupports": [support],
            }  # fmt: skip
        return {"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0, **found}],
                "responseId": f"resp{self.number}id", "modelVersion": "m"}  # fmt: skip

    def converse(self) -> Json:
        blocks: list[Json] = []
        if self.thought:
            reasoning = {"text": self.thought, "signature": signed(ANTHROPIC, str(self.number))}
            blocks.append({"reasoningContent": {"reasoningText": reasoning}})
        if self.redacted:
            blocks.append({"reasoningContent": {"redactedContent": signed(ANTHROPIC, "hidden")}})
        said: Json = {"text": self.text or "Well."}
        if self.searched:
            cited = {"title": "A", "sourceContent": [{"text": "a"}], "location": {"web": {"url": "https://a.example"}}}
            said = {"citationsContent": {"content": [said], "citations": [cited]}}
        blocks += [said] if self.text or not self.calls else []
        blocks += [{"toolUse": {"toolUseId": self.ident("converse", at)[:64].replace(".", "_").replace(":", "_"),
                                "name": name, "input": {}}} for at, name in enumerate(self.calls)]  # fmt: skip
        return {"output": {"message": {"role": "assistant", "content": blocks}},
                "stopReason": "tool_use" if self.calls else "end_turn",
                "usage": {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2}}  # fmt: skip


@dataclass
class Conversation:
    """A client's history. `keeps`: it sends back what its format does not define, as clients of reasoning do."""

    client: str
    keeps: bool
    thinks: bool
    turns: list[Json] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.turns.append(self._words("Begin."))

    def _words(self, text: str) -> Json:
        return {"role": "user", "content": [{"text": text}] if self.client == "converse" else text}

    def body(self, model: str) -> Json:
        """Return the next request."""
        schema = {"type": "object", "properties": {}}
        names = ("now", "get_weather")
        if self.client == "converse":
            specs = [{"toolSpec": {"name": name, "inputSchema": {"json": schema}}} for name in names]
            asked: Json = {"messages": list(self.turns), "toolConfig": {"tools": specs}, "inferenceConfig": {"maxTokens": 4000}}
            thinking = {"thinking": {"type": "enabled", "budget_tokens": 1024}}
            return {**asked, "additionalModelRequestFields": thinking} if self.thinks else asked
        body: Json = {"model": model, "input" if self.client == "responses" else "messages": list(self.turns)}
        if self.client == "completions":
            body["tools"] = [{"type": "function", "function": {"name": name, "parameters": schema}} for name in names]
            body |= {"reasoning_effort": "low"} if self.thinks else {}
        elif self.client == "messages":
            body["tools"] = [{"name": name, "input_schema": schema} for name in names]
            body["max_tokens"] = 4000
            body |= {"thinking": {"type": "enabled", "budget_tokens": 1024}} if self.thinks else {}
        else:
            body["tools"] = [{"type": "function", "name": name, "parameters": schema, "strict": False} for name in names]
            included = {"include": ["reasoning.encrypted_content"]}
            body |= {"reasoning": {"effort": "low"}, **included} if self.thinks else {}
        return body

    def heard(self, reply: Json) -> None:
        """Add the reply, and results of all tools that it calls or the user's next words."""
        if self.client == "completions":
            # Requests have no place for annotations; vendors of chat completions skip their own.
            said = {name: value for name, value in reply["choices"][0]["message"].items()
                    if value is not None and name != "annotations"}  # fmt: skip
            known = said if self.keeps else {name: said[name] for name in ("role", "content", "tool_calls") if name in said}
            self.turns.append(known)
            results: list[Json] = [{"role": "tool", "tool_call_id": call["id"], "content": "result"}
                                   for call in said.get("tool_calls", [])]  # fmt: skip
        elif self.client == "messages":
            self.turns.append({"role": "assistant", "content": reply["content"]})
            blocks = [{"type": "tool_result", "tool_use_id": block["id"], "content": "result"}
                      for block in reply["content"] if block["type"] == "tool_use"]  # fmt: skip
            results = [{"role": "user", "content": blocks}] if blocks else []
        elif self.client == "converse":
            self.turns.append(reply["output"]["message"])
            ran = [block["toolUse"] for block in reply["output"]["message"]["content"] if "toolUse" in block]
            told = [{"toolResult": {"toolUseId": one["toolUseId"], "content": [{"text": "result"}]}} for one in ran]
            results = [{"role": "user", "content": told}] if told else []
        else:
            self.turns += reply["output"]
            results = [{"type": "function_call_output", "call_id": item["call_id"], "output": "result"}
                       for item in reply["output"] if item["type"] == "function_call"]  # fmt: skip
        self.turns += results or [self._words("Go on.")]
