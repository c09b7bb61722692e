from collections.abc import Mapping

from headgate_engine.log.access import AccessLogFormat

def text_value(value: bytes) -> bytes:
    r"""Return the form of a value in a text line.

    It is bare if it is visible ASCII without quotes and backslashes. Otherwise it is in double quotes: `"` and `\` have
    a backslash; control characters (C0, DEL, C1), line separators, direction marks and bytes that are not UTF-8 are
    \xNN.
    """

def access_line(form: AccessLogFormat, wall_ns: int, request: Mapping[str, object]) -> bytes:
    """Return the line of a request that is given in parts, with the code of the request path.

    Raises KeyError for a part that there is not.
    """

def nanoseconds_per_line(form: AccessLogFormat, request: Mapping[str, object], *, rounds: int = 10000) -> float:
    """Return the mean time of a line, measured in C. rounds: 1..10**8, otherwise ValueError."""
