"""Formats of LLM clients by path; see formats.pxd."""

import re

from libc.string cimport memcmp

from headgate_engine.context.headers cimport MessageHead

cdef extern from "<string.h>" nogil:
    void* memmem(const void* haystack, size_t n, const void* needle, size_t m)

cdef extern from *:
    """
    #ifndef _GNU_SOURCE
    void *memmem(const void *, size_t, const void *, size_t);
    #endif
    """

from urllib.parse import parse_qsl, quote, unquote, unquote_to_bytes

# Realtime is in it because a WebSocket to that path can be nothing else.
DEFAULT_ROUTES = {
    "/v1/chat/completions": "completions",
    "/v1/completions": "text",
    "/v1/responses": "responses",
    "/v1/responses/compact": "detect",
    "/v1/messages": "messages",
    "/v1/messages/count_tokens": "count_tokens",
    "/v1/embeddings": "embeddings",
    "/v1/rerank": "rerank",
    "/v2/rerank": "rerank",
    "/v1/realtime": "realtime",
    "/v1/images/generations": "detect",
    "/v1/images/edits": "detect",
    "/v1/images/variations": "detect",
    ":rawPredict": "messages",
    ":streamRawPredict": "messages",
    ":generateContent": "gemini",
    ":streamGenerateContent": "gemini",
    ":countTokens": "gemini_count_tokens",
    "/converse": "converse",
    "/converse-stream": "converse",
    "*": "passthrough",
}

# What stands behind a deployment in Azure's paths, and behind a resource, where it is what other vendors' clients ask for
# (https://learn.microsoft.com/azure/ai-foundry/openai/reference). All else goes on as it is.
AT_DEPLOYMENTS = frozenset((b"chat/completions", b"completions", b"embeddings"))
AT_RESOURCES = frozenset((b"chat/completions", b"completions", b"embeddings", b"responses", b"realtime"))


# Google's clients write a slash in a name as it is (`acme/claude`). Names of Google's own models have none.
GOOGLE_NAME = re.compile(rb"/v1(?:alpha|beta)?\d*/models/((?:(?!\.{1,2}/)[^/]+/)+[^/]+):[A-Za-z]+")
GOOGLE_VERBS = (b":generateContent", b":streamGenerateContent", b":countTokens", b":embedContent", b":batchEmbedContents")
# What Bedrock's own clients ask of a model.
BEDROCK_VERBS = (b"/converse", b"/converse-stream", b"/invoke", b"/invoke-with-response-stream", b"/count-tokens")


cdef class RouteMap:
    def __init__(self, dict routes):
        rest = routes.get("*", "completions")
        named = [(suffix.encode(), kind) for suffix, kind in routes.items() if suffix != "*"]
        self.suffixes = tuple(sorted(named, key=lambda one: -len(one[0])))
        self.plain = tuple((suffix.lower(), kind) for suffix, kind in self.suffixes)
        # Clients may leave out the version, which stands in the base URL of most providers.
        self.unversioned = {suffix[3:].lower(): kind for suffix, kind in self.suffixes if suffix.startswith(b"/v1/")}
        self.rest = rest

    cdef str find(self, const char* path, Py_ssize_t n):
        cdef str found = self.named(path, n)
        return self.rest if found is None else found

    cdef str named(self, const char* path, Py_ssize_t n):
        cdef str found = named_at(self.suffixes, path, n)
        cdef bytes plain
        if found is None and n > 1:
            # Providers may read a path in more than one spelling: what they take for a format must not pass as none.
            plain = plainly(path[:n])
            found = named_at(self.plain, plain, len(plain))
            if found is None:
                found = self.unversioned.get(plain)
        return found

    def format_of(self, str path):
        raw = path.encode("utf-8", "surrogateescape")
        return self.find(raw, len(raw))


