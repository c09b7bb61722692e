"""Converts content blocks of Messages to content blocks of Bedrock Converse.

Source: https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ContentBlock.html.
"""

from __future__ import annotations

import base64
import hashlib
import re

from headgate.dialect.llm import content, fields, idents, ran_code
from headgate.dialect.llm.contract import Json, Untranslatable
from headgate.dialect.llm.sayable import Past
from headgate.dialect.llm.translate.messages_to_completions import blocks_of
from headgate_engine.llm.translate.turns import converse_turn

MAX_CACHE_POINTS = 4
LONGEST_NAME = 64
NOT_NAME = re.compile(r"[^A-Za-z0-9_-]")
IMAGES = {"image/png": "png", "image/jpeg": "jpeg", "image/jpg": "jpeg", "image/gif": "gif", "image/webp": "webp"}
DOCUMENTS = {
    "application/pdf": "pdf",
    "text/csv": "csv",
    "application/msword": "doc",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
    "application/vnd.ms-excel": "xls",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
    "text/html": "html",
    "text/plain": "txt",
    "text/markdown": "md",
}

_DOCUMENT = ("documentIndex", "document_index")
# Converse's places of citations: the kind in Messages, and there the first index, the last one, and the names of what
# is cited, here and there.
PLACES = {
    "documentChar": ("char_location", "start_char_index", "end_char_index", _DOCUMENT),
    "documentPage": ("page_location", "start_page_number", "end_page_number", _DOCUMENT),
    "documentChunk": ("content_block_location", "start_block_index", "end_block_index", _DOCUMENT),
    "searchResultLocation": (
        "search_result_location", "start_block_index", "end_block_index", ("searchResultIndex", "search_result_index"),
    ),
}  # fmt: skip


class Names:
    """Tool names that the provider accepts, and their mapping to the client's names."""

    def __init__(self) -> None:
        self.known: dict[str, str] = {}
        self.taken: set[str] = set()

    @property
    def back(self) -> dict[str, str]:
        """The changed names: the provider's name mapped to the client's."""
        return {made: name for name, made in self.known.items() if made != name}

    def made(self, name: str) -> str:
        """Return the unique name for the provider, with allowed characters only and at most LONGEST_NAME of them."""
        if name in self.known:
            return self.known[name]
        made = NOT_NAME.sub("_", name) or "tool"
        if len(made) > LONGEST_NAME or made in self.taken:
            # 57 characters, an underscore and six digits make 64.
            made = f"{made[:57]}_{hashlib.sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:6]}"
        self.known[name] = made
        self.taken.add(made)
        return made


