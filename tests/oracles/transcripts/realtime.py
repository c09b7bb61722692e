"""Texts of what clients say in realtime conversations."""

from __future__ import annotations

from typing import Final

from tests.oracles.transcripts.contract import Builder, Piece, TextScope

ITEM: Final = "conversation.item.create"


def request(builder: Builder) -> None:
    """Note what an event has a user say, its parts as one text; nothing for all other events."""
    top = builder.fields(0)
    if ITEM not in builder.words(top, "type"):
        return
    for start, _ in top.get("item", ()):
        item = builder.fields(start)
        if "user" not in builder.words(item, "role") or builder.words(item, "type") not in ([], ["message"]):
            continue
        turn = builder.turn("user", b" ")
        for row, _ in builder.rows(item, "content"):
            part = builder.fields(row)
            if "input_text" not in builder.words(part, "type"):
                continue
            for span in part.get("text", ()):
                if builder.is_text(span):
                    builder.add(TextScope.MESSAGES, Piece(*span), turn)
