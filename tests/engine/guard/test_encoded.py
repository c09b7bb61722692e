"""Text files in base64: decoded as lenient decoders do, and always to UTF-8 of as many bytes."""

from __future__ import annotations

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.dialect.llm.transcript.contract import TextScope
from headgate.dialect.llm.transcript.table import request_texts
from headgate_engine.guard.encoded import encoded_text
from headgate_engine.guard.scan import ScanBudget, Scanner
from headgate_engine.guard.search import first_rule, masked

EMAIL = Scanner([("builtin", "email")])
FOX = Scanner([("pattern", "red fox")])
SCOPES = frozenset((TextScope.MESSAGES,))


def text_of(string: str) -> bytes:
    """The text of a file in a JSON string."""
    body = string.encode()
    return encoded_text(body, 0, len(body))


@given(st.text())
def test_a_text_is_what_was_encoded(text: str) -> None:
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        said = encode(text.encode()).decode()
        assert text_of(said) == text.encode()
        # As JSON writers may escape it, in lines, and without padding.
        lines = "\r\n".join(said[at : at + 7] for at in range(0, len(said), 7)).rstrip("=")
        assert text_of(json.dumps(lines)[1:-1].replace("/", "\\/")) == text.encode()


@given(st.binary())
def test_a_byte_that_is_no_text_becomes_a_question_mark(data: bytes) -> None:
    found = text_of(base64.b64encode(data).decode())
    assert len(found) == len(data)
    assert found.decode() is not None
    kept = data.decode("utf-8", "ignore").encode()
    assert found.replace(b"?", b"") == kept.replace(b"?", b"")


def test_offsets_outside_are_refused() -> None:
    for start, stop in ((-1, 2), (3, 2), (0, 9)):
        with pytest.raises(ValueError):
            encoded_text(b"12345678", start, stop)
    assert encoded_text(b'YQ\\u00', 0, 6) == b"a"


def coded(text: str | bytes) -> str:
    return base64.b64encode(text.encode() if isinstance(text, str) else text).decode()


def asked(form: str, kind: str, data: str) -> bytes:
    """A request of a format with a file of a type."""
    url = f"data:{kind};base64,{data}"
    found: dict[str, object] = {
        "completions": {"messages": [{"role": "user", "content": [{"type": "file", "file": {"file_data": url}}]}]},
        "responses": {"input": [{"role": "user", "content": [{"type": "input_file", "file_data": url}]}]},
        "messages": {"messages": [{"role": "user", "content": [
            {"type": "document", "source": {"type": "base64", "media_type": kind, "data": data}}]}]},
        "gemini": {"contents": [{"parts": [{"inline_data": {"mime_type": kind, "data": data}}]}]},
        "converse": {"messages": [{"role": "user", "content": [
            {"document": {"format": kind.partition("/")[2], "name": "d", "source": {"bytes": data}}}]}]},
    }  # fmt: skip
    return json.dumps(found[form]).encode()


@pytest.mark.parametrize("form", ["completions", "responses", "messages", "gemini", "converse"])
@pytest.mark.parametrize("scanner", [EMAIL, FOX])
def test_files_are_searched_and_masked(form: str, scanner: Scanner) -> None:
    kind = "text/html"
    body = asked(form, kind, coded("a@b.co saw a red fox \u00e9"))
    texts = request_texts(body, form)
    assert first_rule(scanner, texts.texts, SCOPES, ScanBudget()) == 0
    token = "<EMAIL_ADDRESS> saw a red fox \u00e9" if scanner is EMAIL else "a@b.co saw a <masked> \u00e9"
    assert masked(scanner, texts.texts, SCOPES, ScanBudget()) == asked(form, kind, coded(token))
    [run] = [one for one in texts.runs if one.pieces[0].coded]
    assert run.text(body).decode() == "a@b.co saw a red fox \u00e9"
    assert any("red fox" in turn.text(body).decode() for turn in texts.turns)


@pytest.mark.parametrize("form", ["completions", "responses", "messages", "gemini", "converse"])
def test_what_is_no_text_is_not_read(form: str) -> None:
    body = asked(form, "application/pdf", coded("a red fox"))
    assert first_rule(FOX, request_texts(body, form).texts, SCOPES, ScanBudget()) == -1


@pytest.mark.parametrize("kind", ["TEXT/Plain", "text/plain;charset=utf-8", "application/json", "text/x;" + "p" * 80])
def test_types_are_compared_as_they_are_meant(kind: str) -> None:
    body = asked("completions", kind, coded("a red fox"))
    assert first_rule(FOX, request_texts(body, "completions").texts, SCOPES, ScanBudget()) == 0
    escaped = body.replace(b"/", b"\\/")
    assert first_rule(FOX, request_texts(escaped, "completions").texts, SCOPES, ScanBudget()) == 0
    changed = masked(FOX, request_texts(escaped, "completions").texts, SCOPES, ScanBudget())
    assert changed is not None
    assert json.loads(changed) == json.loads(asked("completions", kind, coded("a <masked>")))


URL = f"data:text/plain;base64,{coded('a red fox')}"
HTML = {"type": "base64", "media_type": "text/html", "data": coded("a red fox")}


def part(form: str, **members: object) -> bytes:
    """A request of a format with one part."""
    if form == "gemini":
        return json.dumps({"contents": [{"parts": [members]}]}).encode()
    return json.dumps({"input" if form == "responses" else "messages": [{"role": "user", "content": [members]}]}).encode()


