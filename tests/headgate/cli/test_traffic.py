"""What commands read of the traffic of a gateway."""

from __future__ import annotations

import json
from typing import Any

import click
import pytest
from tests.headgate.cli.traffic_rig import STATE, TARGETS

from headgate.cli import admin_client, top_views, traffic
from headgate.cli.admin_client import AdminReply


def answering(monkeypatch: pytest.MonkeyPatch, status: int, document: Any) -> None:
    def ask(_port: int, _method: str, path: str, *_more: Any) -> AdminReply:
        if path == "/api/mcp":
            return AdminReply(status, json.dumps(document).encode())
        return AdminReply(200, json.dumps({**STATE, "targets": {"mcp": [{}]}} if path == "/api/state" else {}).encode())

    for module in (admin_client, traffic, top_views):
        monkeypatch.setattr(module, "ask", ask)


def test_an_older_gateway_is_told_from_one_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    for status, said in ((404, "this gateway is older than gwctl: it has no /api/mcp"), (503, "unexpected status code: 503")):
        answering(monkeypatch, status, {})
        with pytest.raises(click.ClickException, match=said):
            traffic.read_mcp(1)
        found = top_views.fetch(1)
        assert found.missing["sessions"].startswith(said)
        assert found.targets == []


def test_texts_of_servers_do_not_reach_a_terminal_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = {"name": "a\x1b[2J", "version": "1\ud800", "protocol": None, "error": "b\x9bc\u202e"}
    answering(monkeypatch, 200, {"targets": [{**TARGETS[0], **texts}]})
    shown = {"name": "a?[2J", "version": "1?", "protocol": None, "error": "b?c?"}
    for rows in (traffic.read_mcp(1), top_views.fetch(1).targets):
        assert {key: rows[0][key] for key in shown} == shown
        json.dumps(rows, ensure_ascii=False).encode()
