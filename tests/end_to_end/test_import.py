"""A gateway on a configuration that was imported, with the clients that used the other program."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import openai
import pytest
from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client
from tests.end_to_end.provider_stand_in import chat, reset, whole

MESSAGES: Any = [{"role": "user", "content": "hi"}]


def imported(kind: str, source: Path) -> str:
    """The configuration for a port that the test chooses."""
    done = subprocess.run(
        [sys.executable, "-m", "headgate.cli.main", "import", kind, str(source), "--port", "4999"], capture_output=True, text=True, check=True
    )
    return done.stdout.replace("4999", "{port}")


def test_models_of_litellm(gateway, stand_in, tmp_path: Path) -> None:
    first, second = stand_in(reset), stand_in(whole(chat("from the second")))
    source = tmp_path / "config.yaml"
    source.write_text(f"""
model_list:
- {{model_name: chat, litellm_params: {{model: openai/one, api_base: "http://127.0.0.1:{first.port}/v1", api_key: key-one}}}}
- {{model_name: spare, litellm_params: {{model: hosted_vllm/two, api_base: "http://127.0.0.1:{second.port}/v1", api_key: key-two}}}}
litellm_settings: {{fallbacks: [{{chat: [spare]}}]}}
general_settings: {{master_key: sk-1234}}
""")
    running = gateway(imported("litellm", source))
    client = openai.OpenAI(base_url=f"{running.url}/v1", api_key="sk-1234", max_retries=0)
    answer = client.chat.completions.create(model="chat", messages=MESSAGES)
    assert answer.choices[0].message.content == "from the second"
    assert [first.last.json["model"], second.last.json["model"]] == ["one", "two"]
    assert second.last.headers["authorization"] == "Bearer key-two"
    with pytest.raises(openai.AuthenticationError):
        openai.OpenAI(base_url=f"{running.url}/v1", api_key="other", max_retries=0).chat.completions.create(model="chat", messages=MESSAGES)


def test_servers_of_a_client(gateway, tmp_path: Path) -> None:
    server = {"command": sys.executable, "args": ["-m", "headgate.sample.mcp_server"], "cwd": str(tmp_path)}
    source = tmp_path / "mcp.json"
    source.write_text(json.dumps({"mcpServers": {"one": server, "two": server}}))
    running = gateway(imported("mcp-servers", source))

    async def names() -> set[str]:
        async with streamable_http_client(f"{running.url}/mcp") as (read, write, *_), ClientSession(read, write) as session:
            await session.initialize()
            return {tool.name for tool in (await session.list_tools()).tools}

    assert {name.partition("_")[0] for name in asyncio.run(names())} == {"one", "two"}
