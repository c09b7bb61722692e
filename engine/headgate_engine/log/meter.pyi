from headgate_engine.shared.segment import Segment

METHODS: tuple[str, ...]
REQUEST_SECONDS: tuple[float, ...]
TOKENS: tuple[int, ...]
OVERFLOW: str

class RequestMeter:
    """The series of one label combination."""

    def __init__(self, segment: Segment, labels: str) -> None: ...

class CacheEntry:
    """C face only."""

class BindMeter:
    """The series of one port."""

    def __init__(self, segment: Segment, labels: str) -> None: ...

class RequestMeters:
    """All request metrics of a worker."""

    def __init__(self, segment: Segment | None) -> None: ...

def label(name: str, value: object) -> str: ...
