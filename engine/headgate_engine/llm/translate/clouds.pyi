from headgate_engine.llm.translate.readers import PROVIDER_ERROR as PROVIDER_ERROR
from headgate_engine.llm.translate.readers import EventReader

class GeminiReader(EventReader):
    """streamGenerateContent with alt=sse."""

class ConverseReader(EventReader):
    """ConverseStream: names are `:event-type`s."""
