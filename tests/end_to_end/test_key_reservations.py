"""What is reserved for pictures, sound, files and several answers, before a provider is asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.end_to_end.conftest import Gateway
from tests.end_to_end.provider_stand_in import StandIn, whole
from tests.end_to_end.provider_stand_in import chat as answer
from tests.end_to_end.stored_rig import ask
from tests.end_to_end.virtual_keys_rig import FILE, Start, chat, make, settings

USAGE = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}


@pytest.fixture
def provider(stand_in: Any) -> StandIn:
    found: StandIn = stand_in(whole(answer() | {"usage": USAGE}))
    return found


@pytest.fixture
def running(gateway: Start, provider: StandIn, tmp_path: Path) -> Gateway:
    text = FILE.replace("PORT", str(provider.port))
    text += "virtualKeys: {assumedOutputTokens: 100, assumedImageTokens: 3000, assumedInputTokens: 5000}\n"
    return gateway(text, settings=settings(f"sqlite://{tmp_path}/keys.db"))


def asked(running: Gateway, key: str, *parts: dict[str, Any], **more: Any) -> int:
    content = [{"type": "text", "text": "hi"}, *parts]
    return chat(running, key, messages=[{"role": "user", "content": content}], max_tokens=7, **more).status_code


def test_parts_that_are_no_text_are_reserved(running: Gateway, provider: StandIn) -> None:
    """Of a picture and a file that is only named what is configured, of sound and files what they may have by their size."""
    key = make(running, "ci", limits=[{"tokens": 4000, "per": "day"}])
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    named = {"type": "file", "file": {"file_id": "file-1"}}
    wav = {"type": "input_audio", "input_audio": {"format": "wav", "data": "UklGR" + "A" * 400_000}}
    mp3 = {"type": "input_audio", "input_audio": {"format": "mp3", "data": "SUQz" + "A" * 400_000}}
    pdf = {"type": "file", "file": {"file_data": "data:application/pdf;base64,JVBERi" + "A" * 6000}}
    assert [asked(running, key, *parts) for parts in ((picture, picture), (named,), (mp3,), (pdf,))] == [429] * 4
    assert provider.seen == []
    assert [asked(running, key, *parts) for parts in ((picture,), (wav,), ())] == [200] * 3
    # What the provider counted takes the place of all that.
    usage = ask(running, "GET", "/api/keys/ci")[1]["usage"]
    assert (usage["day"]["tokens"], usage["reserved"]["tokens"]) == (3 * 18, 0)


def test_answers_multiply_a_reservation_and_names_in_schemas_do_not(running: Gateway, provider: StandIn) -> None:
    key = make(running, "ci", limits=[{"tokens": 300, "per": "day"}])
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "default": {"n": 50}}
    tools = [{"type": "function", "function": {"name": "f", "parameters": schema}}]
    assert [asked(running, key, tools=tools), asked(running, key, n=50)] == [200, 429]
    # Each prompt of the older format has an answer of its own.
    body = {"model": "real", "prompt": ["a"] * 50, "max_tokens": 7}
    found = httpx.post(f"{running.url}/v1/completions", json=body, headers={"authorization": f"Bearer {key}"}, timeout=60)
    assert found.status_code == 429
    assert len(provider.seen) == 1


def test_pictures_that_are_made_and_sound_that_is_sent_are_reserved(running: Gateway, provider: StandIn) -> None:
    made = {"created": 1, "data": [], "usage": {"input_tokens": 11, "output_tokens": 7, "total_tokens": 18}}
    provider.answers[:] = [whole(made)]
    key = make(running, "ci", limits=[{"tokens": 10_000, "per": "day"}])
    fields = {"authorization": f"Bearer {key}"}

    def post(path: str, **what: Any) -> int:
        return httpx.post(f"{running.url}/v1/{path}", headers=fields, timeout=60, **what).status_code

    picture = {"model": "real", "prompt": "a cat"}
    assert [post("images/generations", json=picture | {"n": 2}), post("images/generations", json=picture)] == [429, 200]
    assert ask(running, "GET", "/api/keys/ci")[1]["usage"]["day"]["tokens"] == 18
    form = {"model": "real"}
    long, short = ({"file": ("a.mp3", b"ID3" + b"A" * size)} for size in (500_000, 5_000))
    codes = [post("audio/transcriptions", data=form, files=one) for one in (long, short)]
    assert codes == [429, 200]
    assert [post("audio/speech", json={"model": "real", "input": "word " * 2000}), post("audio/speech", json={"model": "real", "input": "hi"})] == [429, 200]
