from headgate_engine.llm.translate.writers import Writer

ERROR_TYPES: frozenset[str]

class BlockWriter(Writer):
    """C face only: formats whose replies are a list of blocks."""

class MessagesWriter(BlockWriter):
    """Events of the Messages API. extra: none."""

class ResponsesWriter(BlockWriter):
    """Events of the Responses API. extra: what the response object repeats of the request."""
