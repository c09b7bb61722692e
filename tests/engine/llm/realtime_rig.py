"""What tests of realtime and others share."""

from __future__ import annotations

import json


def frame(payload: bytes, opcode: int = 1, final: bool = True) -> bytes:
    head = bytes([opcode | (128 if final else 0)])
    if len(payload) < 126:
        return head + bytes([len(payload)]) + payload
    if len(payload) < 65536:
        return head + b"\x7e" + len(payload).to_bytes(2, "big") + payload
    return head + b"\x7f" + len(payload).to_bytes(8, "big") + payload


def done(tokens_in: int, tokens_out: int, pad: str = "") -> bytes:
    usage = {
        "total_tokens": tokens_in + tokens_out, "input_tokens": tokens_in, "output_tokens": tokens_out,
        "input_token_details": {"text_tokens": 1, "audio_tokens": 2, "cached_tokens": 3},
        "output_token_details": {"text_tokens": 4, "audio_tokens": 5},
    }  # fmt: skip
    return json.dumps({"type": "response.done", "response": {"pad": pad, "model": "r", "usage": usage}}).encode()

DELTA = json.dumps({"type": "response.audio.delta", "delta": "a" * 200}).encode()
