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
    _, _, _, most, choices = worst_of("unknown", body, None)
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
    assert worst_of("completions", json.dumps(document).encode(), document)[2:] == (0, 5, 2)


def test_definitions_count_beside_the_prompt_s_texts() -> None:
    schema = {"type": "object", "properties": {f"p{at}": {"type": ["string", "null"], "default": at / 2} for at in range(3000)}}
    for name in DEFINITIONS:
        document = {"messages": [{"role": "user", "content": "hello there"}], name: [{"parameters": schema, "strict": True}]}
        body = json.dumps(document).encode()
        prompt, beside, *bounds = worst_of("completions", body, document)
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
    assert worst_of(form, json.dumps(document).encode(), document)[1] == 3 * 1600


def test_what_is_no_json_counts_with_all_of_its_bytes() -> None:
    body = b'{"messages": [' + b"x" * 3000
    assert worst_of("completions", body, None) == (0, len(body) // 3, 0, 0, 0)
    assert worst_of("embeddings", body, None)[1] == 0
