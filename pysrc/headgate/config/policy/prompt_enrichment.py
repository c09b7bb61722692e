"""`prompts` and `promptEnrichment` to the IR and back."""

from __future__ import annotations

from typing import Any

from headgate.config.check import Record
from headgate.config.context import Context
from headgate.errors import Problem
from headgate.ir.policy.prompt_guard import Pairs, PromptEnrichment


def parse(context: Context, record: Record | None) -> PromptEnrichment | None:
    """Return the messages that are added, None without any."""
    if record is None:
        return None
    found = PromptEnrichment(prepend=_messages(context, record, "prepend"), append=_messages(context, record, "append"))
    return found if found.prepend or found.append else None


def _messages(context: Context, record: Record, key: str) -> Pairs:
    messages = []
    for entry in record.records(key):
        role, content = entry.get("role"), entry.get("content")
        if role == "":
            context.fault(Problem.VALUE, entry, "role", "a message needs a role")
        if role is not None and content is not None:
            messages.append((role, content))
    return tuple(messages)


def dump(enrichment: PromptEnrichment) -> dict[str, Any]:
    """Return the form of the configuration dump."""
    return {
        key: [{"role": role, "content": content} for role, content in pairs]
        for key, pairs in (("prepend", enrichment.prepend), ("append", enrichment.append))
        if pairs
    }
