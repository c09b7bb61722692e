"""Sound that a model makes, between chat completions and Gemini: in requests, and in answers, whole and streamed."""

from __future__ import annotations

import base64
import io
import json
import wave
from typing import Any

import pytest
from llm_sdk_shapes import shape_faults
from openai.types.chat import ChatCompletion

from headgate.dialect.llm import pairs, sound
from headgate.dialect.llm.contract import Options, Untranslatable

Json = dict[str, Any]
SAMPLES = bytes(range(200))
RAW = base64.b64encode(SAMPLES).decode()
USER = {"role": "user", "content": "say hello"}
CHAT: Json = {"model": "m", "messages": [USER], "modalities": ["text", "audio"]}
VOICE = {"voiceConfig": {"prebuiltVoiceConfig": {"voiceName": "Kore"}}}


def request(client: str, upstream: str, body: Json, **options: Any) -> Any:
    return pairs.PAIRS[client, upstream].request(body, Options(**{"model": "m", "vendor": "v", **options}))


def gemini_body(**config: Any) -> Json:
    return {"contents": [{"role": "user", "parts": [{"text": "say hello"}]}], "generationConfig": config}


def gemini_answer(*parts: Json) -> Json:
    return {"responseId": "r", "candidates": [
        {"index": 0, "finishReason": "STOP", "content": {"role": "model", "parts": list(parts)}}]}  # fmt: skip


def piece(data: bytes = SAMPLES, media_type: str = sound.PCM16) -> Json:
    return {"inlineData": {"mimeType": media_type, "data": base64.b64encode(data).decode()}}


def lines_of(out: bytes) -> list[Json]:
    return [json.loads(line[6:]) for line in out.decode().splitlines() if line.startswith("data: {")]


def streamed(pair: pairs.Converter, asked: Any, *events: Json) -> tuple[list[Json], bool]:
    stream = pair.stream(asked)
    out = b"".join(stream.event(None, json.dumps(event).encode()) for event in events) + stream.end(None)
    assert stream.failed is None
    return lines_of(out), stream.untold


@pytest.mark.parametrize(
    ("media_type", "pcm"),
    [("audio/L16;codec=pcm;rate=24000", (24_000, 1)), ("audio/pcm; rate=16000;channels=2", (16_000, 2)),
     ("audio/l16", (24_000, 1)), ("audio/pcm;rate=0", None), ("audio/wav", None), ("audio/pcmu", None), ("", None)],
)  # fmt: skip
def test_media_types_say_what_the_samples_are(media_type: str, pcm: tuple[int, int] | None) -> None:
    assert sound.pcm_of(media_type) == pcm


def test_a_wav_file_is_one_to_python() -> None:
    made = sound.as_wav("audio/pcm;rate=16000;channels=2", RAW)
    assert made is not None
    with wave.open(io.BytesIO(base64.b64decode(made))) as file:
        assert (file.getframerate(), file.getnchannels(), file.getsampwidth()) == (16_000, 2, 2)
        assert file.readframes(999) == SAMPLES
    assert sound.as_wav("audio/mpeg", RAW) is None
    assert sound.as_wav("audio/pcm", "?") is None


@pytest.mark.parametrize(
    ("voice", "speech", "lost"),
    [("Kore", VOICE, ()), ("alloy", None, ("audio.voice",)), ({"id": "voice_1"}, None, ("audio.voice",))],
)  # fmt: skip
def test_chat_asks_gemini_for_sound(voice: Any, speech: Json | None, lost: tuple[str, ...]) -> None:
    asked = request("completions", "gemini", {**CHAT, "audio": {"voice": voice, "format": "wav"}})
    assert asked.body["generationConfig"] == {"responseModalities": ["AUDIO"], **({"speechConfig": speech} if speech else {})}
    assert (asked.dropped, asked.sound) == (lost, "wav")
    assert shape_faults("gemini", asked.body) == []


@pytest.mark.parametrize(
    ("members", "field"),
    [({"audio": {"voice": "Kore", "format": "mp3"}}, "audio.format"), ({"audio": {"voice": "Kore"}}, "audio.format"),
     ({"audio": {"voice": "Kore", "format": "wav"}, "stream": True}, "audio.format"),
     ({"modalities": ["text", "scent"]}, "modalities")],
)  # fmt: skip
def test_what_gemini_does_not_make_is_refused(members: Json, field: str) -> None:
    with pytest.raises(Untranslatable) as refused:
        request("completions", "gemini", {**CHAT, **members})
    assert refused.value.field == field


def test_pictures_are_asked_for_as_well() -> None:
    asked = request("completions", "gemini", {**CHAT, "modalities": ["image", "text"]})
    assert asked.body["generationConfig"] == {"responseModalities": ["IMAGE", "TEXT"]}
    back = request("gemini", "completions", gemini_body(responseModalities=["TEXT", "IMAGE"]), vendor="openrouter")
    assert back.body["modalities"] == ["text", "image"]
    told = request("gemini", "completions", gemini_body(responseModalities=["TEXT", "IMAGE"]), vendor="openai")
    assert "modalities" not in told.body
    assert told.dropped == ("generationConfig.responseModalities",)


