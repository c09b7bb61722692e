LENGTHS: tuple[int, ...]

def encode(text: bytes) -> bytes:
    """Return the text in the code, padded with ones."""

def decode(code: bytes) -> bytes:
    """Return the text of a code; ValueError for wrong padding and for the end mark."""
