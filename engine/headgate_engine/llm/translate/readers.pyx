"""The providers' halves of stream translation.

What carries content must have the right type, else the stream is broken: to skip it would pass off a part as the whole.
What is unknown is skipped, as all these formats ask of their readers.
"""

from libc.string cimport memchr, memcmp

import json

import orjson

from headgate_engine.llm.translate.counts cimport completions_usage, exclusive_usage
from headgate_engine.llm.translate.fault_kinds cimport kind_of
from headgate_engine.llm.translate.stops cimport read_stop, tier_of_messages
from headgate_engine.llm.translate.writers cimport Writer, dumps
from headgate_engine.peek.delta cimport (
    SAYS_ARGUMENTS, SAYS_MORE, SAYS_TEXT, DeltaPeek, delta_peek, small_number)

from headgate_engine.llm.translate.evidence import (
    is_ran, is_result, messages_citation, messages_ran, url_annotation)
from headgate_engine.llm.translate.probs import chat_probs

cdef object fast_loads = orjson.loads
cdef object slow_loads = json.loads
# Streamed sound of chat completions, which is `pcm16`, as Google names it: 16 bits, one channel.
cdef str PCM16 = "audio/L16;codec=pcm;rate=24000"

PROVIDER_ERROR = "the provider reports an error"
CUT = "the provider's stream ended before its reply was complete"


class Garbage(ValueError):
    """The provider has sent something that its format does not allow."""


cdef object loads(object text):
    try:
        return fast_loads(text)
    except ValueError:
        pass
    try:
        return slow_loads(text)
    except (ValueError, RecursionError):
        raise Garbage("not JSON") from None


def load_json(text):
    """Decode JSON."""
    return loads(text)


cdef dict an_object(dict holder, str name):
    """The member, None when it is missing or null."""
    found = holder.get(name)
    if found is None or isinstance(found, dict):
        return found
    raise Garbage(f"{name} is not an object")


cdef list a_list(dict holder, str name):
    found = holder.get(name)
    if found is None or isinstance(found, list):
        return found
    raise Garbage(f"{name} is not an array")


cdef str a_text(dict holder, str name):
    found = holder.get(name)
    if found is None or isinstance(found, str):
        return found
    raise Garbage(f"{name} is not a string")


cdef str text_or_none(object holder, str name):
    """For values that are only reported, not relied upon."""
    if isinstance(holder, dict):
        found = (<dict>holder).get(name)
        if isinstance(found, str):
            return found
    return ""


cdef object a_key(dict holder, str name):
    """What tells blocks apart; 0 when it is left out."""
    found = holder.get(name)
    if found is None:
        return 0
    if type(found) is int or isinstance(found, str):
        return found
    raise Garbage(f"{name} is not a number")


cdef bint is_first(dict choice) except -1:
    """Whether this is the choice that the client gets; one alone may leave its index out."""
    index = choice.get("index")
    return index is None or (type(index) is int and <long long>(index if -1 < index < 99 else 99) == 0)


cdef bint usual_escapes(const char* p, Py_ssize_t n) noexcept nogil:
    """Return whether a checked JSON string has no escapes but those of two characters, all of which are written so."""
    cdef Py_ssize_t at = 0
    cdef const char* found
    while True:
        found = <const char*>memchr(p + at, 92, n - at)
        if found == NULL:
            return True
        at = found - p + 1
        if p[at] == 117 or p[at] == 47:
            return False
        at += 1


cdef bint first_number(const char* data, DeltaPeek peek) noexcept:
    """Return whether a plain delta has the index 0, or none."""
    return peek.index_stop == 0 or peek.index_stop - peek.index_start == 1 and data[peek.index_start] == 48


cdef str error_type(object error):
    return text_or_none(error, "type")


cdef str error_text(object error, str other):
    return text_or_none(error, "message") or (error if type(error) is str and error else other)


