from headgate_engine.llm.translate.readers import Reader

class GeminiReader(Reader):
    """streamGenerateContent with alt=sse."""

class ConverseReader(Reader):
    """ConverseStream: names are `:event-type`s."""
