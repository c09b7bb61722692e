from typing import Any

SLICE: int
MAX_DEPTH: int

class Cuts:
    """C face only."""

def load_sliced(text: bytes, slice_bytes: int = ...) -> Any:
    """Decode JSON as load_json() does, in calls of about `slice_bytes` each: between two of them other threads get the
    interpreter's lock. Garbage when it is none. Long texts are cut as well, between characters.
    """

def dump_sliced(value: Any, slice_bytes: int = ...) -> bytes:
    """Encode as dump_json() does, in calls that write about `slice_bytes` each; of a text, so many characters."""

def dump_pieces(value: Any, slice_bytes: int = ...) -> list[bytes]:
    """Return what dump_sliced() joins: each piece was written by one call."""

def cuts(text: bytes, slice_bytes: int) -> list[tuple[int, int]]:
    """Return the spans of the runs of members, each of about `slice_bytes` or a single member, into which the array or
    object is cut that `text` is; ValueError where there are none. For tests.
    """