class Turns:
    """Collects messages. Adjacent messages of one role are joined.

    `used` are the names of called tools in order, `results` and `points` the numbers of tool results and cache points,
    `titles` the names of documents.
    """

    def __init__(self, names: Names, dropped: list[str]) -> None:
        self.names = names
        self.dropped = dropped
        self.messages: list[Json] = []
        self.used: dict[str, None] = {}
        self.results = 0
        self.points = 0
        self.titles: set[str] = set()

    def cache_point(self, blocks: list[Json], marked: Json) -> None:
        """Append a cache point if the block `marked` has `cache_control` and the limit of points is not reached."""
        if marked.get("cache_control") and self.points < MAX_CACHE_POINTS:
            self.points += 1
            blocks.append({"cachePoint": {"type": "default"}})

    def system_blocks(self, holder: Json, name: str, at: str) -> list[Json]:
        """Return the blocks of a system prompt without blank ones."""
        found = holder.get(name)
        if isinstance(found, str):
            return [{"text": found}] if found.strip() else []
        out: list[Json] = []
        for position, block in enumerate(fields.objects(holder, name, at)):
            text = fields.needed_text(block, "text", f"{at}.{name}[{position}]".lstrip("."))
            if text.strip():
                out.append({"text": text})
                self.cache_point(out, block)
        return out

    def add(self, message: Json, at: str) -> None:
        """Add a message of the user or the assistant. Raises Untranslatable for any other role."""
        plain = converse_turn(message, self.names.known, self.used)
        if plain is not None:
            blocks, results = plain
            self.results += results
            content.merge_turn(self.messages, message["role"], blocks)
            return
        role = fields.needed_text(message, "role", at)
        if role not in ("user", "assistant"):
            raise Untranslatable(f"{at}.role", "must be user or assistant")
        blocks = []
        runs: ran_code.Runs | None = None
        given = blocks_of(message, at)
        for position, block in enumerate(given):
            here = f"{at}.content[{position}]"
            made = self.block(block, role, here)
            if made is None:
                runs = ran_code.of_blocks(given) if runs is None else runs
                ran = ran_code.of_block(block, runs) if role == "assistant" else None
                if ran is not None:
                    blocks += [{"text": ran_code.text(one)} for one in ran]
                    continue
                self.dropped.append(Past(here) if role == "assistant" else here)
            elif made:
                blocks.append(made)
                self.cache_point(blocks, block)
        content.merge_turn(self.messages, role, blocks)

    def in_tool_loop(self) -> bool:
        """Return whether the last message has tool results, whose calls' message does not begin with a thought."""
        if len(self.messages) < 2 or not any("toolResult" in block for block in self.messages[-1]["content"]):
            return False
        said = self.messages[-2]
        return said["role"] == "assistant" and "reasoningContent" not in said["content"][0]

    def block(self, block: Json, role: str, at: str) -> Json | None:
        """Return the converted block: {} for a blank text, None for a block that cannot be translated."""
        kind = fields.text(block, "type", at)
        if kind == "text":
            text = fields.needed_text(block, "text", at)
            cited = [found for one in fields.objects(block, "citations", at) if (found := _citation(one)) is not None]
            if len(cited) < len(block.get("citations") or ()):
                self.dropped.append(Past(f"{at}.citations"))
            if cited and role == "assistant":
                return {"citationsContent": {"content": [{"text": text}], "citations": cited}}
            return {"text": text} if text.strip() else {}
        if kind == "image":
            return image(block, at)
        if kind == "audio":
            # Only a step from chat completions makes it.
            return {"audio": {"format": block["format"], "source": {"bytes": block["data"]}}}
        if kind == "search_result" and role == "user":
            return search_result(block, at)
        if kind == "document":
            return self.document(block, at)
        if kind == "tool_use" and role == "assistant":
            name = self.names.made(fields.needed_text(block, "name", at))
            self.used[name] = None
            given = block.get("input")
            use = {"toolUseId": idents.CONVERSE.fit(fields.needed_text(block, "id", at)), "name": name}
            return {"toolUse": {**use, "input": given if isinstance(given, dict) else {}}}
        if kind == "tool_result" and role == "user":
            return self.result(block, at)
        if kind == "thinking" and role == "assistant":
            signature = fields.text(block, "signature", at)
            if not signature:
                # The provider refuses reasoning without a signature.
                return None
            text = fields.text(block, "thinking", at) or ""
            return {"reasoningContent": {"reasoningText": {"text": text, "signature": signature}}}
        if kind == "redacted_thinking" and role == "assistant":
            data = fields.needed_text(block, "data", at)
            return {"reasoningContent": {"redactedContent": data}} if content.is_base64(data) else None
        return None

    def result(self, block: Json, at: str) -> Json:
        """Return the block of a tool result."""
        self.results += 1
        found: list[Json] = []
        for position, inner in enumerate(blocks_of(block, at)):
            here = f"{at}.content[{position}]"
            kind = fields.text(inner, "type", here)
            if kind == "text":
                found.append({"text": fields.needed_text(inner, "text", here)})
            elif kind == "image":
                found.append(image(inner, here))
            elif kind == "document":
                found.append(self.document(inner, here))
            elif kind == "search_result":
                found.append(search_result(inner, here))
            else:
                self.dropped.append(here)
        return {
            "toolResult": {
                "toolUseId": idents.CONVERSE.fit(fields.needed_text(block, "tool_use_id", at)),
                "content": found,
                "status": "error" if fields.flag(block, "is_error", at) else "success",
            }
        }

    def document(self, block: Json, at: str) -> Json:
        """Return the block of a document, with a unique name. Raises Untranslatable if it is not inline data."""
        source = fields.obj(block, "source", at) or {}
        kind = fields.text(source, "type", f"{at}.source")
        if kind == "text":
            text = fields.needed_text(source, "data", f"{at}.source")
            form, data = "txt", base64.b64encode(text.encode("utf-8", "replace")).decode()
        elif kind == "base64":
            media_type = fields.needed_text(source, "media_type", f"{at}.source")
            if media_type not in DOCUMENTS:
                raise Untranslatable(f"{at}.source.media_type", f"{media_type!r} is not a type of document")
            form, data = DOCUMENTS[media_type], fields.needed_text(source, "data", f"{at}.source")
        else:
            raise Untranslatable(f"{at}.source", "documents must be data")
        out: Json = {"format": form, "name": self.title(block, at), "source": {"bytes": data}}
        if context := fields.text(block, "context", at):
            out["context"] = context
        if wants_citations(block, at):
            out["citations"] = {"enabled": True}
        return {"document": out}

    def title(self, block: Json, at: str) -> str:
        """Return a unique name for a document, with characters that the provider accepts."""
        name = fields.text(block, "title", at) or "document"
        name = re.sub(r"\.[A-Za-z0-9]{1,5}$", "", name)
        name = re.sub(r"\s+", " ", re.sub(r"[^A-Za-z0-9\s()\[\]-]", "_", name)).strip()[:180] or "document"
        found, number = name, 1
        while found in self.titles:
            number += 1
            found = f"{name} [{number}]"
        self.titles.add(found)
        return found


