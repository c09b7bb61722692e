MESSAGES: dict[str, tuple[str, ...]]
PICTURES: frozenset[str]
PICTURE_MEMBERS: tuple[str, ...]
PARTS: tuple[str, ...]
DEFINITIONS: tuple[str, ...]
GEMINI: tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]
PLACES: dict[str, tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]]

def worst_of(format: str, body: bytes, document: object) -> tuple[int, int, int, int, int]:
    """Return what a request in a client's format may come to.

    Tokens of the prompt's texts, and of definitions and pictures beside them; the most tokens of one answer, where the
    provider reads it (0: nothing bounds it), and the largest such number that stands anywhere; and how many answers
    there may be. document: the body's JSON, None where it has none.
    """
