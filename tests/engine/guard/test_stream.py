"""Streams through guards: what clients get, however the stream is cut."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import effort
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.engine.guard.pattern_rig import ANY_PATTERN
from tests.engine.guard.pattern_rig import TEXTS as PATTERN_TEXTS

from headgate_engine.guard.scan import BUILTIN_NAMES, Scanner
from headgate_engine.guard.stream import LIMIT, OVERLAP, REALTIME, STREAMED, StreamGuard
from headgate_engine.sse.decode import SseDecoder, SseError
from headgate_engine.websocket.frames import FrameReader, frame

# Formats whose streams have server-sent events; those of Bedrock's clients: test_stream_texts.py.
EVENTS = sorted(STREAMED - {"converse"})
MASKS = [("builtin", "email"), ("builtin", "creditCard"), ("pattern", r"(?i)blue heron"), ("pattern", r"\btok_[a-z0-9]{4,}\b")]


def sse(data: Any, event: str = "") -> bytes:
    text = data if isinstance(data, str) else json.dumps(data)
    return (f"event: {event}\n" if event else "").encode() + f"data: {text}\n\n".encode()


def completions(texts: list[tuple[int, str]]) -> bytes:
    out = [sse({"choices": [{"index": 0, "delta": {"role": "assistant"}}]})]
    out += [sse({"choices": [{"index": i, "delta": {"content": text}, "logprobs": {"x": text}}]}) for i, text in texts]
    out += [sse({"choices": [{"index": i, "delta": {}, "finish_reason": "stop"}]}) for i in sorted({i for i, _ in texts})]
    return b"".join([*out, sse({"choices": [], "usage": {"total_tokens": 3}}), sse("[DONE]")])


def messages(texts: list[tuple[int, str]]) -> bytes:
    out = [sse({"type": "message_start", "message": {"content": []}}, "message_start")]
    for block in sorted({i for i, _ in texts}):
        start = {"type": "content_block_start", "index": block, "content_block": {"type": "text", "text": ""}}
        out.append(sse(start, "content_block_start"))
        for i, text in texts:
            if i == block:
                delta = {"type": "content_block_delta", "index": i, "delta": {"type": "text_delta", "text": text}}
                out.append(sse(delta, "content_block_delta"))
        out.append(sse({"type": "content_block_stop", "index": block}, "content_block_stop"))
    out.append(sse({"type": "message_delta", "delta": {"stop_reason": "end_turn"}}, "message_delta"))
    return b"".join([*out, sse({"type": "message_stop"}, "message_stop")])


def responses(texts: list[tuple[int, str]]) -> bytes:
    out = [sse({"type": "response.created", "response": {"output": []}}, "response.created")]
    items = []
    for i, text in texts:
        delta = {"type": "response.output_text.delta", "output_index": i, "content_index": 0, "delta": text}
        out.append(sse(delta, "response.output_text.delta"))
    for i in sorted({i for i, _ in texts}):
        whole = "".join(text for j, text in texts if j == i)
        part = {"type": "output_text", "text": whole, "annotations": [1]}
        item = {"type": "message", "content": [part]}
        items.append(item)
        for kind, more in (("output_text.done", {"text": whole}), ("content_part.done", {"part": part}),
                           ("output_item.done", {"item": item})):  # fmt: skip
            out.append(sse({"type": f"response.{kind}", "output_index": i, "content_index": 0, **more}))
    return b"".join([*out, sse({"type": "response.completed", "response": {"output": items}}, "response.completed")])


def gemini(texts: list[tuple[int, str]]) -> bytes:
    out = []
    for i, text in texts:
        parts = [{"text": "secret blue heron", "thought": True}, {"text": text}]
        out.append(sse({"candidates": [{"index": i, "content": {"parts": parts}}]}))
    return b"".join([*out, sse({"candidates": [{"index": 0, "finishReason": "STOP"}], "usageMetadata": {}})])


MAKE = {"completions": completions, "messages": messages, "responses": responses, "gemini": gemini}


def said(stream: bytes, form: str, decoder: SseDecoder | None = None) -> dict[int, str]:
    """What a client of the format adds up; with a decoder, of the next part of a stream."""
    found: dict[int, str] = {}
    for event in (decoder or SseDecoder()).decode(stream):
        if event.data == b"[DONE]":
            continue
        data = json.loads(event.data)
        rows: list[tuple[int, str]] = []
        if form == "completions":
            rows = [(one["index"], one["delta"].get("content") or "") for one in data.get("choices", ())]
        elif form == "messages" and data["type"] == "content_block_delta":
            rows = [(data["index"], data["delta"]["text"])]
        elif form == "responses" and data["type"].endswith("text.delta"):
            rows = [(data["output_index"], data["delta"])]
        elif form == "gemini":
            for one in data.get("candidates", ()):
                for part in one.get("content", {}).get("parts", ()):
                    rows += [] if part.get("thought") else [(one["index"], part["text"])]
        for i, text in rows:
            found[i] = found.get(i, "") + text
    return {i: text for i, text in found.items() if text}


def through(guard: StreamGuard, stream: bytes, size: int = 0) -> bytes:
    """All that comes out when nothing is blocked."""
    out = []
    size = size or len(stream)
    for at in range(0, len(stream), size):
        guard.feed(stream[at : at + size])
        while guard.due:
            guard.texts()
            guard.passed()
        out.append(guard.take())
    guard.end()
    while guard.due:
        guard.texts()
        guard.passed()
    return b"".join([*out, guard.take()])


TEXTS = st.lists(
    st.tuples(
        st.integers(0, 1),
        st.sampled_from(["mail ", "jo@", "ex.io", " blue", " heron", "4111 1111", " 1111 1111 ", "tok_", "ab12", "\u00e9", " x" * 70, "\n"]),
    ),
    max_size=14,
)  # fmt: skip


@pytest.mark.parametrize("form", EVENTS)
@settings(max_examples=60, deadline=None)
@given(texts=TEXTS, size=st.integers(1, 400))
def test_masks_are_those_of_the_whole_text_wherever_it_is_cut(form: str, texts: list[tuple[int, str]], size: int) -> None:
    scanner = Scanner(MASKS)
    stream = MAKE[form](texts)
    out = through(StreamGuard(form, scanner=scanner), stream, size)
    whole = said(stream, form)
    assert said(out, form) == {i: scanner.mask(text.encode()).decode() for i, text in whole.items()}
    if all(scanner.first(text.encode()) < 0 for text in whole.values()):
        assert out == stream


BUILTINS = Scanner([("builtin", name) for name in BUILTIN_NAMES])
# Beginnings, middles and ends of numbers and addresses, what stands between their parts, and what breaks them.
PARTS = ("4111", "1111", "123-45-6789", "123", "45", "6789", "046 454 286", "046454286", "ssn", "social", "+1 ", "(", ")", "202", "555",
         "0123", "1999-12-31", " ", "  ", "-", ".", "\u00a0", "\u2011", "\u202f", "\n", "\t", "jo", "@", "ex.io", "j.d+x@a-b.example.com",
         ",", "x", "_", "\u00e9", "\u6f22\u5b57", "word ", " " * 300, "7" * 25)  # fmt: skip


def chunk(text: str) -> bytes:
    return sse({"choices": [{"index": 0, "delta": {"content": text}}]})


def masked_in(pieces: list[str], overlap: int = OVERLAP, scanner: Scanner = BUILTINS) -> tuple[str, list[str]]:
    """The text that a client gets of these deltas, and what it has got when each of them has come."""
    guard, decoder = StreamGuard("completions", scanner=scanner, overlap=overlap), SseDecoder()
    got, seen = "", []
    for piece in pieces:
        guard.feed(chunk(piece))
        got += said(guard.take(), "completions", decoder).get(0, "")
        seen.append(got)
    guard.end()
    return got + said(guard.take(), "completions", decoder).get(0, ""), seen


# With the usual overlap an address has at most that many bytes in front of its last one.
@pytest.mark.parametrize(("parts", "overlap"), [(PARTS, OVERLAP), ((*PARTS, "a" * 300), 10_000)], ids=["usual", "wide"])
@settings(max_examples=effort.examples(200), deadline=None)
@given(data=st.data(), splits=st.sets(st.integers(0, 2000), max_size=12))
def test_numbers_and_addresses_are_those_of_the_whole_text_wherever_it_is_cut(
    parts: tuple[str, ...], overlap: int, data: st.DataObject, splits: set[int]
) -> None:
    text = "".join(data.draw(st.lists(st.sampled_from(parts), max_size=16)))
    edges = sorted({0, len(text), *(at for at in splits if at < len(text))})
    pieces = [text[a:b] for a, b in pairwise(edges)]
    assert masked_in(pieces, overlap)[0] == BUILTINS.mask(text.encode()).decode()


@pytest.mark.parametrize(
    "text",
    [
        "pay 4111 1111 1111 1111, not 4111 1111 1111 1112 or ssn: 123456789 x, 123-45-6789. call +1 (202) 555-0123 or 202.555.0123 now",
        "to jo.doe+x@mail.example.com. On 1999-12-31 my social number was 123456789 and the sin 046 454 286;046454286 ok@ @x a@b.",
        "\u6f22\u5b57 4111\u00a01111\u00a01111\u00a01111 \u6f22 123\u201145\u20116789\u6f22 t\u00e9l +33 1 42 68 53 00\n1 2 3 4 5 6 7 8",
        "social " + "x" * 34 + " 123456789 " + "a" * 200 + "@example.com " + "-" * 300 + "4111111111111111",
    ],
)
def test_numbers_and_addresses_are_found_with_a_split_at_every_place(text: str) -> None:
    whole = BUILTINS.mask(text.encode()).decode()
    assert "<" in whole
    assert masked_in(list(text))[0] == whole
    for at in range(len(text)):
        assert masked_in([text[:at], text[at:]])[0] == whole
        assert masked_in([text[:at], text[at : at + 3], text[at + 3 :]])[0] == whole


# Rules of all kinds, in any order: a pattern that comes later sees what the masks before it have left.
RULES = st.lists(
    st.one_of(ANY_PATTERN.map(lambda text: ("pattern", text)), st.sampled_from(("ssn", "creditCard", "email")).map(lambda name: ("builtin", name))),
    min_size=1, max_size=4,
)  # fmt: skip


@settings(max_examples=effort.examples(600), deadline=None)
@given(rules=RULES, texts=st.lists(st.one_of(PATTERN_TEXTS, st.sampled_from(PARTS)), max_size=4), splits=st.sets(st.integers(0, 150), max_size=10))
def test_matches_of_patterns_are_those_of_the_whole_text_wherever_it_is_cut(
    rules: list[tuple[str, str]], texts: list[str], splits: set[int]
) -> None:
    assume(not any("\\C" in pattern for _, pattern in rules))  # it masks parts of characters
    scanner, text = Scanner(rules), "".join(texts)
    edges = sorted({0, len(text), *(at for at in splits if at < len(text))})
    pieces = [text[a:b] for a, b in pairwise(edges)]
    assert masked_in(pieces, 10_000, scanner)[0] == scanner.mask(text.encode()).decode()


RULE_LISTS = (
    [("pattern", r"(?i)blue heron")],
    [("pattern", r"\btok_[a-z0-9]{4,}\b"), ("pattern", "[a-z]+ (?i)HERON")],
    [("pattern", "aa")],
    [("pattern", "a|ab|abc"), ("builtin", "creditCard")],
    [("pattern", "^blue|(?m)^x.*y$|heron$")],
    [("pattern", "(?s)x.*y")],
    [("builtin", "email"), ("pattern", "<EMAIL_ADDRESS> (aa)+"), ("pattern", ">ed")],
    [("pattern", "漢字?|[é-ü]+")],
    [("pattern", "social"), ("builtin", "ssn")],
    [("pattern", r"\x{d7ff}|(?:" + "(?:" * 60 + "aa" + ")" * 60 + ")")],  # which is not followed, and scanned again
)


@pytest.mark.parametrize("rules", RULE_LISTS, ids=str)
def test_patterns_are_found_with_a_split_at_every_place(rules: list[tuple[str, str]]) -> None:
    scanner = Scanner(rules)
    text = "blue heron tok_ab12 tok_a aaaaabcd blue\nx 4111 1111 1111 1111y\nx jo@ex.io aaaa jo@ex.io, éü漢字é漢 social 123456789 BLUE HERON heron"
    whole = scanner.mask(text.encode()).decode()
    assert whole != text
    assert masked_in(list(text), 1000, scanner)[0] == whole
    for at in range(len(text)):
        assert masked_in([text[:at], text[at:]], 1000, scanner)[0] == whole
        assert masked_in([text[:at], text[at : at + 3], text[at + 3 :]], 1000, scanner)[0] == whole


@pytest.mark.parametrize("rules", RULE_LISTS, ids=str)
def test_long_texts_are_masked_piece_by_piece_as_a_whole(rules: list[tuple[str, str]]) -> None:
    """With the usual overlap, over many times what is kept. No match but those of endless patterns is longer."""
    scanner = Scanner(rules)
    text = ("blue heron and tok_ab12, éü漢字é漢. " * 3 + "a" * 301 + " x4111 1111 1111 1111 aab jo@ex.io aaaa y\n, social 123456789 ok. ") * 6
    pieces = [text[at : at + 7] for at in range(0, len(text), 7)]
    if rules != [("pattern", "(?s)x.*y")]:
        assert masked_in(pieces, OVERLAP, scanner)[0] == scanner.mask(text.encode()).decode()


def test_behind_what_no_pattern_goes_on_text_does_not_wait() -> None:
    scanner = Scanner([("pattern", r"\btok_[a-z0-9]{4,}\b"), ("pattern", "blue heron"), ("builtin", "ssn")])
    words = ["We saw", ". ", "A tok", " of b", "lue", " her", "s; t", "ok_abcd", " was"]
    whole, seen = masked_in(words, OVERLAP, scanner)
    assert seen == ["", "We saw. ", "We saw. ", "We saw. A tok", "We saw. A tok", "We saw. A tok", "We saw. A tok of blue her",
                    "We saw. A tok of blue her", "We saw. A tok of blue hers; <masked>"]  # fmt: skip
    assert whole == "We saw. A tok of blue hers; <masked> was"


def test_text_in_which_no_match_can_go_on_does_not_wait() -> None:
    """Without patterns a text waits for the word, or for the run of numbers, that is not complete."""
    words = ["It ", "is 4", ", or ", "5 ", "or so. ", "Mail", " us", ": jo@", "ex.io", ", ok"]
    whole, seen = masked_in(words)
    assert seen == ["It ", "It ", "It is 4, or ", "It is 4, or ", "It is 4, or 5 or so. ", "It is 4, or 5 or so. ",
                    "It is 4, or 5 or so. Mail", "It is 4, or 5 or so. Mail us", "It is 4, or 5 or so. Mail us",
                    "It is 4, or 5 or so. Mail us: <EMAIL_ADDRESS>"]  # fmt: skip
    assert whole == "It is 4, or 5 or so. Mail us: <EMAIL_ADDRESS>, ok"


@pytest.mark.parametrize("form", EVENTS)
@settings(max_examples=40, deadline=None)
@given(texts=TEXTS, size=st.integers(1, 400), window=st.integers(1, 300))
def test_a_stream_that_is_judged_and_passes_keeps_its_bytes(
    form: str, texts: list[tuple[int, str]], size: int, window: int
) -> None:
    stream = MAKE[form](texts)
    assert through(StreamGuard(form, judged=True, window=window), stream, size) == stream


@settings(max_examples=60, deadline=None)
@given(texts=TEXTS, size=st.integers(1, 200), window=st.integers(1, 300))
def test_every_text_is_judged_with_what_stood_before_it(texts: list[tuple[int, str]], size: int, window: int) -> None:
    guard = StreamGuard("completions", judged=True, window=window)
    seen: list[bytes] = []
    stream = completions(texts)
    out = b""
    for at in range(0, len(stream), size):
        guard.feed(stream[at : at + size])
        if guard.due:
            seen += guard.texts()
            # Not before it was judged.
            early = guard.take()
            assert b'"content"' not in early
            out += early
            guard.passed()
        out += guard.take()
    guard.end()
    if guard.due:
        seen += guard.texts()
        guard.passed()
    out += guard.take()
    assert out == stream
    for text in said(stream, "completions").values():
        for at in range(0, len(text), 20):
            piece = text[at : at + 20].encode()
            assert any(piece in one for one in seen)


def test_the_texts_of_a_window_have_the_overlap_in_front() -> None:
    guard = StreamGuard("completions", judged=True, window=10, overlap=4)
    guard.feed(sse({"choices": [{"index": 0, "delta": {"content": "0123456789"}}]}))
    assert guard.texts() == [b"0123456789"]
    guard.passed()
    guard.feed(sse({"choices": [{"index": 0, "delta": {"content": "abcdefghij"}}]}))
    assert guard.texts() == [b"6789abcdefghij"]


def test_the_overlap_begins_with_a_whole_character() -> None:
    guard = StreamGuard("completions", judged=True, window=1, overlap=3)
    guard.feed(sse({"choices": [{"index": 0, "delta": {"content": "\u00e9\u00e9"}}]}))
    guard.texts()
    guard.passed()
    guard.feed(sse({"choices": [{"index": 0, "delta": {"content": "x"}}]}))
    assert guard.texts() == ["\u00e9\u00e9x".encode()]


def test_a_block_drops_what_waits_and_all_that_follows() -> None:
    guard = StreamGuard("completions", judged=True, window=5)
    guard.feed(sse({"choices": [{"index": 0, "delta": {"content": "fine "}}]}))
    guard.texts()
    guard.passed()
    sent = guard.take()
    guard.feed(sse({"choices": [{"index": 0, "delta": {"content": "not fine"}}]}))
    guard.texts()
    guard.feed(sse({"choices": [{"index": 0, "delta": {"content": "later"}}]}))
    guard.block(b"data: stop\n\n")
    guard.passed()
    guard.feed(sse("[DONE]"))
    guard.end()
    assert sent + guard.take() == sse({"choices": [{"index": 0, "delta": {"content": "fine "}}]}) + b"data: stop\n\n"
    assert not guard.due


def test_whole_texts_at_the_end_are_masked_as_the_pieces_were() -> None:
    out = through(StreamGuard("responses", scanner=Scanner(MASKS)), responses([(0, "to jo@"), (0, "ex.io ok")]))
    assert b"jo@" not in out
    last = json.loads(SseDecoder().decode(out)[-1].data)
    assert last["response"]["output"][0]["content"][0] == {
        "type": "output_text", "text": "to <EMAIL_ADDRESS> ok", "annotations": [],
    }  # fmt: skip


def test_token_probabilities_go_with_a_mask() -> None:
    out = through(StreamGuard("completions", scanner=Scanner(MASKS)), completions([(0, "a jo@"), (0, "ex.io")]))
    assert b"jo@" not in out
    assert b"ex.io" not in out


def test_text_waits_for_no_more_than_the_overlap() -> None:
    guard = StreamGuard("completions", scanner=Scanner(MASKS))
    sent = ""
    fed = 0
    out = b""
    for _ in range(500):
        guard.feed(sse({"choices": [{"index": 0, "delta": {"content": "word "}}]}))
        fed += 5
        out += guard.take()
        sent = said(out, "completions").get(0, "")
        assert fed - len(sent) <= OVERLAP + 5


def test_a_match_that_never_ends_is_masked_in_time() -> None:
    guard = StreamGuard("completions", scanner=Scanner([("pattern", "(?s)BEGIN.*")]))
    out = b""
    for text in ["so BEGIN ", *["secret " * 10] * 500]:
        guard.feed(sse({"choices": [{"index": 0, "delta": {"content": text}}]}))
        out += guard.take()
    assert b"BEGIN" not in out
    # All that could be held was held; what came out is masked from its start.
    assert said(out, "completions")[0].startswith("so <masked>")


@pytest.mark.parametrize(
    "delta",
    [{"tool_calls": [{"index": 0}]}, {"tool_calls": [{"index": 0, "function": {"arguments": "{"}}]}, {"content": "", "tool_calls": None}],
    ids=["begun", "its arguments", "null"],
)
def test_tool_calls_do_not_wait_for_text(delta: dict[str, Any]) -> None:
    guard = StreamGuard("completions", scanner=Scanner(MASKS))
    call = sse({"choices": [{"index": 0, "delta": delta}]})
    guard.feed(sse({"choices": [{"index": 0, "delta": {"content": "Let me see"}}]}) + call)
    assert guard.take().endswith(call)


@pytest.mark.parametrize("raw", [b": note\n\n", b"data: nope\n\n", b"data: [1]\n\n", b"id: 3\n\n", b"\xef\xbb\xbfdata: {}\n\n"])
def test_what_says_nothing_passes(raw: bytes) -> None:
    for form in EVENTS:
        assert through(StreamGuard(form, judged=True, scanner=Scanner(MASKS)), raw) == raw


def test_data_over_several_lines_is_masked() -> None:
    raw = b'event: x\ndata: {"choices":[{"delta":\ndata: {"content":"a@b.co"}}]}\n\n'
    out = through(StreamGuard("completions", scanner=Scanner(MASKS)), raw)
    [event] = SseDecoder().decode(out)
    assert event.event == "x"
    assert json.loads(event.data) == {"choices": [{"delta": {"content": "<EMAIL_ADDRESS>"}}]}


def test_a_last_event_without_its_end_is_read() -> None:
    guard = StreamGuard("completions", judged=True)
    guard.feed(b'data: {"choices":[{"delta":{"content":"bad"}}]}')
    guard.end()
    assert guard.due
    assert guard.texts() == [b"bad"]
    guard.passed()
    assert guard.take() == b'data: {"choices":[{"delta":{"content":"bad"}}]}'


def test_many_choices_cost_bounded_memory() -> None:
    guard = StreamGuard("completions", judged=True, window=10**9, limit=10**9)
    for i in range(1000):
        guard.feed(sse({"choices": [{"index": i, "delta": {"content": "x"}}]}))
    guard.end()
    assert len(guard.texts()) <= 130


def test_no_more_than_the_limit_waits() -> None:
    guard = StreamGuard("messages", scanner=Scanner(MASKS), overlap=10_000, window=10)
    for _ in range(LIMIT // 100 + 100):
        delta = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "y"}}
        guard.feed(sse(delta, "content_block_delta"))
    assert len(guard.take()) > LIMIT // 2


def test_an_event_that_is_too_long_to_be_read_is_an_error() -> None:
    guard = StreamGuard("completions", judged=True)
    with pytest.raises(SseError):
        guard.feed(b"data: " + b"x" * 10_000_000)


def test_other_formats_are_refused() -> None:
    with pytest.raises(ValueError, match="rerank"):
        StreamGuard("rerank")


# -- conversations -----------------------------------------------------------------------------------------------------
def conversation(*events: dict[str, object]) -> list[dict[str, object]]:
    """What goes on of a server's events, whose frames the guard does not look into."""
    guard = StreamGuard(REALTIME, scanner=Scanner([("pattern", "secret [a-z]+")]), overlap=16)
    reader, out = FrameReader(False, 1 << 20), []
    for event in events:
        data = json.dumps(event).encode()
        guard.message(frame(data), data)
        out += [json.loads(payload) for _, payload, _ in reader.feed(guard.take())]
    guard.end()
    return out + [json.loads(payload) for _, payload, _ in reader.feed(guard.take())]


