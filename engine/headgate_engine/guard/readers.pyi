from headgate_engine.guard.transcript import BodyTexts

FORMATS: frozenset[str]

def event_types(body: bytes) -> list[str | None]:
    """Return the values of `type` of a JSON object, each time it stands there, None for what is no string.

    Raises PeekError (a ValueError) if the body is not JSON, ValueError if it is not an object.
    """

def read_texts(body: bytes, format: str, *, reply: bool = False) -> BodyTexts:
    """Return the texts of a request, or of a 2xx reply.

    Raises PeekError (a ValueError) if the body is not JSON, ValueError if it is not an object, KeyError if the format
    is not in FORMATS. Of members that occur twice all count, because a provider may read any of them.
    """
