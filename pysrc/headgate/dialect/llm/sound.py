"""Sound that a model makes, between chat completions and Gemini.

    chat     `modalities`, `audio` of a request (voice, format), `audio` of a message and of a streamed delta
             (https://platform.openai.com/docs/guides/audio)
    Gemini   `responseModalities`, `speechConfig`, parts of `inlineData`
             (https://ai.google.dev/gemini-api/docs/speech-generation)

Gemini's models make PCM (16 bits, little-endian, 24 kHz, one channel as a rule), which is `pcm16` of chat completions,
or with a header `wav`. Other formats would have to be encoded, and are refused.
"""

from __future__ import annotations

import base64
import binascii
import re
import struct
from collections.abc import Sequence
from typing import Final, NamedTuple

from headgate.dialect.llm import fields
from headgate.dialect.llm.contract import Json, Untranslatable

# What `pcm16` of chat completions is in Google's words.
PCM16: Final = "audio/L16;codec=pcm;rate=24000"
RATE: Final = 24_000
_PCM: Final = re.compile(r"audio/(?:l16|pcm|x-pcm)\s*(?:;|$)", re.IGNORECASE)
_PARAMETER: Final = re.compile(r";\s*(rate|channels)\s*=\s*(\d{1,6})", re.IGNORECASE)
FORMATS: Final = ("wav", "pcm16")
# Voices of OpenAI's, which Google does not know, and Google's, which OpenAI does not know.
OPENAI_VOICES: Final = fields.words("alloy ash ballad cedar coral echo fable marin nova onyx sage shimmer verse")
GOOGLE_VOICES: Final = fields.words(
    "achernar achird algenib algieba alnilam aoede autonoe callirrhoe charon despina enceladus erinome fenrir gacrux "
    "iapetus kore laomedeia leda orus puck pulcherrima rasalgethi sadachbia sadaltager schedar sulafat umbriel "
    "vindemiatrix zephyr zubenelgenubi"
)
# OpenAI wants one to be named.
DEFAULT_VOICE: Final = "alloy"
MODALITIES: Final = ("TEXT", "IMAGE", "AUDIO")


class Pcm(NamedTuple):
    """Samples of 16 bits: how many a second, and of how many channels."""

    rate: int
    channels: int


def pcm_of(media_type: str) -> Pcm | None:
    """Return what a media type says of PCM; None for any other."""
    if not _PCM.match(media_type):
        return None
    told = {name.lower(): int(value) for name, value in _PARAMETER.findall(media_type)}
    found = Pcm(told.get("rate", RATE), told.get("channels", 1))
    return found if found.rate and 0 < found.channels < 256 else None


def wav(samples: bytes, pcm: Pcm) -> bytes:
    """Return PCM as a WAV file (RIFF, format 1, 16 bits)."""
    frame = 2 * pcm.channels
    form = struct.pack("<4sIHHIIHH", b"fmt ", 16, 1, pcm.channels, pcm.rate, pcm.rate * frame, frame, 16)
    data = struct.pack("<4sI", b"data", len(samples)) + samples
    return struct.pack("<4sI4s", b"RIFF", 4 + len(form) + len(data), b"WAVE") + form + data


def as_wav(media_type: str, data: str) -> str | None:
    """Return PCM in Base64 as a WAV file in Base64; None for what is no PCM, or no Base64."""
    pcm = pcm_of(media_type)
    if pcm is None:
        return None
    try:
        samples = base64.b64decode(data, validate=True)
    except binascii.Error:
        return None
    return base64.b64encode(wav(samples, pcm)).decode()


def for_chat(pieces: Sequence[tuple[str, str]], form: str) -> str | None:
    """Return (media type, Base64) pieces as one sound in a format of chat completions, in Base64.

    None if they cannot be told in it, or the client has asked for no sound (`form` is "").
    """
    kinds = {pcm_of(media_type) for media_type, _ in pieces}
    if len(kinds) != 1:
        return None
    pcm = kinds.pop()
    try:
        samples = b"".join(base64.b64decode(data, validate=True) for _, data in pieces)
    except binascii.Error:
        return None
    if form == "wav":
        if pcm is None:
            whole = all(media_type.lower().startswith(("audio/wav", "audio/x-wav")) for media_type, _ in pieces)
            return pieces[0][1] if whole and len(pieces) == 1 else None
        return base64.b64encode(wav(samples, pcm)).decode()
    if form == "pcm16" and pcm == Pcm(RATE, 1):
        return base64.b64encode(samples).decode()
    return None


