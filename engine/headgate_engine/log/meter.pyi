from headgate_engine.shared.segment import Segment

METHODS: tuple[str, ...]
HANDSHAKE_SECONDS: tuple[float, ...]
PROCESSING_SECONDS: tuple[float, ...]
REQUEST_SECONDS: tuple[float, ...]
CALL_SECONDS: tuple[float, ...]
STREAM_SECONDS: tuple[float, ...]
STREAM_KINDS: tuple[str, ...]
SUBTYPES: dict[str, str]

class PlanMeter:
    """The series of one combination of labels. Only C code uses it."""

class BindMeter:
    """The series of one port."""

    def __init__(self, segment: Segment, labels: str) -> None: ...

class ProcessingMeter:
    """What the gateway itself takes for requests to one backend of one route. labels: those of the series."""

    def __init__(self, segment: Segment, labels: str) -> None: ...

class RequestMeters:
    """All request metrics of a worker."""

    def __init__(self, segment: Segment | None) -> None: ...
