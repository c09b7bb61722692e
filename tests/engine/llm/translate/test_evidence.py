"""Citations and tools that a vendor has run, between formats; whole and streamed replies are in the golden files."""

from __future__ import annotations

from typing import Any

import pytest

from headgate_engine.llm.translate import evidence
from headgate_engine.llm.translate.evidence import Citation, RanTool

ODD: list[Any] = [None, 3, "x", [], {}, {"type": 3}, {"type": "url_citation", "url_citation": 3, "start_index": -1}]


@pytest.mark.parametrize("odd", ODD)
def test_odd_members_are_left_out(odd: Any) -> None:
    assert evidence.messages_citation(odd, 0, 1) is None
    assert evidence.converse_citation(odd, 0, 1) is None
    found = evidence.url_annotation(odd, 2)
    assert found is None or (found.url, found.start, found.end) == ("", 2, 2)
    for name in ("groundingMetadata", "citationMetadata"):
        assert evidence.grounding_of({name: odd}, b"", "") == ([], None)
        held = {name: {key: odd for key in ("groundingChunks", "groundingSupports", "webSearchQueries", "citationSources")}}
        assert evidence.grounding_of(held, b"", "") == ([], None)
        held = {name: {key: [odd] for key in ("groundingChunks", "groundingSupports", "citationSources")}}
        assert evidence.grounding_of(held, b"", "") == ([], None)
    tool = evidence.messages_ran({"id": odd, "name": odd, "input": odd}, odd if isinstance(odd, dict) else None)
    assert isinstance(tool, RanTool)
    for kind in ("web_search_call", "code_interpreter_call", "mcp_call"):
        evidence.responses_ran({"type": kind, "action": odd, "outputs": odd, "code": odd, "id": odd})
    assert not evidence.is_ran(odd)
    assert not evidence.is_result(odd)


def test_places_in_documents_stay_among_formats_that_have_them() -> None:
    place = {"type": "page_location", "cited_text": "a", "document_index": 1, "start_page_number": 2, "end_page_number": 3}
    found = evidence.messages_citation(place, 4, 9)
    assert found is not None
    assert evidence.messages_citation_of(found) == place
    assert evidence.chat_annotation(found) is None
    assert evidence.responses_annotation(found, 0) is None
    page = evidence.converse_citation({"title": "D", "location": {"documentPage": {"documentIndex": 1, "start": 2, "end": 3}}}, 0, 1)
    assert page is not None
    assert page.place is not None
    assert (page.place["type"], page.place["start_page_number"], page.place["end_page_number"]) == ("page_location", 2, 3)


def test_a_search_result_with_a_url_is_told_as_one() -> None:
    place = {"type": "search_result_location", "source": "https://a.example", "title": "A", "cited_text": "a",
             "search_result_index": 0, "start_block_index": 0, "end_block_index": 1}  # fmt: skip
    found = evidence.messages_citation(place, 4, 9)
    assert found is not None
    told = evidence.chat_annotation(found)
    assert told is not None
    assert told["url_citation"] == {"start_index": 4, "end_index": 9, "url": "https://a.example", "title": "A"}
    assert evidence.messages_citation_of(found) == place


def test_annotations_are_counted_from_their_part() -> None:
    told = evidence.responses_annotation(Citation("https://a.example", "A", 12, 20), 10)
    assert told == {"type": "url_citation", "start_index": 2, "end_index": 10, "url": "https://a.example", "title": "A"}


def test_sources_of_gemini_outside_of_grounding() -> None:
    source = {"startIndex": 3, "endIndex": 4, "uri": "https://a.example"}
    [found], search = evidence.grounding_of({"citationMetadata": {"citationSources": [source]}}, "☃a".encode(), "")
    assert search is None
    assert (found.start, found.end, found.url) == (1, 2, "https://a.example")


@pytest.mark.parametrize(
    ("use", "result", "item"),
    [
        ({"name": "web_fetch", "input": {"url": "https://a.example"}},
         {"content": {"type": "web_fetch_result", "url": "https://a.example", "content": {"title": "A"}}},
         {"type": "web_search_call", "status": "completed", "action": {"type": "open_page", "url": "https://a.example"}}),
        ({"name": "web_search", "input": {"query": "q"}}, {"content": {"error_code": "unavailable"}},
         {"type": "web_search_call", "status": "failed", "action": {"type": "search", "query": "q", "sources": []}}),
        ({"name": "bash_code_execution", "input": {"command": "ls"}}, {"content": {"stdout": "a", "stderr": "b"}},
         {"type": "code_interpreter_call", "status": "completed", "code": "ls", "container_id": "",
          "outputs": [{"type": "logs", "logs": "ab"}]}),
        ({"name": "f", "server_name": "s", "input": {"a": 1}}, {"content": [{"type": "text", "text": "r"}]},
         {"type": "mcp_call", "status": "completed", "name": "f", "server_label": "s", "arguments": '{"a": 1}', "output": "r",
          "error": None}),
        ({"name": "f", "server_name": "s"}, {"is_error": True, "content": [{"type": "text", "text": "r"}]},
         {"type": "mcp_call", "status": "failed", "name": "f", "server_label": "s", "arguments": "{}", "output": None,
          "error": "r"}),
        ({"name": "tool_search_tool_regex"}, None, None),
    ],
)  # fmt: skip
def test_tools_of_messages_as_items_of_responses(use: dict[str, Any], result: Any, item: Any) -> None:
    made = evidence.responses_item(evidence.messages_ran(use, result), "1")
    assert made is None if item is None else made is not None and made.items() > item.items()


def test_tools_of_responses_and_gemini_as_blocks() -> None:
    opened = evidence.responses_ran({"type": "web_search_call", "action": {"type": "open_page", "url": "https://a.example"}})
    assert opened is not None
    assert opened.name == "web_fetch"
    assert evidence.messages_blocks(opened, "1") == []
    failed = evidence.code_ran("", "PYTHON", "1/0", {"outcome": "OUTCOME_FAILED", "output": "zero"})
    [use, result] = evidence.messages_blocks(failed, "1")
    assert (use["id"], use["input"]) == ("srvtoolu_1", {"code": "1/0"})
    assert (result["content"]["stderr"], result["content"]["return_code"]) == ("zero", 1)