def piece_for_chat(media_type: str, data: str) -> str | None:
    """Return a streamed piece for a client of chat completions, which get `pcm16` alone; None: it cannot be told."""
    return for_chat([(media_type, data)], "pcm16")


def wanted(client: str, upstream: str, body: Json) -> str:
    """Return the format of sound that a client of chat completions gets from Gemini, "" if it asks for none."""
    audio = body.get("audio")
    if (client, upstream) != ("completions", "gemini") or not isinstance(audio, dict):
        return ""
    modalities = body.get("modalities")
    heard = isinstance(modalities, list) and "audio" in modalities
    return str(audio.get("format") or "") if heard else ""


def to_gemini(body: Json, config: Json, dropped: list[str]) -> None:
    """Set `responseModalities` and `speechConfig` for a request of chat completions. Raises Untranslatable."""
    modalities = [word.upper() for word in fields.texts(body, "modalities")]
    for word in modalities:
        if word not in MODALITIES:
            raise Untranslatable("modalities", f"{word.lower()!r} cannot be carried")
    if "AUDIO" in modalities:
        # Its models that speak do not write as well; OpenAI's want both to be named.
        modalities.remove("AUDIO")
        modalities = ["AUDIO", *(word for word in modalities if word != "TEXT")]
    if modalities and modalities != ["TEXT"]:
        config["responseModalities"] = modalities
    audio = fields.obj(body, "audio")
    if audio is None:
        return
    form = fields.text(audio, "format", "audio")
    if "AUDIO" in modalities and form not in FORMATS:
        raise Untranslatable("audio.format", "must be wav or pcm16: the provider supports no other format")
    if "AUDIO" in modalities and form == "wav" and fields.flag(body, "stream"):
        raise Untranslatable("audio.format", "must be pcm16 for a stream")
    voice = audio.get("voice")
    if isinstance(voice, str) and voice.lower() not in OPENAI_VOICES:
        config["speechConfig"] = {"voiceConfig": {"prebuiltVoiceConfig": {"voiceName": voice}}}
    elif voice is not None:
        dropped.append("audio.voice")


def of_gemini(config: Json, out: Json, images: bool, dropped: list[str]) -> None:
    """Set `modalities` and `audio` for the `generationConfig` of Gemini. `images`: the vendor makes pictures so."""
    at = "generationConfig"
    modalities = [word.lower() for word in fields.texts(config, "responseModalities", at)]
    heard = "audio" in modalities
    shown = "image" in modalities and images
    if set(modalities) - {"text", "audio"} - ({"image"} if images else set()):
        dropped.append(f"{at}.responseModalities")
    if heard or shown:
        out["modalities"] = ["text", *(["image"] if shown else []), *(["audio"] if heard else [])]
    speech = fields.obj(config, "speechConfig", at)
    if heard or speech is not None:
        out["audio"] = {"voice": _voice(speech or {}, f"{at}.speechConfig", dropped), "format": "pcm16"}


def _voice(speech: Json, at: str, dropped: list[str]) -> str:
    """Return the voice, or OpenAI's first one in the place of one that OpenAI does not know."""
    dropped += [f"{at}.{name}" for name in speech if name != "voiceConfig"]
    config = fields.obj(speech, "voiceConfig", at) or {}
    built = fields.obj(config, "prebuiltVoiceConfig", f"{at}.voiceConfig") or {}
    voice = fields.text(built, "voiceName", f"{at}.voiceConfig.prebuiltVoiceConfig")
    if voice is not None and voice.lower() not in GOOGLE_VOICES:
        return voice
    if config:
        dropped.append(f"{at}.voiceConfig")
    return DEFAULT_VOICE
