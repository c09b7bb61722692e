"""Bodies of 16 MiB with pictures: they arrive as they were sent, and a worker's memory stays bounded."""

from __future__ import annotations

import base64
import random
from pathlib import Path
from typing import Any

from tests.end_to_end.llm_rig import anthropic_client, openai_client
from tests.end_to_end.processes import children_of
from tests.end_to_end.provider_stand_in import chat, message, whole

CONFIG = """
frontendPolicies: {http: {maxBufferSize: 33554432}}
gateways:
  default: {port: {port}}
llm:
  models:
  - {name: "gpt-*", provider: openai, params: {baseUrl: "http://127.0.0.1:FIRST/v1", apiKey: k}}
  - {name: "claude-*", provider: anthropic, params: {baseUrl: "http://127.0.0.1:SECOND", apiKey: k}}
"""
MIB = 1 << 20
PICTURES = [base64.b64encode(random.Random(number).randbytes(3 * MIB // 2)).decode() for number in range(8)]


def peak(pid: int) -> int:
    """The most memory a process has had, in bytes."""
    status = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) << 10 for line in status.splitlines() if line.startswith("VmHWM"))


def of_messages() -> list[Any]:
    sources = [{"type": "base64", "media_type": "image/png", "data": data} for data in PICTURES]
    return [{"role": "user", "content": [{"type": "image", "source": source} for source in sources]}]


def of_chat() -> list[Any]:
    urls = [{"url": f"data:image/png;base64,{data}"} for data in PICTURES]
    return [{"role": "user", "content": [{"type": "image_url", "image_url": url} for url in urls]}]


def test_sixteen_mebibytes_of_pictures_pass(gateway, stand_in) -> None:
    first, second = stand_in(whole(chat())), stand_in(whole(message()))
    running = gateway(CONFIG.replace("FIRST", str(first.port)).replace("SECOND", str(second.port)))
    ways: list[tuple[Any, str, Any]] = [
        (openai_client(running).chat.completions, "gpt-x", of_chat()),
        (openai_client(running).chat.completions, "claude-x", of_chat()),
        (anthropic_client(running).messages, "claude-x", of_messages()),
        (anthropic_client(running).messages, "gpt-x", of_messages()),
    ]

    def ask() -> None:
        for client, model, turns in ways:
            client.create(model=model, max_tokens=9, messages=turns)
            provider = first if model == "gpt-x" else second
            seen = provider.last.json["messages"][0]["content"]
            assert len(provider.last.body) > 16 * MIB
            assert [(one.get("image_url") or {}).get("url", "")[22:] or one["source"]["data"] for one in seen] == PICTURES

    before = {pid: peak(pid) for pid in children_of(running.process.pid)}
    ask()
    once = {pid: peak(pid) for pid in before}
    for _ in range(3):
        ask()
    assert max(once[pid] - before[pid] for pid in before) < 10 * 16 * MIB
    assert max(peak(pid) - once[pid] for pid in before) < 2 * 16 * MIB
