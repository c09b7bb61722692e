from headgate_engine.guard.transcript import BodyTexts

FORMATS: frozenset[str]

def read_texts(body: bytes, format: str, *, reply: bool = False) -> BodyTexts:
    """Return the texts of a request, or of a 2xx reply.

    PeekError (a ValueError) for a body that is no JSON, ValueError for one that is no object, KeyError for a format
    that is none of FORMATS. Members that stand twice all count, because a provider may read any of them.
    """