cdef str signed_id(dict call, str id):
    """The id of a tool call, with the signature that Gemini's endpoint for chat completions gives it."""
    cdef str signature = text_or_none(an_object(an_object(call, "extra_content") or {}, "google"), "thought_signature")
    return f"{id}__thought__{signature}" if signature else id


cdef class EventReader:
    """Reads the events of a format and calls a writer."""

    def __cinit__(self, Writer writer not None):
        self.writer = writer

    def event(self, str name, bytes data not None):
        """Translate one event."""
        cdef bytes raw = None if name is None else name.encode("utf-8", "replace")
        if raw is None:
            self.take_event(NULL, 0, data, len(data))
        else:
            self.take_event(raw, len(raw), data, len(data))
        return self.writer.take()

    cdef int take_event(self, const char* name, Py_ssize_t name_len, const char* data, Py_ssize_t n) except -1:
        if self.failed or self.writer.finished:
            return 0
        try:
            if n == 6 and memcmp(data, b"[DONE]", 6) == 0:
                self._event("[DONE]", None)
            elif not self._plain(name, name_len, data, n):
                self._event("message" if name == NULL else name[:name_len].decode("utf-8", "replace"), loads(data[:n]))
        except ValueError as error:
            self._fail("api_error", f"the provider's stream is broken: {error}")
        except RecursionError:
            self._fail("api_error", "the provider's stream is broken: nested too deeply")
        return 0

    cdef bint _plain(self, const char* name, Py_ssize_t name_len, const char* data, Py_ssize_t n) except -1:
        """Write a plain delta as the JSON string that it is, unless it has escapes that we would write in another way."""
        cdef DeltaPeek peek = self.peek
        cdef int says
        cdef const char* p
        cdef Py_ssize_t size
        cdef str delta = None
        if peek is None or not self.writer.started or self.writer.probs_wanted:
            return False
        says = peek.look(data, n)
        if says == SAYS_MORE or not self._first(data):
            return False
        p, size = data + peek.start, peek.stop - peek.start
        if memchr(p, 92, size) != NULL:
            if not usual_escapes(p, size):
                return False
            delta = fast_loads(p[:size])
        if says == SAYS_TEXT:
            self.writer.quoted_text(p, size, delta)
        elif says == SAYS_ARGUMENTS:
            key = self._call(data)
            if key is None:
                return False
            self.writer.quoted_arguments(key, p, size, delta)
        else:
            self._thinks()
            self.writer.quoted_thinking(p, size, delta)
        return True

    cdef object _call(self, const char* data):
        """Return the key of the tool call that a plain delta continues, None if that needs a closer look."""
        cdef DeltaPeek peek = self.peek
        cdef int number = 0
        if peek.index_stop:
            number = small_number(data + peek.index_start, peek.index_stop - peek.index_start)
        return None if number < 0 else number

    cdef int _thinks(self) except -1:
        """Note that a plain delta tells a thought."""
        return 0

    cdef bint _first(self, const char* data) noexcept:
        """Return whether a plain delta belongs to the choice that the client gets."""
        return True

    cdef int count(self) except -1:
        return 0

    def end(self, str fault):
        """End the stream."""
        self.close(fault)
        return self.writer.take()

    cdef int close(self, str fault) except -1:
        if self.writer.finished:
            return 0
        self.count()
        if fault is not None:
            return self._fail("api_error", fault)
        if self.stopped:
            return self.writer.finish()
        return self._fail("api_error", CUT)

    cdef int _event(self, str name, object event) except -1:
        raise NotImplementedError

    cdef int _fail(self, str kind, str message) except -1:
        self.failed = True
        return self.writer.fault(kind, message)

    cdef int _failed(self, str kind, object code, str message) except -1:
        cdef int status = 0
        if type(code) is int:
            status = code if 400 <= code < 600 else 0
        self.failed = True
        return self.writer.failed(kind, code if type(code) is str and code else None, status, message)

    cdef int _refused(self, object error) except -1:
        """An error as OpenAI's formats have it, and as servers in front of other providers tell theirs."""
        code = error.get("code") if isinstance(error, dict) else None
        return self._failed(error_type(error) or kind_of(None, code if type(code) is str else None, 0), code,
                            error_text(error, PROVIDER_ERROR))


