"""Calls that are answered from a script instead of by an endpoint."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any
from urllib.parse import parse_qsl

from headgate.policy.cloud.calls import Calls, CloudResponse


class Scripted(Calls):
    """`answers`: (status, document); the last of them for ever. `seen`: method, URL, headers and form of each call."""

    def __init__(self, *answers: tuple[int, Any]) -> None:
        super().__init__()
        self.answers = list(answers)
        self.seen: list[tuple[str, str, dict[str, str], dict[str, str]]] = []

    async def call(
        self,
        method: str,
        url: str,
        headers: Iterable[tuple[str, str]] = (),
        body: bytes | None = None,
        seconds: float = 5.0,
    ) -> CloudResponse:
        self.seen.append((method, url, dict(headers), dict(parse_qsl((body or b"").decode()))))
        status, told = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        raw = told if isinstance(told, bytes) else json.dumps(told).encode()
        return CloudResponse(status, {"content-type": "application/json", "metadata-flavor": "Google"}, raw)
