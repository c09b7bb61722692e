def encoded_text(body: bytes, start: int, stop: int) -> bytes:
    """Return the text of a file in base64 between two offsets of a body, within the quotes of a JSON string.

    The result is UTF-8: a byte that is not becomes a question mark. What is no base64 is passed over. Raises ValueError
    for offsets outside the body.
    """
