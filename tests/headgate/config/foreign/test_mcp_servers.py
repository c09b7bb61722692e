"""`mcpServers` of MCP clients."""

from __future__ import annotations

from typing import Any

import pytest

from headgate.config.foreign.mcp_servers import SECTIONS, mcp_servers
from headgate.config.foreign.notes import ImportNotes
from headgate.config.load import TextSource, load
from headgate.document.write import write


def targets(servers: Any, section: str = "mcpServers", **more: Any) -> tuple[list[Any], list[str]]:
    notes = ImportNotes()
    tree = mcp_servers({section: servers, **more}, notes)
    load(TextSource(write(tree)), environ={"TOKEN": "t", "A": "1", "API_KEY": "k"})
    assert tree["gateways"] == {"default": {"port": 3000}}
    return tree["mcp"]["targets"], notes.lines


@pytest.mark.parametrize("section", SECTIONS)
def test_programs(section: str) -> None:
    found, notes = targets({"files": {"command": "npx", "args": ["-y", "@x/server", "/tmp"], "env": {"TOKEN": "${TOKEN}", "PRICE": "$5"}}}, section)
    assert found == [
        {"name": "files", "stdio": {"cmd": "npx", "args": ["-y", "@x/server", "/tmp"], "env": {"TOKEN": "${TOKEN}", "PRICE": "$$5"}}}
    ]
    assert notes == []


def test_a_folder_of_a_program() -> None:
    assert targets({"a": {"command": "./run", "cwd": "/srv"}})[0] == [{"name": "a", "stdio": {"cmd": "env", "args": ["-C", "/srv", "./run"]}}]


@pytest.mark.parametrize(("server", "kind"), [
    ({"url": "https://a.example/mcp"}, "mcp"), ({"url": "https://a.example/sse"}, "sse"), ({"url": "https://a.example/sse", "type": "http"}, "mcp"),
    ({"url": "https://a.example/x", "type": "sse"}, "sse"), ({"serverUrl": "https://a.example/sse/"}, "sse"), ({"httpUrl": "https://a.example/mcp"}, "mcp"),
    ({"url": "https://a.example/mcp", "transport": "streamable-http"}, "mcp"),
])  # fmt: skip
def test_addresses(server: dict[str, str], kind: str) -> None:
    url = server.get("url") or server.get("serverUrl") or server.get("httpUrl")
    assert targets({"a": server})[0] == [{"name": "a", kind: {"host": url}}]


def test_header_fields_are_policies() -> None:
    found, _ = targets({"a": {"url": "https://a.example/mcp", "headers": {"Authorization": "Bearer ${TOKEN}", "X-A": "${env:A}"}}})
    assert found[0]["policies"] == {"backendAuth": {"key": "${TOKEN}"}, "requestHeaderModifier": {"set": {"X-A": "${A}"}}}


def test_questions_of_a_client_are_variables() -> None:
    found, notes = targets({"a": {"command": "x", "env": {"K": "${input:api-key}", "D": "${A:-b}"}}}, "servers", inputs=[{"id": "api-key"}])
    assert found[0]["stdio"]["env"] == {"K": "${API_KEY}", "D": "${A:-b}"}
    assert notes == ["servers.a.env.K: asks for a value: set the environment variable API_KEY"]


def test_names_that_a_target_may_not_have() -> None:
    found, notes = targets({"My Server": {"command": "a"}, "my_server": {"command": "b"}, "??": {"command": "c"}})
    assert [one["name"] for one in found] == ["my-server", "my-server-2", "server"]
    assert len(notes) == 3


def test_what_is_left_out_is_told() -> None:
    _, notes = targets(
        {"ok": {"command": "a", "alwaysAllow": ["x"], "odd": 1}, "off": {"command": "a", "disabled": True}, "none": {}, "text": "x"}, theme="dark"
    )
    assert [line.partition(": ")[0] for line in notes] == [
        "mcpServers.ok.alwaysAllow", "mcpServers.ok.odd", "mcpServers.off", "mcpServers.none", "mcpServers.text", "theme",
    ]  # fmt: skip


@pytest.mark.parametrize("source", [{}, {"mcpServers": []}, {"mcpServers": {}}, {"mcpServers": {"a": {}}}])
def test_no_servers_are_an_error(source: Any) -> None:
    with pytest.raises(ValueError, match="server"):
        mcp_servers(source, ImportNotes())