def delta(text: str, item: str = "i") -> dict[str, object]:
    return {"type": "response.output_text.delta", "item_id": item, "content_index": 0, "delta": text}


def test_texts_of_a_conversation_are_masked_apart() -> None:
    heard = conversation(delta("a sec"), delta("no sec", "j"), delta("ret plan"), delta("onds left", "j"))
    said = {item: "".join(str(one["delta"]) for one in heard if one["item_id"] == item) for item in ("i", "j")}
    assert said == {"i": "a <masked>", "j": "no seconds left"}


def test_an_answer_of_the_same_name_behind_the_end_of_another_is_a_new_text() -> None:
    over = {"type": "response.done", "response": {"output": []}}
    heard = conversation(delta("a sec"), over, delta("ret plan"), over)
    assert heard == [delta("a sec"), over, delta("ret plan"), over]


def test_other_events_wait_for_nothing() -> None:
    audio = {"type": "response.output_audio.delta", "delta": "AAAA"}
    assert conversation(delta("a sec"), audio, delta("ret plan"))[0] == audio


@pytest.mark.parametrize("kind", ["response.text.done", "response.output_text.done"])
def test_a_text_that_comes_whole_is_masked(kind: str) -> None:
    whole = {"type": kind, "item_id": "i", "content_index": 0, "text": "the secret plan"}
    assert conversation(whole) == [whole | {"text": "the <masked>"}]
