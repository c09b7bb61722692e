"""What a request may come to: bounds of answers in any place, definitions, and bodies that are no JSON."""

from __future__ import annotations

import json
import random
import re
from typing import Any

import pytest

from headgate_engine.llm.bounds import DEFINITIONS, PLACES, worst_of
from headgate_engine.llm.estimate import tokens_of_document

# The same by regular expressions, as an oracle.
BOUNDS = re.compile(
    rb'"(?:max_tokens|max_completion_tokens|max_output_tokens|maxOutputTokens|maxTokens)"[ \t\r\n]*:[ \t\r\n]*(\d{1,12})(?!\d)'
)
CHOICES = re.compile(rb'"(?:n|best_of|candidateCount)"[ \t\r\n]*:[ \t\r\n]*(\d{1,4})(?!\d)')
PIECES = (
    b'"', b'"max_tokens"', b'"max_completion_tokens":', b'"max_output_tokens" : ', b'"maxOutputTokens"\n:\t', b'"maxTokens"',
    b'"n"', b'"n":', b'"best_of":', b'"candidateCount":', b":", b" ", b"\r\n", b"\v", b"7", b"4096", b"99999", b"123456789012",
    b"1234567890123", b"-1", b"1.5", b"x", b"max", b'\\"max_tokens\\":', b'"m', b'"b', b'"c', b'"', b"\xff", b"\0",
)  # fmt: skip


def raw(body: bytes) -> tuple[int, int]:
    """What a body says that has no document."""
    _, _, _, most, choices, _ = worst_of("unknown", body, None)
    return most, choices


def by_patterns(body: bytes) -> tuple[int, int]:
    return max(map(int, BOUNDS.findall(body)), default=0), max(map(int, CHOICES.findall(body)), default=0)


def test_bounds_are_found_wherever_they_stand_as_by_regular_expressions() -> None:
    chance = random.Random(7)
    for _ in range(20_000):
        body = b"".join(chance.choices(PIECES, k=chance.randrange(12)))
        assert raw(body) == by_patterns(body), body


def test_a_long_body_is_looked_through_to_its_last_byte() -> None:
    text = b'{"messages": [' + b'{"content": "word"}, ' * 20_000
    assert worst_of("completions", text + b'"n": 3}], "n": 5, "n": 4, "tools": [{"n": 9}]}', {})[4] == 5
    assert raw(text + b'"max_tokens": 4096') == (4096, 0)
    assert raw(text + b'"max_tokens": 4096, "n": 3}') == (4096, 3)
    assert raw(text + b'"max_tokens"' + b" " * 100_000 + b":" + b"\n" * 100_000 + b"12") == (12, 0)


@pytest.mark.parametrize("form", sorted(PLACES))
def test_a_bound_counts_in_the_place_where_providers_read_it(form: str) -> None:
    outer, bounds, counts = PLACES[form]
    for name in bounds:
        # Escaped, so that only who reads the JSON finds it.
        escaped = f"\\u{ord(name[0]):04x}{name[1:]}"
        for spelling, value in (("1e3", 1000), ('"1000"', 1000), ("-1", 0), ("true", 0), ("1e30", 10**12)):
            text = f'{{"{escaped}": {spelling}}}'
            text = f'{{"{outer[0]}": {text}}}' if outer else text
            assert worst_of(form, text.encode(), json.loads(text))[2] == value
    for name in counts:
        found: dict[str, Any] = {name: 3}
        found = {outer[0]: found} if outer else found
        assert worst_of(form, json.dumps(found).encode(), found)[4] == 3


def test_a_bound_in_another_place_bounds_nothing_and_is_told_beside() -> None:
    document = {"metadata": {"max_tokens": 5, "n": 2}, "max_tokens": 0}
    assert worst_of("completions", json.dumps(document).encode(), document)[2:5] == (0, 5, 0)


def test_definitions_count_beside_the_prompt_s_texts() -> None:
    schema = {"type": "object", "properties": {f"p{at}": {"type": ["string", "null"], "default": at / 2} for at in range(3000)}}
    for name in DEFINITIONS:
        document = {"messages": [{"role": "user", "content": "hello there"}], name: [{"parameters": schema, "strict": True}]}
        body = json.dumps(document).encode()
        prompt, beside, *bounds, _ = worst_of("completions", body, document)
        assert prompt == tokens_of_document("completions", document)
        # The last member of each object and list counts a comma too many.
        assert 0 <= beside - len(json.dumps(document[name])) // 3 < 2 * 3000
        assert bounds == [0, 0, 0]


