from headgate_engine.llm.translate.blocks import BlockWriter
from headgate_engine.llm.translate.counts import UsageCounts

BROKEN: str
PICTURES: frozenset[str]
TIERS: frozenset[str]

class ConverseWriter(BlockWriter):
    """Frames of ConverseStream. extra: `latency`, a function that returns the milliseconds since the request, and
    `mask`, one that puts another vendor's redacted thinking into Base64.
    """

def converse_usage_of(usage: UsageCounts) -> dict[str, int]:
    """Return `usage` of a reply."""

def exception_of(kind: str | None, code: str | None, status: int) -> str:
    """Return the exception of ConverseStream for an error. kind: None for one that the provider has not told."""
