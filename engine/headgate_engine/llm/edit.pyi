from collections.abc import Collection

def edit(
    body: bytes, sets: dict[str, bytes], defaults: dict[str, bytes] | None = None, removes: Collection[str] = ()
) -> bytes:
    """Return the JSON object `body` with members replaced, added (when missing) and removed; the rest keeps its bytes.

    Values are raw JSON. A member that stands twice is replaced or removed everywhere. ValueError unless `body` is one
    JSON object.
    """