@pytest.mark.parametrize(("form", "part"), [
    ("completions", {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}),
    ("messages", {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}),
    ("responses", {"type": "input_image", "image_url": "https://a.test/a.png"}),
    ("gemini", {"inlineData": {"mimeType": "image/png", "data": "AAAA"}}),
    ("converse", {"image": {"format": "png", "source": {"bytes": "AAAA"}}}),
])
def test_pictures_count_beside_the_prompt_s_texts(form: str, part: dict[str, Any]) -> None:
    outer = {"responses": "input", "gemini": "contents"}.get(form, "messages")
    inner = "parts" if form == "gemini" else "content"
    text = {"text": "image"} if form in ("gemini", "converse") else {"type": "text", "text": "image_url"}
    document = {outer: [{"role": "user", inner: [text, part]}, {"role": "user", inner: [part, part]}], "metadata": [part]}
    assert worst_of(form, json.dumps(document).encode(), document)[5] == (3, 0, 0, 0, False)


def test_answers_are_counted_where_providers_read_how_many_there_may_be() -> None:
    """A schema may have a member of the same name, and a body may say it twice."""
    schema = {"type": "object", "default": {"n": 50, "best_of": 60}, "properties": {"n": {"type": "integer", "const": 70}}}
    document = {"n": 2, "tools": [{"type": "function", "function": {"name": "n", "parameters": schema}}], "prompt": ["a", "b", "c"]}
    body = json.dumps(document).encode()
    assert worst_of("completions", body, document)[4] == 2
    # Each prompt has so many answers; one of tokens is one prompt.
    assert worst_of("text", body, document)[4] == 6
    assert [worst_of("text", b"{}", {"prompt": one})[4] for one in ([1, 2, 3], [[1, 2], [3]], "a", [])] == [1, 2, 1, 1]
    for text, found in (
        ('{"n": 1, "n": 3}', 3), ('{"text": "\\"n\\": 8", "n" : 4}', 4), ('{"a": {"n": 8}}', 0), ('[{"n": 8}]', 0),
        ('{"a": "{", "n": 2}', 2), ('{"a": ["\\\\"], "n": 2}', 2), ('{"a": [[], {}], "best_of": 6, "n": 2}', 6),
    ):  # fmt: skip
        told = json.loads(text)
        assert worst_of("completions", text.encode(), told)[4] == (found if isinstance(told, dict) else 8), text
    inner = {"generationConfig": {"candidateCount": 4}, "tools": [{"a": {"b": {"candidateCount": 9}}}]}
    assert worst_of("gemini", json.dumps(inner).encode(), inner)[4] == 4


WAV, MP3, PDF = "UklGR" + "A" * 39_995, "SUQz" + "A" * 39_996, "JVBERi" + "A" * 3_994
PARTS: list[tuple[str, Any, tuple[int, int, int, int]]] = [
    ("completions", {"type": "input_audio", "input_audio": {"format": "wav", "data": WAV}}, (0, 121, 0, 0)),
    ("completions", {"type": "input_audio", "input_audio": {"format": "wav", "data": MP3}}, (0, 1305, 0, 0)),
    ("responses", {"type": "input_audio", "input_audio": {"format": "mp3", "data": MP3}}, (0, 1305, 0, 0)),
    ("completions", {"type": "file", "file": {"file_data": "data:application/pdf;base64," + PDF}}, (0, 0, 3001, 0)),
    ("completions", {"type": "file", "file": {"file_id": "file-1"}}, (0, 0, 0, 1)),
    ("responses", {"type": "input_file", "file_data": "data:text/plain;base64," + "A" * 4000}, (0, 0, 1001, 0)),
    ("responses", {"type": "input_file", "file_url": "https://a.test/a.pdf"}, (0, 0, 0, 1)),
    ("messages", {"type": "document", "source": {"type": "base64", "data": PDF}}, (0, 0, 3001, 0)),
    ("messages", {"type": "document", "source": {"type": "url", "url": "https://a.test/a.pdf"}}, (0, 0, 0, 1)),
    ("messages", {"type": "document", "source": {"type": "content", "content": [{"type": "image"}, {"type": "text"}]}}, (1, 0, 0, 0)),
    ("messages", {"type": "tool_result", "content": [{"type": "image"}]}, (1, 0, 0, 0)),
    ("gemini", {"inlineData": {"mimeType": "audio/mp3", "data": MP3}}, (0, 1305, 0, 0)),
    ("gemini", {"inline_data": {"mime_type": "video/mp4", "data": MP3}}, (0, 1305, 0, 0)),
    ("gemini", {"inlineData": {"mimeType": "application/pdf", "data": PDF}}, (0, 0, 3001, 0)),
    ("gemini", {"fileData": {"mimeType": "video/mp4", "fileUri": "https://a.test/a"}}, (0, 0, 0, 1)),
    ("converse", {"document": {"format": "pdf", "source": {"bytes": PDF}}}, (0, 0, 3001, 0)),
    ("converse", {"video": {"source": {"s3Location": {"uri": "s3://a"}}}}, (0, 0, 0, 1)),
    ("converse", {"audio": {"source": {"bytes": MP3}}}, (0, 1305, 0, 0)),
    ("converse", {"toolResult": {"content": [{"image": {}}]}}, (1, 0, 0, 0)),
]


