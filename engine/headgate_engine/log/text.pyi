MAX_VALUE: int

def text_value(value: bytes) -> bytes:
    r"""Return a value as it stands in a text line.

    Bare when it is made of visible ASCII without quotes and backslashes, else in double quotes: `"` and `\` behind a
    backslash, control characters (C0, DEL, C1), line separators, direction marks and bytes that are no UTF-8 as \xNN.
    """

def json_value(value: bytes) -> bytes:
    r"""Return a value as a JSON string; bytes that are no UTF-8 become U+FFFD, what text escapes is \uNNNN here."""
