"""Converts content blocks of Bedrock Converse to content blocks of Messages. The other way: converse_blocks.

Source: https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ContentBlock.html.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from headgate.dialect.llm import content, fields, idents
from headgate.dialect.llm.contract import Json, Untranslatable
from headgate.dialect.llm.sayable import Past
from headgate.dialect.llm.translate.converse_blocks import DOCUMENTS
from headgate_engine.llm.translate.evidence import converse_citation, messages_citation_of

# Media types by the formats of documents; those that are plain text are told as such.
MEDIA_TYPES: Final = {form: media_type for media_type, form in DOCUMENTS.items()}
TEXTS: Final = frozenset({"txt", "md", "csv", "html"})
PICTURES: Final = frozenset({"png", "jpeg", "gif", "webp"})
# What chat completions and Gemini take of sound.
SOUNDS: Final = frozenset({"wav", "mp3"})


class Blocks:
    """Converts the blocks of one request. `dropped` collects the paths of what is left out.

    `sounds` tells whether the format behind Messages has a place for sound.
    """

    def __init__(self, dropped: list[str], sounds: bool) -> None:
        self.dropped = dropped
        self.sounds = sounds

    def system(self, body: Json) -> list[Json]:
        """Return the blocks of the system prompt, without blank ones."""
        out: list[Json] = []
        for position, block in enumerate(fields.objects(body, "system")):
            at = f"system[{position}]"
            if "cachePoint" in block:
                self.mark(out, block, at)
                continue
            text = self._guarded_text(block, at) if "guardContent" in block else fields.needed_text(block, "text", at)
            if text.strip():
                out.append({"type": "text", "text": text})
        return out

    def mark(self, blocks: list[Json], block: Json, at: str) -> None:
        """Set a cache point as the mark of the block in front of it."""
        point = fields.obj(block, "cachePoint", at) or {}
        if not blocks or blocks[-1].get("type") in ("thinking", "redacted_thinking"):
            self.dropped.append(f"{at}.cachePoint")
            return
        blocks[-1]["cache_control"] = {"type": "ephemeral"}
        fields.copy(point, blocks[-1]["cache_control"], {"ttl": "ttl"})

    def turn(self, message: Json, at: str) -> Json | None:
        """Return a message, None if nothing is left of it. Raises Untranslatable."""
        role = fields.needed_text(message, "role", at)
        if role not in ("user", "assistant"):
            raise Untranslatable(f"{at}.role", "must be user or assistant")
        found = fields.objects(message, "content", at)
        out: list[Json] = []
        for position, block in enumerate(found):
            here = f"{at}.content[{position}]"
            if "cachePoint" in block:
                self.mark(out, block, here)
                continue
            kind = next((name for name in _READERS if name in block), None)
            made = None if kind is None else _READERS[kind](self, block, here)
            if made is None:
                self.dropped.append(Past(here) if role == "assistant" else here)
            elif made:
                out.append(made)
        return {"role": role, "content": out} if out else None

    def _text(self, block: Json, at: str) -> Json:
        text = fields.needed_text(block, "text", at)
        return {"type": "text", "text": text} if text.strip() else {}

    def _image(self, block: Json, at: str) -> Json:
        image = fields.obj(block, "image", at) or {}
        form = fields.needed_text(image, "format", f"{at}.image")
        if form not in PICTURES:
            raise Untranslatable(f"{at}.image.format", "must be one of " + ", ".join(sorted(PICTURES)))
        data = self._bytes(image, f"{at}.image")
        return {"type": "image", "source": {"type": "base64", "media_type": f"image/{form}", "data": data}}

    def _bytes(self, holder: Json, at: str) -> str:
        """Return Base64 data. Raises Untranslatable for what lies in S3."""
        source = fields.obj(holder, "source", at) or {}
        data = fields.text(source, "bytes", f"{at}.source")
        if data is None:
            raise Untranslatable(f"{at}.source", "must be bytes: the provider of this model cannot read S3")
        return data

    def _sound(self, block: Json, at: str) -> Json:
        audio = fields.obj(block, "audio", at) or {}
        form = fields.needed_text(audio, "format", f"{at}.audio")
        if not self.sounds or form not in SOUNDS:
            raise Untranslatable(f"{at}.audio", "the provider of this model takes no such sound")
        return {"type": "audio", "format": form, "data": self._bytes(audio, f"{at}.audio")}

    def _video(self, block: Json, at: str) -> Json:
        raise Untranslatable(f"{at}.video", "the provider of this model takes no videos")

    def _document(self, block: Json, at: str) -> Json:
        found = fields.obj(block, "document", at) or {}
        at = f"{at}.document"
        source = fields.obj(found, "source", at) or {}
        form = fields.text(found, "format", at)
        told: Json
        if (text := fields.text(source, "text", f"{at}.source")) is not None:
            told = {"type": "text", "media_type": "text/plain", "data": text}
        elif source.get("content") is not None:
            told = {"type": "content", "content": self._texts(source, "content", f"{at}.source")}
        elif form is None or form in TEXTS:
            data = content.decoded_text(self._bytes(found, at), f"{at}.source")
            told = {"type": "text", "media_type": "text/plain", "data": data}
        elif form in MEDIA_TYPES:
            told = {"type": "base64", "media_type": MEDIA_TYPES[form], "data": self._bytes(found, at)}
        else:
            raise Untranslatable(f"{at}.format", "must be one of " + ", ".join(sorted(MEDIA_TYPES)))
        out: Json = {"type": "document", "source": told}
        fields.copy(found, out, {"name": "title", "context": "context"})
        if fields.flag(fields.obj(found, "citations", at) or {}, "enabled", f"{at}.citations"):
            out["citations"] = {"enabled": True}
        return out

    def _texts(self, holder: Json, name: str, at: str) -> list[Json]:
        """Return a list of texts as blocks."""
        texts = [fields.text(one, "text", at) for one in fields.objects(holder, name, at)]
        return [{"type": "text", "text": text} for text in texts if text]

    def _search_result(self, block: Json, at: str) -> Json:
        found = fields.obj(block, "searchResult", at) or {}
        at = f"{at}.searchResult"
        out: Json = {"type": "search_result", "source": fields.needed_text(found, "source", at)}
        out |= {"title": fields.text(found, "title", at) or "", "content": self._texts(found, "content", at)}
        if fields.flag(fields.obj(found, "citations", at) or {}, "enabled", f"{at}.citations"):
            out["citations"] = {"enabled": True}
        return out

    def _tool_use(self, block: Json, at: str) -> Json | None:
        use = fields.obj(block, "toolUse", at) or {}
        at = f"{at}.toolUse"
        if use.get("type") is not None:
            # The vendor has run it.
            return None
        ident, name = fields.needed_text(use, "toolUseId", at), fields.needed_text(use, "name", at)
        given = use.get("input")
        return {"type": "tool_use", "id": ident, "name": name, "input": given if isinstance(given, dict) else {}}

    def _tool_result(self, block: Json, at: str) -> Json | None:
        result = fields.obj(block, "toolResult", at) or {}
        at = f"{at}.toolResult"
        if result.get("type") is not None:
            return None
        out: list[Json] = []
        for position, inner in enumerate(fields.objects(result, "content", at)):
            here = f"{at}.content[{position}]"
            if "json" in inner:
                out.append({"type": "text", "text": content.dump_text(inner["json"])})
            elif "text" in inner:
                out.append({"type": "text", "text": fields.needed_text(inner, "text", here)})
            else:
                kind = next((name for name in _IN_RESULTS if name in inner), None)
                if kind is None:
                    self.dropped.append(here)
                elif made := _READERS[kind](self, inner, here):
                    out.append(made)
        told: Json = {"type": "tool_result", "tool_use_id": fields.needed_text(result, "toolUseId", at)}
        told["content"] = out
        if fields.text(result, "status", at) == "error":
            told["is_error"] = True
        return told

    def _reasoning(self, block: Json, at: str) -> Json:
        reasoning = fields.obj(block, "reasoningContent", at) or {}
        at = f"{at}.reasoningContent"
        if (data := fields.text(reasoning, "redactedContent", at)) is not None:
            own = idents.unwrapped(data)
            return {"type": "redacted_thinking", "data": data if own is None else own[0]}
        told = fields.obj(reasoning, "reasoningText", at) or {}
        text, signature = (fields.text(told, name, f"{at}.reasoningText") or "" for name in ("text", "signature"))
        return {"type": "thinking", "thinking": text, "signature": signature}

    def _cited(self, block: Json, at: str) -> Json:
        cited = fields.obj(block, "citationsContent", at) or {}
        at = f"{at}.citationsContent"
        text = "".join(one["text"] for one in self._texts(cited, "content", at))
        citations = []
        for one in fields.objects(cited, "citations", at):
            found = converse_citation(one, 0, len(text))
            if found is None:
                self.dropped.append(Past(f"{at}.citations"))
            else:
                citations.append(messages_citation_of(found))
        out: Json = {"type": "text", "text": text}
        if citations:
            out["citations"] = citations
        return out if text.strip() else {}

    def _guarded_text(self, block: Json, at: str) -> str:
        guarded = fields.obj(block, "guardContent", at) or {}
        return fields.needed_text(fields.obj(guarded, "text", at) or {}, "text", f"{at}.guardContent.text")

    def _guarded(self, block: Json, at: str) -> Json:
        guarded = fields.obj(block, "guardContent", at) or {}
        if "image" in guarded:
            return self._image(guarded, f"{at}.guardContent")
        return {"type": "text", "text": self._guarded_text(block, at)}


_READERS: Final[dict[str, Callable[[Blocks, Json, str], Json | None]]] = {
    "text": Blocks._text,
    "toolUse": Blocks._tool_use,
    "toolResult": Blocks._tool_result,
    "reasoningContent": Blocks._reasoning,
    "image": Blocks._image,
    "document": Blocks._document,
    "searchResult": Blocks._search_result,
    "citationsContent": Blocks._cited,
    "guardContent": Blocks._guarded,
    "audio": Blocks._sound,
    "video": Blocks._video,
}
_IN_RESULTS: Final = ("image", "document", "searchResult", "video")
