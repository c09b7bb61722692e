"""`mcpServers` of MCP clients (Claude, Cursor, VS Code, Windsurf), as one endpoint that has all of the servers.

https://code.visualstudio.com/docs/copilot/reference/mcp-configuration describes the form with `servers`, and
https://modelcontextprotocol.io/quickstart/user the one with `mcpServers`.
"""

from __future__ import annotations

import re
from typing import Any, Final
from urllib.parse import urlsplit

from headgate.config.foreign.notes import ImportNotes, Tree, literal, target_name, variable

# Where the servers are, by client.
SECTIONS: Final = ("mcpServers", "servers", "context_servers")
_PLACEHOLDER: Final = re.compile(r"\$\{(?:(env|input):)?([A-Za-z_][A-Za-z0-9_-]*)(?::-([^}]*))?\}")
_COMMON: Final = {"type", "transport", "disabled", "enabled", "description", "name"}
_OF_THE_CLIENT: Final = {"alwaysAllow", "autoApprove", "trust", "timeout", "oauth", "dev", "envFile"}
_BEARER: Final = "Bearer "


def mcp_servers(source: Tree, notes: ImportNotes, port: int = 3000) -> Tree:
    """Return a configuration with an MCP endpoint at `port` for the servers of a client's configuration.

    Raises ValueError if the source has no servers.
    """
    section = next((name for name in SECTIONS if isinstance(source.get(name), dict)), None)
    if section is None:
        raise ValueError(f"found no servers: expected one of {', '.join(SECTIONS)}")
    targets = mcp_targets(source[section], section, notes)
    if not targets:
        raise ValueError(f"{section} has no server that can be used")
    for name in source:
        if name not in (section, "inputs", "$schema"):
            notes.add(name, "is not a setting of MCP servers")
    return {"gateways": {"default": {"port": port}}, "mcp": {"gateways": ["default"], "targets": targets}}


def mcp_targets(servers: Tree, path: str, notes: ImportNotes) -> list[Tree]:
    """Return the MCP targets of a map of servers by name."""
    targets: list[Tree] = []
    taken: set[str] = set()
    for name, server in servers.items():
        at = f"{path}.{name}"
        if not isinstance(server, dict):
            notes.add(at, "is no map")
        elif server.get("disabled") is True or server.get("enabled") is False:
            notes.add(at, "is disabled, and left out")
        else:
            target = _target(server, at, notes)
            if target is not None:
                named = target_name(name, taken)
                if named != name:
                    notes.add(at, f"is called {named}: names of its tools begin with that")
                targets.append({"name": named, **target})
    return targets


def _target(server: Tree, at: str, notes: ImportNotes) -> Tree | None:
    for name in server.keys() & _OF_THE_CLIENT:
        notes.add(f"{at}.{name}", "is a setting of the client")
    if isinstance(server.get("command"), str):
        return {"stdio": _process(server, at, notes)}
    url = server.get("url") or server.get("serverUrl") or server.get("httpUrl")
    if not isinstance(url, str):
        notes.add(at, "has neither a command nor a url")
        return None
    known = _COMMON | _OF_THE_CLIENT | {"url", "serverUrl", "httpUrl", "headers"}
    notes.rest(at, server, known)
    kind = str(server.get("type") or server.get("transport") or "")
    old = kind == "sse" or (not kind and urlsplit(url).path.rstrip("/").endswith("/sse"))
    found: Tree = {"sse" if old else "mcp": {"host": _text(url, f"{at}.url", notes)}}
    policies = _headers(server.get("headers") or {}, f"{at}.headers", notes)
    return {**found, "policies": policies} if policies else found


def _process(server: Tree, at: str, notes: ImportNotes) -> Tree:
    notes.rest(at, server, _COMMON | _OF_THE_CLIENT | {"command", "args", "env", "cwd"})
    command = _text(server["command"], f"{at}.command", notes)
    arguments = [_text(str(one), f"{at}.args[{number}]", notes) for number, one in enumerate(server.get("args") or ())]
    if server.get("cwd"):
        # env(1) of GNU coreutils 8.28 and later.
        arguments = ["-C", _text(str(server["cwd"]), f"{at}.cwd", notes), command, *arguments]
        command = "env"
    found: Tree = {"cmd": command}
    if arguments:
        found["args"] = arguments
    if server.get("env"):
        found["env"] = {name: _text(str(value), f"{at}.env.{name}", notes) for name, value in server["env"].items()}
    return found


def _headers(given: Tree, at: str, notes: ImportNotes) -> Tree:
    """Return the policies that send a client's header fields."""
    policies: Tree = {}
    fields: dict[str, str] = {}
    for name, value in given.items():
        text = _text(str(value), f"{at}.{name}", notes)
        if name.lower() == "authorization" and text.startswith(_BEARER):
            policies["backendAuth"] = {"key": text.removeprefix(_BEARER)}
        else:
            fields[name] = text
    if fields:
        policies["requestHeaderModifier"] = {"set": fields}
    return policies


def _text(text: Any, at: str, notes: ImportNotes) -> str:
    """Return a text with its placeholders as variables of the environment."""
    found, end = "", 0
    for match in _PLACEHOLDER.finditer(text):
        kind, name, default = match.groups()
        name = name.replace("-", "_") if kind != "input" else re.sub(r"\W", "_", name).upper()
        if kind == "input":
            notes.add(at, f"asks for a value: set the environment variable {name}")
        found += literal(text[end : match.start()]) + variable(name, default)
        end = match.end()
    return found + literal(text[end:])
