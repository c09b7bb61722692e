"""What policy servers are said to be asked about is what they are asked about."""

from __future__ import annotations

from typing import Any

from headgate.backend.mcp.guardrails.coverage import NEVER, rows
from headgate.backend.mcp.guardrails.processor import Processor
from headgate.dialect.mcp.methods import REQUESTS
from headgate.ir.mcp_guardrails import GuardrailProcessor
from headgate.ir.remote_service import RemoteService

METHODS: Any = (
    ("tools/*", "full"), ("*/list", "response"), ("ping", "off"), ("initialize", "request"), ("tasks/*", "full"),
    ("resources/subscribe", "full"), ("tools/list", "request"),
)  # fmt: skip


def test_rows_follow_the_processor() -> None:
    spec = GuardrailProcessor(service=RemoteService(kind="host", name="policy:1"), methods=METHODS)
    processor = Processor(spec, service=None, metadata=())  # type: ignore[arg-type]
    found = {(method, row["side"]): row for row in rows([spec]) for method in str(row["text"]).split(", ")}
    for method in REQUESTS:
        assert (found[method, "request"]["seen"] != "no") == processor.checks_request(method), method
        assert (found[method, "response"]["seen"] == "yes") == processor.checks_response(method), method
    assert found["tools/call", "request"]["seen"] == "yes"
    assert found["tools/list", "request"] | {"text": ""} == {
        "side": "request", "number": 1, "guard": "mcpGuardrails: policy:1", "shape": "mcp", "text": "", "formats": ["mcp"],
        "seen": "refusals", "why": "checked without their params",
    }  # fmt: skip
    assert found["tasks/get", "request"]["why"] == "they have no request phase"
    assert found[NEVER.split(", ")[0], "response"]["seen"] == "no"


def test_a_list_of_changes_is_asked_about_once() -> None:
    spec = GuardrailProcessor(service=RemoteService(kind="host", name="policy:1"), methods=(("*", "full"),))
    [seen] = [row for row in rows([spec]) if row["side"] == "response" and row["text"] == "subscriptions/listen"]
    assert (seen["seen"], seen["why"]) == ("no", "it has no response phase")