@pytest.mark.parametrize(
    "body",
    [
        # The comma as an escape, in either case, and behind an escaped backslash.
        asked("completions", "text/plain", coded("a red fox")).replace(b"base64,", b"base64\\u002c"),
        asked("responses", "text/plain", coded("a red fox")).replace(b"base64,", b"\\u0062ase64\\u002C"),
        asked("completions", 'text/plain;x="\\u002c"', coded("a red fox")),
        # Parameters of any length, also of a type that begins late in what is read.
        asked("completions", "text/plain;x=" + "y" * 300, coded("a red fox")),
        asked("responses", "text/plain;x=" + "\u00e9" * 70_000, coded("a red fox")),
        # With blanks behind the colon.
        part("completions", type="file", file={"file_data": URL.replace("data:", "data: ")}),
        part("responses", type="input_image", image_url=URL.replace("data:", "data:\t  ")),
        # More of them than what is read of the type, of each kind, and in other places.
        part("completions", type="file", file={"file_data": URL.replace("data:", "data:" + " " * 60)}),
        part("completions", type="file", file={"file_data": URL.replace("data:", "data:\n\f\r")}),
        part("responses", type="input_image", image_url=URL.replace("data:", "\n da\tta:").replace("base64", "ba\nse64 ")),
        # A file beside a text: the part's type decides which of them is sent.
        part("completions", type="file", text="", file={"file_data": URL}),
        part("completions", type="file", refusal="x", file={"file_data": URL}),
        part("responses", type="input_file", text="x", file_data=URL),
        part("gemini", text="", inlineData={"mimeType": "text/plain", "data": coded("a red fox")}),
        # Said to be pictures.
        part("completions", type="image_url", image_url={"url": URL}),
        part("completions", type="image_url", image_url=URL),
        part("responses", type="input_image", image_url=URL),
        part("messages", type="image", source=HTML),
        part("messages", type="image", source={"type": "url", "url": URL}),
        part("messages", type="tool_result", content=[{"type": "image", "source": HTML}]),
        json.dumps({"messages": [{"role": "assistant", "images": [{"image_url": {"url": URL}}]}]}).encode(),
        json.dumps({"messages": [{"role": "assistant", "images": [{"type": "text", "text": "a red fox"}]}]}).encode(),
        # Without a format it is text.
        part("converse", document={"name": "d", "source": {"bytes": coded("a red fox")}}),
        # Several kinds at once: who reads it next may take any.
        part("converse", text="x", document={"format": "txt", "name": "d", "source": {"bytes": coded("a red fox")}}),
        part("converse", toolResult={"content": [{"text": "x", "json": {"a": "a red fox"}}]}),
        part("messages", twice="text", type="document", text="x", source=HTML).replace(b"twice", b"type"),
        part("messages", twice="tool_use", type="document", input={}, source=HTML).replace(b"twice", b"type"),
        part("messages", twice="tool_result", type="document", content="x", source=HTML).replace(b"twice", b"type"),
        b'{"input":[{"type":"message","type":"function_call_output","role":"user","content":"x","output":"a red fox"}]}',
    ],
)  # fmt: skip
def test_files_are_found_however_they_are_written(body: bytes) -> None:
    form = next(one for one in ("gemini", "responses", "converse", "messages", "completions") if is_of(body, one))
    scopes = frozenset(TextScope)
    assert first_rule(FOX, request_texts(body, form).texts, scopes, ScanBudget()) == 0
    changed = masked(FOX, request_texts(body, form).texts, scopes, ScanBudget())
    assert changed is not None
    told = json.dumps(json.loads(body)).replace(coded("a red fox"), coded("a <masked>")).replace("a red fox", "a <masked>")
    assert json.loads(changed) == json.loads(told)


def is_of(body: bytes, form: str) -> bool:
    """Whether a request is of a format, by what no other has."""
    known = {"gemini": b'{"contents"', "responses": b'{"input"', "messages": b'"source"', "completions": b"{"}
    return any(word in body for word in (b'"bytes"', b'"toolResult"')) if form == "converse" else known[form] in body


def test_a_text_of_which_nothing_is_left_keeps_what_stands_beside_it() -> None:
    told = {"type": "text", "text": "red", "refusal": "fox", "file": {"file_data": URL}}
    kept = {"type": "text", "text": "", "refusal": "<masked>", "file": {"file_data": URL.replace(coded("a red fox"), coded("a <masked>"))}}
    after = {"type": "text", "text": "y"}
    body, wanted = ({"messages": [{"role": "user", "content": [one, after]}]} for one in (told, kept))
    changed = masked(FOX, request_texts(json.dumps(body).encode(), "completions").texts, SCOPES, ScanBudget())
    assert changed is not None
    assert json.loads(changed) == wanted


@pytest.mark.parametrize(
    "url",
    [
        f"data:image/png;base64,{coded('a red fox')}",
        f"data:image/png;x={'y' * 100};base64,{coded('a red fox')}",
        f"data:text/plain,{coded('a red fox')}",
        f"https://x.example/text/;base64,{coded('a red fox')}",
        "data:text/plain;base64",
        "data:",
        ",",
        "",
    ],
)  # fmt: skip
def test_other_urls_are_not_read(url: str) -> None:
    body = part("completions", type="image_url", image_url={"url": url})
    assert len(request_texts(body, "completions").texts) == 0
