"""Texts of embeddings and rerank requests: inputs, queries and documents, each of its own."""

from __future__ import annotations

from tests.oracles.transcripts.contract import Builder, TextScope


def embeddings(builder: Builder) -> None:
    """Note the inputs; token numbers say nothing that could be read."""
    _texts(builder, "input")


def rerank(builder: Builder) -> None:
    """Note query and documents."""
    _texts(builder, "query", "documents")


def _texts(builder: Builder, *names: str) -> None:
    top = builder.fields(0)
    builder.strings(TextScope.MESSAGES, top, *names)
    for row in builder.rows(top, *names):
        if builder.is_text(row):
            builder.alone(TextScope.MESSAGES, row)
        else:
            builder.strings(TextScope.MESSAGES, builder.fields(row[0]), "text")


def nothing(builder: Builder) -> None:
    """Vectors and scores are no text."""
