"""What the guards of each route see, for `--validate-only` and the admin page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from headgate.ir.backend import Backend
from headgate.ir.gateway import Gateway
from headgate.ir.mcp import McpBackend
from headgate.ir.model import AiBackend, LlmRouter

Rows = list[dict[str, object]]


class GuardedRoute(NamedTuple):
    """A route with guards. `model`: the model, provider or MCP backend that has them; `rows`: what they see."""

    route: str
    model: str
    rows: Rows


def guarded_routes(gateway: Gateway, only: str | None = None) -> Iterator[GuardedRoute]:
    """Yield every model and MCP backend with guards, by route, each once for a route. `only`: the key of one route."""
    for bind in gateway.binds:
        for listener in bind.listeners:
            for route in listener.routes:
                if only is not None and route.key != only:
                    continue
                for choice in route.backends:
                    for name, rows in _guarded(choice.backend):
                        yield GuardedRoute(route.key, name, rows)


def _guarded(backend: Backend) -> Iterator[tuple[str, Rows]]:
    if isinstance(backend, McpBackend):
        if backend.guardrails:
            from headgate.backend.mcp.guardrails.coverage import rows as mcp_rows  # with the first policy server

            yield ", ".join(target.name for target in backend.targets), mcp_rows(backend.guardrails)
        return
    if isinstance(backend, LlmRouter):
        models = (*backend.models, *backend.internal_models)
    elif isinstance(backend, AiBackend):
        models = backend.members
    else:
        return
    for model in models:
        if model.edits.guard is not None:
            from headgate.backend.llm.guards.coverage import rows as llm_rows  # with the first guard

            name = model.pattern if isinstance(backend, LlmRouter) else model.key.rpartition("/")[2]
            yield name, llm_rows(model.edits.guard)


def told(gateway: Gateway) -> Iterator[str]:
    """Yield lines that say what guards see, those of equal guards once, with the routes and models that have them."""
    groups: dict[str, list[str]] = {}
    for found in guarded_routes(gateway):
        groups.setdefault("\n".join(_lines(found.rows)), []).append(f"{found.model} at {found.route}")
    for lines, owners in groups.items():
        more = f" and {len(owners) - 3} more" if len(owners) > 3 else ""
        yield f"Guards of {'; '.join(owners[:3])}{more}:"
        yield from lines.split("\n")


def _lines(rows: Rows) -> Iterator[str]:
    before = None
    for row in rows:
        owner = (row["side"], row["number"], row["guard"])
        if owner != before:
            yield f"  {row['side']} {row['number']}, {row['guard']}"
            before = owner
        formats = row["formats"]
        assert isinstance(formats, list)
        where = "" if formats == ["mcp"] else f" ({', '.join(formats)})"
        why = f": {row['why']}" if "why" in row else ""
        yield f"    {row['seen']:<8} {row['shape']:<9} {row['text']}{where}{why}"