def wants_citations(block: Json, at: str) -> bool:
    """Return whether answers are to cite a document or a search result."""
    return bool(fields.flag(fields.obj(block, "citations", at) or {}, "enabled", f"{at}.citations"))


def search_result(block: Json, at: str) -> Json:
    """Return the block of a search result."""
    texts = [{"text": fields.needed_text(inner, "text", at)} for inner in fields.objects(block, "content", at)]
    out: Json = {"source": fields.needed_text(block, "source", at), "title": fields.text(block, "title", at) or ""}
    out["content"] = texts
    if wants_citations(block, at):
        out["citations"] = {"enabled": True}
    return {"searchResult": out}


def _citation(value: Json) -> Json | None:
    """Return a citation of an earlier turn by its place in a document; None for one that has no such place."""
    for name, (kind, first, last, where) in PLACES.items():
        if value.get("type") == kind:
            numbers = {there: value.get(here) for there, here in (("start", first), ("end", last), where)}
            if not all(type(number) is int for number in numbers.values()):
                return None
            title = value.get("document_title") or value.get("title")
            out: Json = {"location": {name: numbers}, "sourceContent": [{"text": str(value.get("cited_text") or "")}]}
            return {"title": title, **out} if isinstance(title, str) and title else out
    return None


def image(block: Json, at: str) -> Json:
    """Return the block of an image. Raises Untranslatable if it is not inline data of a supported type."""
    source = fields.obj(block, "source", at) or {}
    if fields.text(source, "type", f"{at}.source") != "base64":
        raise Untranslatable(f"{at}.source", "images must be data: the provider fetches none")
    media_type = fields.needed_text(source, "media_type", f"{at}.source")
    if media_type not in IMAGES:
        raise Untranslatable(f"{at}.source.media_type", f"{media_type!r} is not a type of image")
    return {"image": {"format": IMAGES[media_type], "source": {"bytes": fields.needed_text(source, "data", at)}}}
