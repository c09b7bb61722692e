from headgate_engine.llm.translate.readers import CompletionsReader

class SameReader(CompletionsReader):
    """Events of chat completions and of legacy text completions, which go on with all of their members."""

    include_usage: bool
