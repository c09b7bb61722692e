"""Ids of what clients keep at providers: sealed, opened, and refused to others."""

from __future__ import annotations

import re

import pytest

from headgate.backend.llm.bound_ids import BoundIds
from headgate.crypto.sealed import StableSealer
from headgate_engine.context.request import Reply, RequestContext, make_context

IDS = BoundIds(StableSealer(bytes(range(32)), "test"))
ACCOUNT, OTHER = b"abcdef", b"ghijkl"


def caller(key: str | None = None) -> RequestContext:
    ctx = make_context()
    ctx.api_key_text = None if key is None else key.encode()
    return ctx


def sealed(raw: bytes, ctx: RequestContext, account: bytes = ACCOUNT, guarded: bool = False) -> bytes:
    found = IDS.seal(raw, IDS.place(ctx, account, guarded))
    assert found is not None
    return found


@pytest.mark.parametrize("raw", [b"file-abc123", b"resp_0123", b"vs_a-b_c9", b"msgbatch_0123", b"ftjob-abcd", b"rtc_12345", b"chatcmpl-1234"])
def test_an_id_keeps_its_prefix_and_comes_back(raw: bytes) -> None:
    found = sealed(raw, caller("ann"))
    assert re.fullmatch(rb"[a-z]+[-_]gw1_[A-Za-z0-9_-]+", found)
    assert raw[-4:] not in found
    assert IDS.opened(b"/v1/x/" + found + b"/y?a=" + found, caller("ann"), False, None) == (
        b"/v1/x/" + raw + b"/y?a=" + raw, False, ACCOUNT,
    )  # fmt: skip
    assert IDS.opened(b'{"a":"' + found + b'"}', caller("ann"), True, None) == (b'{"a":"' + raw + b'"}', False, ACCOUNT)
    assert sealed(raw, caller("ann")) == found
    # An id that is one already is not sealed again.
    assert IDS.seal(found, IDS.place(caller("ann"), ACCOUNT, False)) is None


@pytest.mark.parametrize("raw", [b"msg_123456", b"call_12345", b"file", b"file-", b"file-a b", b"", b"file-" + b"x" * 300])
def test_other_strings_are_no_ids(raw: bytes) -> None:
    assert IDS.seal(raw, IDS.place(caller(), ACCOUNT, False)) is None


GOOGLE = b"https://generativelanguage.googleapis.com/v1beta/"


@pytest.mark.parametrize("raw", [b"files/abc-123", b"cachedContents/x1", b"batches/9"])
def test_names_of_google_become_names_that_its_clients_take(raw: bytes) -> None:
    found, ctx = sealed(raw, caller("ann")), caller("ann")
    assert re.fullmatch(rb"[a-zA-Z]+/gw1[a-z2-7]+", found)
    assert IDS.opened(b"/v1beta/" + found + b":download?alt=media", ctx, False, None) == (
        b"/v1beta/" + raw + b":download?alt=media", False, ACCOUNT,
    )  # fmt: skip
    for text in (b'{"a":"%s"}', b'{"uri":"' + GOOGLE + b'%s"}'):
        assert IDS.opened(text % found, ctx, True, None) == (text % raw, False, ACCOUNT)
    assert IDS.seal(found, IDS.place(ctx, ACCOUNT, False)) is None
    assert sealed(GOOGLE + raw + b":download?alt=media", ctx) == GOOGLE + found + b":download?alt=media"
    assert isinstance(IDS.opened(b"/" + found, caller("bob"), False, None), Reply)
    for other in (found[:-1] + b"1", found.upper(), found + b"a"):
        assert IDS.opened(b"/" + other, ctx, False, None) == (b"/" + other, False, None)


def test_addresses_to_read_next_lead_to_the_gateway() -> None:
    place, results = IDS.place(caller(), ACCOUNT, False), b"https://api.anthropic.com/v1/messages/batches/msgbatch_0123/results"
    found = IDS.seal(results, place, b"http://gw:1")
    assert found is not None
    assert found.startswith(b"http://gw:1/v1/messages/batches/msgbatch_gw1_")
    assert IDS.opened(found[11:], caller(), False, None) == (results[25:], False, ACCOUNT)
    for other in (b"https://x/y", b"https://x/msgbatch_0123/results?a", b"https://x/other/results", b"http", b"ftp://x/msgbatch_0123/results"):
        assert IDS.seal(other, place, b"http://gw:1") is None


def test_uploads_are_bound_by_their_address() -> None:
    place = IDS.place(caller("ann"), ACCOUNT, False)
    url = b"https://generativelanguage.googleapis.com/upload/v1beta/files?upload_id=A-b_C.d&upload_protocol=resumable"
    found = IDS.upload(url, place, b"http://gw:1")
    assert b"A-b" not in found
    target = found.removeprefix(b"http://gw:1")
    assert IDS.opened(target, caller("ann"), False, None) == (
        b"/upload/v1beta/files?upload_id=A-b_C.d&upload_protocol=resumable", False, ACCOUNT,
    )  # fmt: skip
    assert isinstance(IDS.opened(target, caller("bob"), False, None), Reply)
    assert IDS.upload(b"nowhere", place, b"http://gw:1") == b"nowhere"


def test_ids_are_of_one_caller_or_of_nobody() -> None:
    mine, nobodys = sealed(b"file-abcd", caller("ann")), sealed(b"file-abcd", caller())
    for ctx in (caller("bob"), caller()):
        refused = IDS.opened(b"/" + mine, ctx, False, None)
        assert isinstance(refused, Reply)
        assert refused.status == 404
    assert IDS.opened(b"/" + nobodys, caller("bob"), False, None) == (b"/file-abcd", False, ACCOUNT)


def test_ids_of_two_accounts_do_not_meet() -> None:
    one, two = sealed(b"file-abcd", caller()), sealed(b"file-abcd", caller(), OTHER)
    refused = IDS.opened(b'["' + one + b'","' + two + b'"]', caller(), True, None)
    assert isinstance(refused, Reply)
    assert refused.status == 400
    assert isinstance(IDS.opened(b'["' + one + b'"]', caller(), True, OTHER), Reply)


def test_guards_are_remembered() -> None:
    assert IDS.opened(b"/" + sealed(b"resp_abcd", caller(), guarded=True), caller(), False, None) == (b"/resp_abcd", True, ACCOUNT)


def test_what_is_changed_or_stands_in_text_stays() -> None:
    found = sealed(b"file-abcd", caller())
    other = found[:-1] + (b"A" if found[-1:] != b"A" else b"B")
    moved = found.replace(b"file-", b"resp_")
    for text in (other, moved, found + b"A", found[:-4]):
        assert IDS.opened(b'"' + text + b'"', caller(), True, None) == (b'"' + text + b'"', False, None)
    told = b'"see ' + found + b' there"'
    assert IDS.opened(told, caller(), True, None) == (told, False, None)
    assert BoundIds(StableSealer(bytes(32), "test")).opened(b"/" + found, caller(), False, None) == (b"/" + found, False, None)
