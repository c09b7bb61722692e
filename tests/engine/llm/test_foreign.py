"""Marks of other vendors' turns in bodies."""

from __future__ import annotations

import pytest

from headgate_engine.llm.foreign import ForeignHistory

MADE = "rs_0123456789abcdef01234567_0"


@pytest.mark.parametrize(
    ("format", "body", "found"),
    [
        ("messages", '{"tool_use_id":"toolu_01Ab-_9"}', False),
        ("messages", '{"tool_use_id" :\n "toolu_01"}', False),
        ("messages", '{"tool_use_id":"toolu_"}', True),
        ("messages", '{"tool_use_id":"toolu_01/"}', True),
        ("messages", '{"tool_use_id":"call_1"}', True),
        ("messages", '{"tool_use_id":"toolu_01"},{"tool_use_id":"x"}', True),
        ("messages", '{"tool_use_id":"toolu_' + "x" * 60 + '"}', True),
        ("messages", '{"signature":"c2ln"}', False),
        ("messages", '{"signature" : ""}', True),
        ("messages", '{"signature":"a"},{"signature":""}', True),
        ("messages", '{"signature":null}', True),
        ("messages", '{"signature"', True),
        ("messages", '{"tool_use_id":"toolu_', False),
        ("messages", "", False),
        ("messages", '{"id":"srvtoolu_0123456789abcdef01234567_0"}', True),
        ("messages", '{"id":"srvtoolu_01AbcdefAbcdefAbcdefAbcd"}', False),
        ("messages", '{"encrypted_index":"Eo8BCioIAhgB"}', False),
        ("messages", '{"encrypted_index": ""}', True),
        ("count_tokens", '{"tool_use_id":"call_1"}', True),
        ("completions", '{"tool_call_id":"call_1","reasoning_effort":"low"}', False),
        ("completions", '{"tool_call_id":"' + "x" * 40 + '"}', False),
        ("completions", '{"tool_call_id":"' + "x" * 41 + '"}', True),
        ("completions", '{"tool_call_id":"a__thought__b"}', True),
        ("completions", '{"tool_call_id":""}', True),
        ("completions", '{"reasoning_content":"x"}', True),
        ("completions", '{"thinking_blocks":[]}', True),
        ("completions", '{"reasoning_', False),
        ("responses", f'{{"id":"{MADE}"}}', True),
        ("responses", f'{{"id":"{MADE[:-2]}"}}', False),
        ("responses", '{"id":"rs_0123456789abcdef0123456789abcdef"}', False),
        ("responses", '{"id":"rs_', False),
        ("responses", '{"id":"ws_0123456789abcdef01234567_1"}', True),
        ("responses", '{"id":"ci_0123456789abcdef01234567_1"}', True),
        ("responses", '{"id":"mcp_0123456789abcdef01234567_1"}', True),
        ("responses", '{"id":"ws_0123456789abcdef0123456_"}', False),
        ("converse", '{"toolUseId":"tooluse_1-A"}', False),
        ("converse", '{"toolUseId":"a.b"}', True),
        ("converse", '{"toolUseId" : "a__thought__b"}', True),
        ("converse", '{"toolUseId":""}', True),
        ("converse", '{"toolUseId":"' + "x" * 65 + '"}', True),
        ("converse", '{"reasoningText":{"text":"a","signature":"b"}}', False),
        ("converse", '{"reasoningText":{"text":"a"}}', True),
        ("converse", '{"reasoningText":{"text":"a","signature":""}}', True),
        ("converse", '{"redactedContent":"aGVhZGdhdGU6cmVk"}', True),
        ("converse", '{"redactedContent":"aGlkZGVu"}', False),
        ("responses", '{"call_id":"call_1"}', False),
        ("responses", '{"call_id":"a__thought__b"}', True),
    ],
)
def test_marks_are_found_wherever_a_body_ends(format: str, body: str, found: bool) -> None:
    history = ForeignHistory(format, bytes, longest=64 if format == "responses" else 40, strict=True)
    raw = body.encode()
    assert history.is_in(raw) == found
    for stop in range(len(raw)):
        history.is_in(raw[:stop])


def test_what_is_looked_for_depends_on_the_vendor() -> None:
    lax = ForeignHistory("completions", bytes, longest=40)
    assert not lax.is_in(b'{"reasoning_content":"x","tool_call_id":"abc"}')
    assert ForeignHistory("completions", bytes, any_id=True).is_in(b'{"tool_call_id":"abc"}')
    assert lax.clean is bytes


def test_other_formats_have_none() -> None:
    with pytest.raises(KeyError):
        ForeignHistory("embeddings", bytes)