@pytest.mark.parametrize(("form", "part", "counts"), PARTS)
def test_sound_and_files_count_by_their_size_or_as_named(form: str, part: dict[str, Any], counts: tuple[int, int, int, int]) -> None:
    outer = {"responses": "input", "gemini": "contents"}.get(form, "messages")
    inner = "parts" if form == "gemini" else "content"
    document = {outer: [{"role": "user", inner: [part, {"text": "input_audio"}]}]}
    assert worst_of(form, json.dumps(document).encode(), document)[5] == (*counts, False)


def test_earlier_turns_are_named_and_answers_may_be_sound() -> None:
    def media(form: str, **document: Any) -> tuple[int, int, int, int, bool]:
        return worst_of(form, json.dumps(document).encode(), document)[5]

    assert media("responses", previous_response_id="resp_1", input="hi") == (0, 0, 0, 1, False)
    assert media("responses", previous_response_id=None, input="hi") == (0, 0, 0, 0, False)
    assert media("gemini", cachedContent="cachedContents/1")[3] == 1
    assert [media("completions", modalities=["text", "audio"])[4], media("completions", audio={"voice": "a"})[4]] == [True, True]
    assert media("gemini", generationConfig={"responseModalities": ["AUDIO"]})[4]
    assert not media("completions", modalities=["text"])[4]


def test_what_the_provider_stores_is_named_and_its_variables_count() -> None:
    picture = {"type": "input_image", "image_url": "data:image/png;base64," + "A" * 90_000}
    prompt = {"id": "pmpt_1", "variables": {"a": "b" * 3000, "b": {"type": "input_text", "text": "b" * 3000}, "c": picture}}
    for document, counts in (
        ({"prompt": prompt, "input": "hi"}, (1, 0, 0, 1)), ({"prompt": {"id": "pmpt_1"}}, (0, 0, 0, 1)),
        ({"prompt": "hi"}, (0, 0, 0, 0)), ({"input": [{"type": "item_reference", "id": "msg_1"}]}, (0, 0, 0, 1)),
    ):  # fmt: skip
        _, beside, *_, media = worst_of("responses", json.dumps(document).encode(), document)
        assert media == (*counts, False), document
        assert beside // 1000 == (2 if document.get("prompt") is prompt else 0)
    document = {"messages": [], "promptVariables": {"a": {"text": "b" * 3000}}}
    _, beside, *_, media = worst_of("converse", json.dumps(document).encode(), document)
    assert (beside // 1000, media) == (1, (0, 0, 0, 1, False))


def test_texts_that_are_tokens_already_are_counted() -> None:
    assert worst_of("embeddings", b"", {"input": [[1] * 500, [2] * 500]})[1] == 1000
    assert worst_of("text", b"", {"prompt": [1] * 500})[1] == 500


def test_a_form_has_sound_or_pictures() -> None:
    def form(*parts: bytes) -> bytes:
        return b"".join(b"--b\r\nContent-Disposition: form-data; " + part + b"\r\n" for part in parts) + b"--b--\r\n"

    picture = b'name="image"; filename="a.png"\r\nContent-Type: image/png\r\n\r\nPNG'
    count = b'name="n"\r\n\r\n3'
    assert worst_of("detect", form(picture, picture, count), None)[4:] == (3, (2, 0, 0, 0, False))
    # Fields of a part may stand in any order, and a name may stand there twice.
    several = form(b'name="n"\r\n\r\n1', b'name="n"\r\nContent-Type: text/plain\r\n\r\n7', b'name="n"\r\n\r\nx')
    assert worst_of("detect", several, None)[4] == 7
    body = form(b'name="file"; filename="a.mp3"\r\nContent-Type: audio/mpeg\r\n\r\n' + b"A" * 46_000)
    assert worst_of("passthrough", body, None)[5] == (0, len(body) // 23 + 1, 0, 0, False)
    body = form(b'name="file"; filename="a.wav"\r\n\r\nRIFF' + b"A" * 46_000)
    assert worst_of("passthrough", body, None)[5] == (0, len(body) // 250 + 1, 0, 0, False)


def test_what_is_no_json_counts_with_all_of_its_bytes() -> None:
    body = b'{"messages": [' + b"x" * 3000
    assert worst_of("completions", body, None) == (0, len(body) // 3, 0, 0, 0, (0, 0, 0, 0, False))
    assert worst_of("embeddings", body, None)[1] == 0