cdef str ending(tuple suffixes, const char* path, Py_ssize_t n):
    """What stands beside the first suffix that the path ends in."""
    cdef bytes suffix
    cdef Py_ssize_t length
    for entry in suffixes:
        suffix = <bytes>(<tuple>entry)[0]
        length = len(suffix)
        if length <= n and memcmp(path + n - length, <const char*>suffix, length) == 0:
            return <str>(<tuple>entry)[1]
    return None


cdef str named_at(tuple suffixes, const char* path, Py_ssize_t n):
    """The same for formats; that of Bedrock's clients has a model in front of its verb."""
    cdef str found = ending(suffixes, path, n)
    return None if found == "converse" and memmem(path, n, b"/model/", 7) == NULL else found


cdef bytes plainly(bytes path):
    """The path as lenient servers read it: decoded, in small letters, without empty or dotted segments and parameters."""
    cdef list segments = []
    for _ in range(3):
        if b"%" not in path:
            break
        path = unquote_to_bytes(path)
    for segment in path.replace(b"\\", b"/").split(b"/"):
        segment = segment.partition(b";")[0].partition(b"?")[0].partition(b"#")[0].strip()
        if segment == b"..":
            if segments:
                segments.pop()
        elif segment and segment != b".":
            segments.append(segment)
    return b"/" + b"/".join(segments).lower()


cdef tuple model_span(bytes path):
    cdef Py_ssize_t start, stop
    if memmem(<const char*>path, len(path), b"odel", 4) == NULL:
        return None                  # none of the names below
    if path.endswith(GOOGLE_VERBS) and (named := GOOGLE_NAME.fullmatch(path)) is not None:
        return named.span(1)
    # Vertex publishers and Gemini; tuned models have a collection of their own.
    for marker in (b"/models/", b"/tunedModels/"):
        start = path.rfind(marker)
        if start >= 0:
            start += len(marker)
            stop = path.rfind(b":")
            return (start, stop) if stop > start and b"/" not in path[start:] else None
    start = path.find(b"/model/")
    if start < 0:
        return None
    start += len(b"/model/")
    stop = path.find(b"/", start)
    # One verb stands behind it: what else does is no path of that kind, and may lead elsewhere.
    return (start, stop) if stop > start and b"/" not in path[stop + 1:] else None


cdef bytes without(bytes query, bytes name):
    """The query without the members of that name; one that is escaped is the same name."""
    if name not in query and b"%" not in query:
        return query
    kept = [part for part in query[1:].split(b"&") if unquote_to_bytes(part.partition(b"=")[0]) != name]
    return b"?" + b"&".join(kept) if kept else b""


cdef bint wants_events(MessageHead head) except -1:
    return dict(parse_qsl(head.query.lstrip("?"))).get("alt") == "sse"


cdef bytes quoted(str model):
    return quote(model, safe="").encode()


cdef bytes with_model(bytes query, str model):
    """The query with the model in place of the client's."""
    found = []
    for part in query[1:].split(b"&") if query else []:
        if part.partition(b"=")[0] == b"model":
            part = b"model=" + quoted(model)
        found.append(part)
    return b"?" + b"&".join(found) if found else query


cdef tuple azure_target(bytes path, bytes query):
    cdef bytes rest, model
    if not path.startswith(b"/openai/"):
        return None
    rest = path[8:]
    model = None
    if rest.startswith(b"deployments/"):
        name, _, rest = rest[12:].partition(b"/")
        model = unquote(name.decode("latin-1")).encode("utf-8", "replace")
        if not model or rest not in AT_DEPLOYMENTS:
            return None
    else:
        rest = rest.removeprefix(b"v1/")
        if rest not in AT_RESOURCES or b"api-version=" not in query:
            return None
    query = without(query, b"api-version")
    if rest == b"realtime":
        parts = [part if not part.startswith(b"deployment=") else b"model=" + part[11:] for part in query[1:].split(b"&")]
        query = b"?" + b"&".join(parts) if query else query
    return model, b"/v1/" + rest + query
