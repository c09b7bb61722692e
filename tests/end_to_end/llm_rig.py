"""What the end-to-end tests of LLM routes share: the vendors' clients, and one gateway with its provider for a module."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anthropic
import httpx
import openai
from tests.end_to_end.provider_stand_in import Answer, StandIn, chat, whole
from tests.end_to_end.running import Gateway, Pool


def openai_client(running: Any) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{running.url}/v1", api_key="the client's own", max_retries=0, timeout=30)


def anthropic_client(running: Any) -> anthropic.Anthropic:
    return anthropic.Anthropic(base_url=running.url, api_key="the client's own", max_retries=0, timeout=30)


class Rig:
    """A gateway and its provider."""

    def __init__(self, running: Gateway, provider: StandIn) -> None:
        self.running = running
        self.provider = provider

    def answers(self, answer: Answer) -> None:
        """Set what the provider answers from now on."""
        self.provider.answers[:] = [answer]

    def post(self, body: Any, path: str = "/v1/chat/completions", **headers: str) -> httpx.Response:
        """Send JSON, or bytes as they are; `_` in names of headers is `-`."""
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        return httpx.post(self.running.url + path, content=raw, headers=given, timeout=30)


@contextlib.contextmanager
def served(
    folder: Path, text: str, environment: dict[str, str] | None = None, settings: str = ""
) -> Iterator[Gateway]:
    """A gateway for the tests of a module; nothing may have gone wrong in it."""
    running = Pool(lambda: folder).take(text, (1, json.dumps(environment or {}), settings))
    try:
        yield running
    finally:
        running.stop()
    assert "Traceback" not in running.log()


@contextlib.contextmanager
def stand_ins(*firsts: Answer) -> Iterator[list[StandIn]]:
    """Providers, one for each answer."""
    found = [StandIn(first) for first in firsts]
    try:
        yield found
    finally:
        for one in found:
            one.close()


@contextlib.contextmanager
def rigged(folder: Path, text: str) -> Iterator[tuple[Gateway, StandIn]]:
    """A gateway with a provider at BACKEND."""
    with stand_ins(whole(chat())) as [provider], served(folder, text.replace("BACKEND", str(provider.port))) as running:
        yield running, provider


def starter() -> Iterator[Callable[..., StandIn]]:
    """The body of the fixture `stand_in`."""
    with contextlib.ExitStack() as stack:

        def start(*answers: Answer) -> StandIn:
            found = StandIn(*answers)
            stack.callback(found.close)
            return found

        yield start
