"""Citations and tools that a vendor has run, between formats; see evidence.pxd. They are rare beside text.

Members that are missing or of a wrong type are left out: nothing relies on them.
"""

import json

cdef object RESULT_KINDS = frozenset((
    "web_search_tool_result", "web_fetch_tool_result", "code_execution_tool_result", "bash_code_execution_tool_result",
    "text_editor_code_execution_tool_result", "tool_search_tool_result", "mcp_tool_result",
))
cdef object RAN_KINDS = frozenset(("server_tool_use", "mcp_tool_use"))
# Kinds of places in documents that Messages tell.
cdef object PLACES = frozenset(("char_location", "page_location", "content_block_location", "search_result_location"))
# Converse's locations: the kind in Messages, and the names of the first and the last index there.
cdef dict CONVERSE_PLACES = {
    "documentChar": ("char_location", "start_char_index", "end_char_index"),
    "documentPage": ("page_location", "start_page_number", "end_page_number"),
    "documentChunk": ("content_block_location", "start_block_index", "end_block_index"),
}
cdef str SEARCH = "web_search"
cdef str FETCH = "web_fetch"
cdef object CODE = frozenset(("code_execution", "bash_code_execution"))


cdef class Citation:
    def __init__(self, str url not None, str title not None, Py_ssize_t start, Py_ssize_t end, str quoted="",
                 dict place=None):
        self.url, self.title, self.quoted = url, title, quoted or ""
        self.start, self.end = start, end
        self.place = place


cdef class RanTool:
    def __init__(self, str id not None, str name not None, dict input not None, *, list sources=None, str output="",
                 bint failed=False):
        self.id, self.name, self.server, self.output = id, name, "", output or ""
        self.input = input
        self.sources = [] if sources is None else sources
        self.failed = failed


cdef str told_in(object holder, str name):
    """The member if it is a string, else an empty one."""
    found = (<dict>holder).get(name) if isinstance(holder, dict) else None
    return <str>found if isinstance(found, str) else ""


cdef dict a_dict(object holder, str name):
    """The member if it is an object, else {}."""
    found = (<dict>holder).get(name) if isinstance(holder, dict) else None
    return <dict>found if isinstance(found, dict) else {}


cdef list a_row(object holder, str name):
    """The objects in the member if it is an array, else []."""
    found = (<dict>holder).get(name) if isinstance(holder, dict) else None
    return [one for one in <list>found if isinstance(one, dict)] if isinstance(found, list) else []


cdef Py_ssize_t a_count(object holder, str name, Py_ssize_t otherwise) except -1:
    found = (<dict>holder).get(name) if isinstance(holder, dict) else None
    return <Py_ssize_t>found if type(found) is int and 0 <= found < 1 << 40 else otherwise


def is_ran(kind):
    return isinstance(kind, str) and kind in RAN_KINDS


def is_result(kind):
    return isinstance(kind, str) and kind in RESULT_KINDS


# -- what providers say --------------------------------------------------------------------------------------------------------
def messages_citation(value, Py_ssize_t start, Py_ssize_t end):
    kind = told_in(value, "type")
    quoted = told_in(value, "cited_text")
    if kind == "web_search_result_location":
        return Citation(told_in(value, "url"), told_in(value, "title"), start, end, quoted)
    if kind not in PLACES:
        return None
    url = told_in(value, "source") if kind == "search_result_location" else ""
    title = told_in(value, "title") or told_in(value, "document_title")
    return Citation(url if "://" in url else "", title, start, end, quoted, value)


def url_annotation(value, Py_ssize_t base):
    if told_in(value, "type") != "url_citation":
        return None
    told = a_dict(value, "url_citation") or value
    start = a_count(told, "start_index", 0)
    end = a_count(told, "end_index", start)
    return Citation(told_in(told, "url"), told_in(told, "title"), base + start, base + end,
                    told_in(told, "content"))


