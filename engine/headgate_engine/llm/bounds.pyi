MESSAGES: dict[str, tuple[str, ...]]
TEXTS: dict[str, tuple[str, ...]]
PICTURES: frozenset[str]
GOOGLE_PARTS: tuple[str, ...]
EARLIER: tuple[str, ...]
PARTS: tuple[str, ...]
DEFINITIONS: tuple[str, ...]
GEMINI: tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]
PLACES: dict[str, tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]]

class MediaCount:
    """What a prompt has beside its texts."""

_Media = tuple[int, int, int, int, bool]

def worst_of(format: str, body: bytes, document: object) -> tuple[int, int, int, int, int, _Media]:
    """Return what a request in a client's format may come to.

    Tokens of the prompt's texts, and of definitions beside them; the most tokens of one answer, where the provider
    reads it (0: nothing bounds it), and the largest such number that stands anywhere; how many answers there may be;
    and media: how many pictures, most tokens of sound and film, and of files, how many things the request names and
    does not carry, and whether answers may be sound. document: the body's JSON, None where it has none.
    """