cdef class CompletionsReader(EventReader):
    """chat.completion.chunk events."""

    def __cinit__(self):
        self.keys = {}
        self.unnamed = {}
        self.signatures = {}
        self.peek = delta_peek("completions")

    cdef bint _first(self, const char* data) noexcept:
        return first_number(data, self.peek)

    cdef object _call(self, const char* data):
        cdef DeltaPeek peek = self.peek
        cdef int number = 0
        if peek.call_stop:
            number = small_number(data + peek.call_start, peek.call_stop - peek.call_start)
        known = None if number < 0 else self.keys.get(number)
        return None if known is None else known[1]

    cdef int _event(self, str name, object event) except -1:
        cdef Writer out = self.writer
        if name == "[DONE]":
            return out.finish()
        if not isinstance(event, dict):
            raise Garbage("an event is not an object")
        if event.get("error") is not None:
            return self._refused(event["error"])
        usage = event.get("usage")
        if usage is not None:
            out.usage = completions_usage(usage) or out.usage
        if "service_tier" in event:
            out.service_tier = text_or_none(event, "service_tier") or None
        choices = a_list(event, "choices")
        if not out.started and (choices or text_or_none(event, "model")):
            # Some vendors send an event about the prompt first, in which the model is not named yet.
            out.start(text_or_none(event, "id"), text_or_none(event, "model"))
        if not choices:
            return 0
        choice = choices[0]
        for other in choices:
            # With several choices the client gets the first.
            if isinstance(other, dict) and is_first(other):
                choice = other
                break
        if not isinstance(choice, dict):
            raise Garbage("a choice is not an object")
        if not is_first(choice):
            return 0
        delta = an_object(choice, "delta")
        if delta is not None:
            self._thought(delta)
            content = delta.get("content")
            if isinstance(content, str):
                out.text(content)
            elif content is not None:
                self._content(content)
            if "refusal" in delta:
                out.refusal(a_text(delta, "refusal"))
            self._beside(delta)
            calls = a_list(delta, "tool_calls")
            if calls:
                for position, call in enumerate(calls):
                    if not isinstance(call, dict):
                        raise Garbage("a tool call is not an object")
                    self._tool_call(call, position)
        if out.probs_wanted and isinstance(choice.get("logprobs"), dict):
            out.probs(chat_probs(choice["logprobs"].get("content")))
        reason = choice.get("finish_reason")
        if isinstance(reason, str) and reason:
            if self.unnamed:
                raise Garbage("a tool call has no name")
            self.stopped = True
            out.stop(read_stop("completions", reason), None)
        return 0

    cdef int _beside(self, dict delta) except -1:
        """What stands beside the text: pictures, sound and citations."""
        cdef Writer out = self.writer
        if "audio" in delta:
            audio = an_object(delta, "audio")
            out.sound(PCM16, text_or_none(audio, "data"))
            out.text(text_or_none(audio, "transcript"))
        if "images" in delta:
            for image in a_list(delta, "images") or ():
                out.image(text_or_none(image.get("image_url") if isinstance(image, dict) else None, "url"))
        if "annotations" in delta:
            for annotation in a_list(delta, "annotations") or ():
                out.cite(url_annotation(annotation, 0))
        return 0

    cdef int _thought(self, dict delta) except -1:
        """Reasoning, by the names of the vendors; signatures by our own or by LiteLLM's."""
        cdef Writer out = self.writer
        thinking = delta.get("reasoning_content") or delta.get("reasoning")
        if isinstance(thinking, str):
            out.thinking(thinking)
        if "reasoning_details" in delta and "thinking_blocks" not in delta:
            self._details(a_list(delta, "reasoning_details") or [], not isinstance(thinking, str) or not thinking)
        if "reasoning_signature" in delta:
            out.signature(a_text(delta, "reasoning_signature"))
        elif "thinking_blocks" in delta:
            for block in a_list(delta, "thinking_blocks") or ():
                out.signature(text_or_none(block, "signature"))
                if text_or_none(block, "type") == "redacted_thinking":
                    out.redacted(text_or_none(block, "data"))
        return 0

    cdef int _details(self, list details, bint texts) except -1:
        """`reasoning_details`, in which OpenRouter tells thoughts. texts: nothing else tells their words."""
        cdef Writer out = self.writer
        for one in details:
            kind, form = text_or_none(one, "type"), text_or_none(one, "format")
            if kind == "reasoning.encrypted":
                if form == "openai-responses-v1":
                    # headgate.dialect.llm.idents.sealed()
                    out.redacted(f"headgate_sealed:{text_or_none(one, 'id')}:{text_or_none(one, 'data')}")
                elif form == "google-gemini-v1":
                    # Of the thought that led to the call with this id.
                    self._sign(text_or_none(one, "id"), text_or_none(one, "data"))
                elif (not form or form == "anthropic-claude-v1") and text_or_none(one, "data"):
                    out.redacted(text_or_none(one, "data"))
                continue
            if texts:
                out.thinking(text_or_none(one, "text") or text_or_none(one, "summary"))
            if not form or form == "anthropic-claude-v1":
                out.signature(text_or_none(one, "signature"))
        return 0

    cdef int _sign(self, str id, str signature) except -1:
        """Keep the signature of a thought for the call that it led to, which may have begun already."""
        self.signatures[id] = signature
        for known in self.keys.values():
            if id and known[0] == id:
                self.writer.sign_tool(known[1], signature)
        return 0

    cdef int _content(self, object content) except -1:
        """Content as an array of parts, which some vendors stream."""
        if not isinstance(content, list):
            raise Garbage("content is not a string")
        for part in content:
            if isinstance(part, dict) and part.get("type") == "text":
                self.writer.text(a_text(part, "text"))
        return 0

    cdef int _tool_call(self, dict call, Py_ssize_t position) except -1:
        cdef object index = call.get("index")
        cdef str id = a_text(call, "id")
        cdef dict function = an_object(call, "function")
        cdef dict custom = None
        cdef str name = None
        cdef str arguments = None
        if function is not None:
            name = a_text(function, "name")
            given = function.get("arguments")
            # Some vendors send the arguments as an object.
            arguments = dumps(given).decode() if isinstance(given, dict) else a_text(function, "arguments")
        else:
            custom = an_object(call, "custom")
            if custom is not None:
                name, arguments = a_text(custom, "name"), a_text(custom, "input")
        if type(index) is not int:
            index = position
        if id and id in self.signatures:
            id = f"{id}__thought__{self.signatures[id]}"
        elif "extra_content" in call:
            id = signed_id(call, id or f"call_{self.writer.ident}_{index}")
        known = self.keys.get(index)
        if known is not None and name and id and known[0] != id:
            # Vendors that give every call the index 0 tell them apart by id.
            known = None
        if known is None:
            waiting = self.unnamed.get(index)
            if not name:
                if waiting is None:
                    waiting = self.unnamed[index] = [id or ""]
                if arguments:
                    waiting.append(arguments)
                return 0
            if waiting is not None:
                del self.unnamed[index]
                id = id or waiting[0]
                arguments = "".join(waiting[1:]) + (arguments or "")
            known = self.keys[index] = (id, (index, id))
            if custom is None:
                self.writer.tool(known[1], id, name)
            else:
                self.writer.custom_tool(known[1], id, name)
        if arguments:
            self.writer.arguments(known[1], arguments)
        return 0