def converse_citation(value, Py_ssize_t start, Py_ssize_t end):
    title = told_in(value, "title")
    quoted = "".join([told_in(one, "text") for one in a_row(value, "sourceContent")])
    location = a_dict(value, "location")
    url = told_in(a_dict(location, "web"), "url")
    if url:
        return Citation(url, title, start, end, quoted)
    for name, (kind, first, last) in CONVERSE_PLACES.items():
        if name in location:
            told = a_dict(location, name)
            return Citation("", title, start, end, quoted, {
                "type": kind, "cited_text": quoted, "document_index": a_count(told, "documentIndex", 0),
                "document_title": title or None, first: a_count(told, "start", 0), last: a_count(told, "end", 0)})
    return None


def grounding_of(dict candidate not None, bytes text not None, str ident not None):
    cdef list found = []
    grounding = a_dict(candidate, "groundingMetadata")
    chunks = [a_dict(one, "web") or a_dict(one, "retrievedContext") or a_dict(one, "maps")
              for one in a_row(grounding, "groundingChunks")]
    for support in a_row(grounding, "groundingSupports"):
        segment = a_dict(support, "segment")
        first = a_count(segment, "startIndex", 0)
        last = a_count(segment, "endIndex", first)
        start = len(text[:first].decode("utf-8", "replace"))
        end = len(text[:last].decode("utf-8", "replace"))
        indices = support.get("groundingChunkIndices")
        for index in indices if isinstance(indices, list) else ():
            if type(index) is int and 0 <= index < len(chunks) and told_in(chunks[index], "uri"):
                found.append(Citation(told_in(chunks[index], "uri"), told_in(chunks[index], "title"), start, end,
                                      told_in(segment, "text")))
    for source in a_row(a_dict(candidate, "citationMetadata"), "citationSources"):
        if told_in(source, "uri"):
            first = a_count(source, "startIndex", 0)
            last = a_count(source, "endIndex", first)
            found.append(Citation(told_in(source, "uri"), told_in(source, "title"),
                                  len(text[:first].decode("utf-8", "replace")), len(text[:last].decode("utf-8", "replace"))))
    queries = grounding.get("webSearchQueries")
    if not isinstance(queries, list) or not queries:
        return found, None
    query = "; ".join([one for one in queries if isinstance(one, str)])
    sources = [(told_in(one, "uri"), told_in(one, "title")) for one in chunks if told_in(one, "uri")]
    return found, RanTool(ident, SEARCH, {"query": query}, sources=sources)


def messages_ran(dict use not None, result):
    cdef list sources = []
    cdef list printed = []
    found = result.get("content") if isinstance(result, dict) else None
    if isinstance(found, list):
        for one in found:
            if told_in(one, "url"):
                sources.append((told_in(one, "url"), told_in(one, "title")))
            elif told_in(one, "text"):
                printed.append(told_in(one, "text"))
    elif isinstance(found, dict):
        if told_in(found, "url"):
            sources.append((told_in(found, "url"), told_in(a_dict(found, "content"), "title")))
        printed += [told_in(found, "stdout"), told_in(found, "stderr")]
    failed = (isinstance(result, dict) and result.get("is_error") is True or isinstance(found, dict)
              and bool(told_in(found, "error_code")))
    tool = RanTool(told_in(use, "id"), told_in(use, "name"), a_dict(use, "input"), sources=sources,
                   output="".join(printed), failed=failed)
    tool.server = told_in(use, "server_name")
    return tool


def responses_ran(dict item not None):
    kind, id = told_in(item, "type"), told_in(item, "id")
    failed = told_in(item, "status") == "failed"
    if kind == "web_search_call":
        action = a_dict(item, "action")
        sources = [(told_in(one, "url"), told_in(one, "title")) for one in a_row(action, "sources")
                   if told_in(one, "url")]
        if told_in(action, "type") == "open_page":
            return RanTool(id, FETCH, {"url": told_in(action, "url")}, failed=failed)
        return RanTool(id, SEARCH, {"query": told_in(action, "query")}, sources=sources, failed=failed)
    if kind == "code_interpreter_call":
        printed = "".join([told_in(one, "logs") for one in a_row(item, "outputs")])
        return RanTool(id, "code_execution", {"code": told_in(item, "code")}, output=printed, failed=failed)
    return None


