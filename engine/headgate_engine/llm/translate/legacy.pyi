from headgate_engine.llm.translate.writers import Writer

class TextWriter(Writer):
    """text_completion chunks. extra: `include_usage`, whether the client asked for the usage chunk; `echo`, the prompt
    if the client wants it in front of the text, else "".
    """