cdef class MessagesReader(EventReader):
    """Events of the Messages API."""

    def __cinit__(self):
        self.usage = {}
        self.uses = {}
        self.cited = []
        self.peek = delta_peek("messages")

    cdef object _call(self, const char* data):
        key = EventReader._call(self, data)
        return None if key in self.uses else key

    cdef int _count(self, object usage) except -1:
        """message_start has the count of the input, message_delta that of the output and possibly of the input again."""
        if isinstance(usage, dict):
            for name, value in (<dict>usage).items():
                if value is not None:
                    self.usage[name] = value
            self.writer.service_tier = tier_of_messages(usage.get("service_tier")) or self.writer.service_tier
            self.writer.usage = exclusive_usage(self.usage) or self.writer.usage
        return 0

    cdef int _event(self, str name, object event) except -1:
        cdef Writer out = self.writer
        if not isinstance(event, dict):
            raise Garbage("an event is not an object")
        kind = event.get("type", name)
        if kind == "content_block_delta":
            return self._block_delta(event)
        if kind == "content_block_start":
            return self._block_start(event)
        if kind == "content_block_stop":
            if self.cited:
                for citation in self.cited:
                    out.cite(messages_citation(citation, self.block_from, out.said))
                self.cited.clear()
            return out.close(a_key(event, "index"))
        if kind == "message_start":
            message = an_object(event, "message") or {}
            self._count(message.get("usage"))
            return out.start(text_or_none(message, "id"), text_or_none(message, "model"))
        if kind == "message_delta":
            self._count(event.get("usage"))
            delta = an_object(event, "delta") or {}
            if delta.get("stop_reason") is not None:
                self.stopped = True
                self._tell_uses(None, None)
                out.stop(read_stop("messages", delta["stop_reason"]), text_or_none(delta, "stop_sequence") or None)
            return 0
        if kind == "message_stop":
            return out.finish()
        if kind == "error":
            error = event.get("error")
            return self._failed(error_type(error) or "api_error", None, error_text(error, PROVIDER_ERROR))
        if "type" not in event and event.get("error") is not None:
            return self._refused(event["error"])
        return 0

    cdef int _block_start(self, dict event) except -1:
        cdef Writer out = self.writer
        cdef dict block = an_object(event, "content_block") or {}
        kind = block.get("type")
        if kind == "text":
            self.block_from = out.said
            out.text(a_text(block, "text"))
            self.cited += a_list(block, "citations") or ()
        elif kind == "thinking":
            out.thinking(a_text(block, "thinking"))
        elif kind == "redacted_thinking":
            out.redacted(a_text(block, "data"))
        elif is_ran(kind):
            self.uses[a_key(event, "index")] = [block]
        elif is_result(kind):
            self._tell_uses(text_or_none(block, "tool_use_id"), block)
        elif kind == "tool_use":
            key = a_key(event, "index")
            out.tool(key, a_text(block, "id"), a_text(block, "name") or "")
            if block.get("input"):
                out.arguments(key, dumps(block["input"]).decode())
        else:
            out.untold = True
        return 0

    cdef int _tell_uses(self, str id, dict result) except -1:
        """Tell of the tool with this id that it has run, or of all that have no result yet."""
        for key, (block, *pieces) in list(self.uses.items()):
            if id is None or block.get("id") == id:
                del self.uses[key]
                try:
                    given = loads("".join(pieces)) if pieces else block.get("input")
                except ValueError:
                    given = None
                self.writer.ran(messages_ran({**block, "input": given}, result))
        return 0

    cdef int _block_delta(self, dict event) except -1:
        cdef Writer out = self.writer
        cdef dict delta = an_object(event, "delta")
        if delta is None:
            raise Garbage("a delta is missing")
        kind = delta.get("type")
        if kind == "text_delta":
            out.text(a_text(delta, "text"))
        elif kind == "input_json_delta":
            key = a_key(event, "index")
            if key in self.uses:
                self.uses[key].append(a_text(delta, "partial_json") or "")
            else:
                out.arguments(key, a_text(delta, "partial_json"))
        elif kind == "thinking_delta":
            out.thinking(a_text(delta, "thinking"))
        elif kind == "signature_delta":
            out.signature(a_text(delta, "signature"))
        elif kind == "citations_delta":
            self.cited.append(delta.get("citation"))
        return 0
