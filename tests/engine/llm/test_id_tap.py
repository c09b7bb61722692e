"""Ids in answers: those at names of ids are sealed, wherever the bytes are cut, and nothing else is touched."""

from __future__ import annotations

import json

import pytest

from headgate_drivers.llm import sealed_text


def test_names_are_ids_at_google_only() -> None:
    text = b'{"name":"file-a","uri":"file-b","downloadUri":"file-c","displayName":"file-d","cachedContent":"file-e","fileName":"file-f"}'
    assert sealed_text([text], Marks(), b"!") == text
    told = text
    for letter in "abcef":
        told = told.replace(f'"file-{letter}"'.encode(), f'"<file-{letter}!>"'.encode())
    for size in (1, 7, len(text)):
        assert sealed_text([text[at : at + size] for at in range(0, len(text), size)], Marks(), b"!", google=True) == told


class Marks:
    """Seals what begins with `file-` or `resp_`."""

    def seal(self, value: bytes, place: bytes, origin: bytes | None) -> bytes | None:
        return b"<" + value + place + b">" if value.startswith((b"file-", b"resp_")) else None


LONG = "file-" + "x" * 400
# Text and what becomes of it; `<...!>` is sealed.
CASES = {
    "an id": ('{"id":"file-a"}', '{"id":"<file-a!>"}'),
    "printed": ('{\n  "id" : \t"file-a",\n  "x": 1}', '{\n  "id" : \t"<file-a!>",\n  "x": 1}'),
    "names of ids": ('{"file_id":"file-a","training_file":"file-b","idle":"file-c","paid":"file-d"}',
                     '{"file_id":"<file-a!>","training_file":"<file-b!>","idle":"file-c","paid":"file-d"}'),
    "lists": ('{"file_ids": [\n "file-a",\n "file-b"], "x": ["file-c"], "result_files":["file-d", "other"]}',
              '{"file_ids": [\n "<file-a!>",\n "<file-b!>"], "x": ["file-c"], "result_files":["<file-d!>", "other"]}'),
    "no id": ('{"id":"msg_1","user_id":7,"a":"file-a","next_id":null,"b":"file-b"}',
              '{"id":"msg_1","user_id":7,"a":"file-a","next_id":null,"b":"file-b"}'),
    "within text": (json.dumps({"text": json.dumps({"id": "file-a"}), "id": "file-b"}),
                    json.dumps({"text": json.dumps({"id": "file-a"}), "id": "<file-b!>"})),
    "objects of ids": ('{"id":{"id":"file-a"},"x_ids":[{"y":"file-b"},"file-c"]}',
                       '{"id":{"id":"<file-a!>"},"x_ids":[{"y":"file-b"},"file-c"]}'),
    "too long": (f'{{"id":"{LONG}","file_id":"file-a"}}', f'{{"id":"{LONG}","file_id":"<file-a!>"}}'),
    "a long name": (f'{{"{"x" * 60}_id":"file-a"}}', f'{{"{"x" * 60}_id":"file-a"}}'),
    "escapes": ('{"id":"file-\\u0061\\"","id":"a\\"file-b","file_id":"file-c"}',
                '{"id":"<file-\\u0061\\"!>","id":"a\\"file-b","file_id":"<file-c!>"}'),
    "events": ('event: response.created\ndata: {"response":{"id":"resp_1"}}\n\n: "comment\n\ndata: {"id":"resp_2"}\n\n',
               'event: response.created\ndata: {"response":{"id":"<resp_1!>"}}\n\n: "comment\n\ndata: {"id":"<resp_2!>"}\n\n'),
    "cut": ('{"id":"file-a', '{"id":"file-a'),
    "nothing": ("", ""),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_ids_are_sealed_wherever_the_bytes_are_cut(case: str) -> None:
    text, expected = (one.encode() for one in CASES[case])
    assert sealed_text([text], Marks(), b"!") == expected
    assert sealed_text([text[at : at + 1] for at in range(len(text))], Marks(), b"!") == expected
    for cut in range(len(text)):
        assert sealed_text([text[:cut], text[cut:]], Marks(), b"!") == expected


class Moved:
    """Addresses of a provider become the gateway's."""

    def seal(self, value: bytes, place: bytes, origin: bytes | None) -> bytes | None:
        found = value.removeprefix(b"https://provider")
        return None if origin is None or found == value else origin + found


@pytest.mark.parametrize(
    ("prefix", "strip", "told", "seen"),
    [(b"", b"", "/v1/a/results", "/v1/a/results"), (b"/v1", b"/v1", "/v1/a/results", "/v1/a/results"),
     (b"/claude/v1", b"/v1", "/claude/v1/a/results", "/v1/a/results"), (b"/claude", b"", "/claude/v1/a", "/v1/a"),
     # The provider behind the prefix does not know of it.
     (b"/claude", b"", "/v1/a/results", "/v1/a/results"), (b"/claude", b"", "/claudette/v1", "/claudette/v1")],
)  # fmt: skip
def test_addresses_at_the_gateway_have_no_prefix_of_the_provider(prefix: bytes, strip: bytes, told: str, seen: str) -> None:
    text = json.dumps({"results_url": f"https://provider{told}"}).encode()
    made = sealed_text([text], Moved(), b"!", b"http://gw", paths=(prefix, strip))
    assert json.loads(made) == {"results_url": f"http://gw{seen}"}
