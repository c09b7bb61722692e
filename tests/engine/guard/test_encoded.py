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