@pytest.mark.parametrize("form", ["wav", "pcm16"])
def test_gemini_s_sound_is_what_chat_asked_for(form: str) -> None:
    pair = pairs.PAIRS["completions", "gemini"]
    asked = request("completions", "gemini", {**CHAT, "audio": {"voice": "Kore", "format": form}})
    reply = pair.reply(gemini_answer(piece(SAMPLES[:100]), piece(SAMPLES[100:])), asked)
    told = ChatCompletion.model_validate(reply).choices[0].message
    assert told.content is None
    assert told.audio is not None
    data = base64.b64decode(told.audio.data)
    assert data == SAMPLES if form == "pcm16" else data[44:] == SAMPLES and data[:4] == b"RIFF"
    assert not asked.untold


def test_gemini_s_sound_is_streamed() -> None:
    pair = pairs.PAIRS["completions", "gemini"]
    asked = request("completions", "gemini", {**CHAT, "stream": True, "audio": {"voice": "Kore", "format": "pcm16"}})
    lines, untold = streamed(pair, asked, gemini_answer(piece(SAMPLES[:100])), gemini_answer(piece(SAMPLES[100:])))
    told = [choice["delta"]["audio"] for line in lines for choice in line["choices"] if "audio" in choice["delta"]]
    assert b"".join(base64.b64decode(one["data"]) for one in told) == SAMPLES
    assert len({one["id"] for one in told}) == 1
    assert not untold


@pytest.mark.parametrize(
    ("media_type", "form"),
    [("audio/L16;rate=16000", "pcm16"), ("audio/mpeg", "wav"), ("audio/mpeg", "pcm16"), (sound.PCM16, None)],
)  # fmt: skip
@pytest.mark.parametrize("stream", [False, True])
def test_sound_that_cannot_be_told_is_marked(media_type: str, form: str | None, stream: bool) -> None:
    if stream and form == "wav":
        form = "pcm16"
    pair = pairs.PAIRS["completions", "gemini"]
    body = {**CHAT, "stream": stream, "audio": {"voice": "Kore", "format": form}} if form else {"messages": [USER]}
    asked = request("completions", "gemini", body)
    answer = gemini_answer({"text": "yes"}, piece(media_type=media_type))
    if stream:
        _, untold = streamed(pair, asked, answer)
        assert untold
        return
    assert "audio" not in pair.reply(answer, asked)["choices"][0]["message"]
    assert asked.untold


@pytest.mark.parametrize(
    ("speech", "voice", "lost"),
    [(None, "alloy", ()), (VOICE, "alloy", ("generationConfig.speechConfig.voiceConfig",)),
     ({"voice_config": {"prebuilt_voice_config": {"voice_name": "marin"}}, "languageCode": "en-US"}, "marin",
      ("generationConfig.speechConfig.languageCode",))],
)  # fmt: skip
def test_gemini_asks_chat_for_sound(speech: Json | None, voice: str, lost: tuple[str, ...]) -> None:
    config = {"responseModalities": ["AUDIO"], **({"speech_config": speech} if speech else {})}
    asked = request("gemini", "completions", gemini_body(**config))
    assert asked.body["modalities"] == ["text", "audio"]
    assert asked.body["audio"] == {"voice": voice, "format": "pcm16"}
    assert asked.dropped == lost
    assert shape_faults("completions", asked.body) == []
    for upstream in ("messages", "responses", "converse"):
        told = request("gemini", upstream, gemini_body(**config))
        assert "generationConfig.responseModalities" in told.dropped
        assert "modalities" not in told.body


HEARD = {"id": "audio_1", "data": RAW, "expires_at": 1, "transcript": "hello"}


@pytest.mark.parametrize("client", ["gemini", "messages", "responses", "text"])
def test_chat_s_sound_reaches_gemini_s_clients_and_its_words_all(client: str) -> None:
    pair = pairs.PAIRS[client, "completions"]
    body = {"gemini": gemini_body(responseModalities=["AUDIO"]), "messages": {"max_tokens": 9, "messages": [USER]},
            "responses": {"input": "a"}, "text": {"prompt": "a"}}[client]  # fmt: skip
    asked = pair.request(body, Options(model="m", stream=True))
    message = {"role": "assistant", "content": None, "audio": HEARD}
    whole = {"id": "c", "model": "m", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
    chunks = [{"id": "c", "model": "m", "choices": [{"index": 0, "delta": {"audio": one}, "finish_reason": None}]}
              for one in ({"id": "audio_1", "transcript": "hel"}, {"data": RAW}, {"transcript": "lo"}, {"expires_at": 1})]
    chunks.append({"id": "c", "model": "m", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    told = json.dumps(pair.reply(whole, asked))
    lines, untold = streamed(pair, asked, *chunks)
    assert "hello" in told
    assert "lo" in json.dumps(lines)
    assert (untold, asked.untold) == ((False, False) if client == "gemini" else (True, True))
    if client == "gemini":
        part = {"inlineData": {"mimeType": sound.PCM16, "data": RAW}}
        assert json.dumps(part) in told
        assert json.dumps(part) in json.dumps(lines)


def test_pcm_that_the_user_shows_is_a_wav_file_in_chat() -> None:
    body = {"contents": [{"role": "user", "parts": [piece(media_type="audio/pcm;rate=16000")]}]}
    part = request("gemini", "completions", body).body["messages"][0]["content"][0]
    assert part["input_audio"]["format"] == "wav"
    assert base64.b64decode(part["input_audio"]["data"])[44:] == SAMPLES
