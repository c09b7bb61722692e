from collections.abc import Sequence

from headgate_engine.llm.translate.counts import UsageCounts
from headgate_engine.llm.translate.evidence import Citation, RanTool
from headgate_engine.llm.translate.writers import Writer

class GeminiWriter(Writer):
    """Events of streamGenerateContent. extra: `wrap`, a function that puts another vendor's signature into Base64."""

def gemini_usage_of(usage: UsageCounts) -> dict[str, object]:
    """Return `usageMetadata` of a response."""

def function_call(id: str, name: str, arguments: str) -> dict[str, object]:
    """Return the part of a tool call. Arguments that are no object become its member `input`."""

def ran_parts(tool: RanTool) -> list[dict[str, object]]:
    """Return the parts of code that a vendor has run; [] for other tools, which have no parts."""

def grounding(citations: Sequence[Citation], tools: Sequence[RanTool], text: str) -> dict[str, object]:
    """Return `groundingMetadata` of a text: what it cites, and what the vendor searched for; {} for nothing."""
