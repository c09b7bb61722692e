MAX_VALUE: int

def text_value(value: bytes) -> bytes:
    r"""Return the form of a value in a text line.

    It is bare if it is visible ASCII without quotes and backslashes. Otherwise it is in double quotes: `"` and `\` have
    a backslash; control characters (C0, DEL, C1), line separators, direction marks and bytes that are not UTF-8 are
    \xNN.
    """

def json_value(value: bytes) -> bytes:
    r"""Return a value as a JSON string. Bytes that are not UTF-8 become U+FFFD, other escaped characters \uNNNN."""