def code_ran(str id not None, str language not None, str code not None, result):
    outcome = told_in(result, "outcome")
    return RanTool(id, "code_execution", {"code": code}, output=told_in(result, "output"),
                   failed=outcome not in ("", "OUTCOME_OK"))


# -- what clients are told -----------------------------------------------------------------------------------------------------
def chat_annotation(Citation citation not None):
    if not citation.url:
        return None
    return {"type": "url_citation", "url_citation": {
        "start_index": citation.start, "end_index": citation.end, "url": citation.url, "title": citation.title}}


def responses_annotation(Citation citation not None, Py_ssize_t base):
    if not citation.url:
        return None
    return {"type": "url_citation", "start_index": max(citation.start - base, 0), "end_index": max(citation.end - base, 0),
            "url": citation.url, "title": citation.title}


def messages_citation_of(Citation citation not None):
    if citation.place is not None:
        return citation.place
    # Only Anthropic can make an index; an empty one says that nobody has.
    return {"type": "web_search_result_location", "url": citation.url, "title": citation.title or None,
            "cited_text": citation.quoted, "encrypted_index": ""}


def converse_citation_of(Citation citation not None):
    told = {"title": citation.title} if citation.title else {}
    if citation.quoted:
        told["sourceContent"] = [{"text": citation.quoted}]
    if citation.url and citation.place is None:
        return {**told, "location": {"web": {"url": citation.url}}}
    kind = told_in(citation.place, "type")
    if kind == "search_result_location":
        return {**told, "source": told_in(citation.place, "source"), "location": {"searchResultLocation": {
            "searchResultIndex": a_count(citation.place, "search_result_index", 0),
            "start": a_count(citation.place, "start_block_index", 0),
            "end": a_count(citation.place, "end_block_index", 0)}}}
    for name, (known, first, last) in CONVERSE_PLACES.items():
        if kind == known:
            told["location"] = {name: {
                "documentIndex": a_count(citation.place, "document_index", 0),
                "start": a_count(citation.place, first, 0), "end": a_count(citation.place, last, 0)}}
    return told


def messages_blocks(RanTool tool not None, str ident not None):
    id = f"srvtoolu_{ident}"
    use = {"type": "server_tool_use", "id": id, "name": tool.name, "input": tool.input}
    if tool.name == SEARCH:
        found = [{"type": "web_search_result", "url": url, "title": title, "encrypted_content": "", "page_age": None}
                 for url, title in tool.sources]
        failed = {"type": "web_search_tool_result_error", "error_code": "unavailable"}
        return [use, {"type": "web_search_tool_result", "tool_use_id": id, "content": failed if tool.failed else found}]
    if tool.name in CODE:
        printed = {"type": "code_execution_result", "stdout": "" if tool.failed else tool.output,
                   "stderr": tool.output if tool.failed else "", "return_code": int(tool.failed), "content": []}
        return [{**use, "name": "code_execution"},
                {"type": "code_execution_tool_result", "tool_use_id": id, "content": printed}]
    return []


def responses_item(RanTool tool not None, str ident not None):
    status = "failed" if tool.failed else "completed"
    if tool.server:
        return {"id": f"mcp_{ident}", "type": "mcp_call", "status": status, "name": tool.name, "server_label": tool.server,
                "arguments": json.dumps(tool.input), "output": None if tool.failed else tool.output,
                "error": tool.output if tool.failed else None}
    if tool.name == SEARCH or tool.name == FETCH:
        sources = [{"type": "url", "url": url} for url, _ in tool.sources]
        action = ({"type": "search", "query": told_in(tool.input, "query"), "sources": sources}
                  if tool.name == SEARCH else {"type": "open_page", "url": told_in(tool.input, "url")})
        return {"id": f"ws_{ident}", "type": "web_search_call", "status": status, "action": action}
    if tool.name in CODE:
        code = told_in(tool.input, "code") or told_in(tool.input, "command")
        return {"id": f"ci_{ident}", "type": "code_interpreter_call", "status": status, "code": code, "container_id": "",
                "outputs": [{"type": "logs", "logs": tool.output}] if tool.output else []}
    return None
