"""Cache points in Converse requests (https://docs.aws.amazon.com/bedrock/latest/userguide/prompt-caching.html)."""

from __future__ import annotations

import re
from typing import Any, Final

from headgate.ir.model import PromptCaching

Json = dict[str, Any]
# Clients of other formats set cache points themselves.
CLIENTS: Final = ("completions", "responses")
# The first Claude models have no cache points. An application inference profile does not reveal its model.
FITTING: Final = re.compile(
    r"anthropic\.claude-(?!instant|v1|v2)|amazon\.nova|:application-inference-profile/"
)
POINT: Final = {"cachePoint": {"type": "default"}}


def add_cache_points(body: Json, model: str, caching: PromptCaching) -> None:
    """Add cache points to the body of a Converse request, in place."""
    if not FITTING.search(model):
        return
    system = body.get("system")
    if caching.system and system and _estimate(system) >= caching.least_tokens:
        system.append(POINT)
    messages = body.get("messages") or []
    if caching.messages and len(messages) > 1:
        messages[max(0, len(messages) - 2 - caching.offset)]["content"].append(POINT)
    tools = (body.get("toolConfig") or {}).get("tools")
    if caching.tools and tools:
        tools.append(POINT)


def _estimate(blocks: list[Json]) -> int:
    """Return an estimate of the number of tokens in the texts."""
    words = sum(len(block.get("text", "").split()) for block in blocks)
    return words * 13 // 10
