"""Writes the OpenAPI document of the admin server and its page.

    python ci/admin_api/generate.py docs/schema/admin.openapi.json docs/admin-api.md

Which endpoints there are, and how each may be called, is read from the server's own table (headgate.admin.routes). An
endpoint without words in operations.py, or words without an endpoint, is an error.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, cast

sys.path.insert(0, str(Path(__file__).parent))

from operations import OPERATIONS, Operation, path_parameters
from shapes import SCHEMAS

from headgate import __version__
from headgate.admin.routes import admin_rows
from headgate.admin.running import Process, RunningGateway
from headgate.admin.web import FOREIGN, AdminRoute

OWN = "Needs `content-type: application/json`, which no form of another site can send. "
HEAD = """# Admin API

The admin server listens at `config.adminAddr`. The default is 127.0.0.1:15000, which only this machine can reach:

```sh
curl -s http://127.0.0.1:15000/api/runtime
curl -s -X POST http://127.0.0.1:15000/api/cel -H 'content-type: application/json' -d '{"expression": "1 + 2"}'
```

- **Access.** The server requires no credentials: anyone who can reach the port can use all of this. It refuses requests
  from pages of other sites, and host names that point to a loopback address (403).
- **Bodies.** POST, PUT and DELETE take JSON bodies of at most 1 MiB.
- **OpenAPI.** [`schema/admin.openapi.json`](schema/admin.openapi.json) is the same as an OpenAPI 3.1 document, with the
  schemas of bodies.

This page is generated from the table of the admin server (`make admin-api`).
"""
TITLES = {
    "diagnosis": "Inspecting a gateway", "process": "The process", "configuration": "Configuration",
    "resources": "Stored resources",
    "keys": "Virtual keys", "requests": "Request log", "prices": "Prices of models", "expressions": "Expressions",
    "page": "The admin page",
}  # fmt: skip


class Mismatch(Exception):
    """The server's table and operations.py do not name the same endpoints."""


def rows() -> tuple[AdminRoute, ...]:
    """Return the table of the admin server. Its handlers are not called."""
    return admin_rows(RunningGateway(cast(Process, _Nothing())))


class _Nothing:
    """Stands for the supervisor where nobody asks it."""

    gateway = None


def operations() -> list[tuple[AdminRoute, str, Operation]]:
    """Return every endpoint in the order of the table, with its path as a template. Raises Mismatch."""
    found: list[tuple[AdminRoute, str, Operation]] = []
    left = dict(OPERATIONS)
    table = rows()
    exact = {(row.method, row.path) for row in table}
    for row in table:
        paths = [path for method, path in OPERATIONS if method == row.method and row.fits(path)]
        # `/ui/api/state` is a row of its own, and not one of the tree at `/ui`.
        paths = [path for path in paths if path == row.path or (row.method, path) not in exact]
        mine = [(path, left.pop((row.method, path))) for path in paths if (row.method, path) in left]
        if not mine:
            raise Mismatch(f"{row.method} {row.path} has no words in ci/admin_api/operations.py")
        found += [(row, path, each) for path, each in mine]
    if left:
        raise Mismatch(f"no endpoints: {', '.join(' '.join(key) for key in left)}")
    return found


def operation(row: AdminRoute, path: str, said: Operation) -> dict[str, Any]:
    """Return an endpoint as OpenAPI has it."""
    parameters = path_parameters(path)
    parameters += [
        {"name": one.name, "in": one.place, "required": False, "description": one.about, "schema": one.schema}
        for one in said.parameters
    ]
    answers: dict[str, Any] = {}
    for status, one in sorted(said.answers.items()):
        content = {one.kind: {"schema": one.schema} if one.schema is not None else {}}
        answers[str(status)] = {"description": one.about} | ({"content": content} if status != 308 else {})
    if not row.page:
        answers["403"] = answers.get("403") or {"description": FOREIGN.decode().strip()}
    found: dict[str, Any] = {"tags": [said.tag], "summary": said.summary}
    if row.own:
        found["description"] = OWN.strip()
    if parameters:
        found["parameters"] = parameters
    if said.body is not None:
        found["requestBody"] = {"required": True, "content": {"application/json": {"schema": said.body}}}
    return found | {"responses": answers}


def document() -> dict[str, Any]:
    """Return the OpenAPI document."""
    paths: dict[str, dict[str, Any]] = {}
    for row, path, said in operations():
        paths.setdefault(path, {})[row.method.lower()] = operation(row, path, said)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Headgate admin API",
            "version": __version__,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "http://127.0.0.1:15000"}],
        "tags": [{"name": tag, "description": title} for tag, title in TITLES.items()],
        "paths": paths,
        "components": {"schemas": SCHEMAS},
    }


def page() -> str:
    """Return the page."""
    found = operations()
    lines = [HEAD]
    for tag, title in TITLES.items():
        lines += [f"## {title}", "", "| request | what it does | answers |", "|---|---|---|"]
        for row, path, said in found:
            if said.tag == tag:
                query = "".join(f"<br>`{one.name}`: {one.about}" for one in said.parameters)
                told = "<br>".join(f"{status}: {one.about}" for status, one in sorted(said.answers.items()))
                lines.append(f"| {row.method} `{path}` | {said.summary}{query} | {told} |")
        lines.append("")
    return "\n".join(lines)


def main(words: list[str]) -> int:
    """Write both files; return the exit status."""
    if len(words) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    Path(words[0]).write_text(json.dumps(document(), indent=1) + "\n")
    Path(words[1]).write_text(page())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
